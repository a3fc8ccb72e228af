/** Folder outside the checkout that keeps what is built once. */
export const cacheDirectory: string;

/** Where the pinned binary is, or will be once built. Throws on a name that is not pinned. */
export function binaryPath(name: string): string;

/** Where the source of a Go module lies that `test/toolchain/<module>/go.mod` pins, for CRDs and manifests. */
export function moduleDirectory(module: string, goModule: string): string;
