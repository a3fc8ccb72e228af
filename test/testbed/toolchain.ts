/** The pinned binaries and sources that the bed runs and reads. */
import { existsSync } from "node:fs";

import { binaryPath, moduleDirectory } from "../toolchain/build.mjs";

export { cacheDirectory } from "../toolchain/build.mjs";

export type BinaryName = "etcd" | "kube-apiserver" | "kube-controller-manager" | "cluster-api-core" | "cluster-api-bootstrap-kubeadm";

/** The path of a binary that has been built. */
export function binary(name: BinaryName): string {
  const path = binaryPath(name);
  if (!existsSync(path)) throw new Error(`the test bed needs ${name}, which is not built yet; run: node test/toolchain/build.mjs ${name}`);
  return path;
}

/** Folder of Cluster API's source, with its CRDs and webhook manifests. */
export function clusterApiSource(): string {
  return moduleDirectory("cluster-api", "sigs.k8s.io/cluster-api");
}
