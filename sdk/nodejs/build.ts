/** Builds the published package into `dist`: the program's side by tsc, and one bundled file each for the dynamic host and the controller. */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "esbuild";
import type { Plugin } from "esbuild";
import { z } from "zod";

const here = dirname(fileURLToPath(import.meta.url));
const repository = resolve(here, "../..");
const dist = join(here, "dist");

/**
 * Of @kubernetes/client-node only KubeConfig is used. Its generated client, which KubeConfig would only need to hand out
 * clients of its own, costs more memory than everything else in the bundle together.
 */
const kubeConfigAlone: Plugin = {
  name: "kubeconfig-alone",
  setup(bundler) {
    const config = join(dirname(fileURLToPath(import.meta.resolve("@kubernetes/client-node"))), "config.js");
    bundler.onResolve({ filter: /^@kubernetes\/client-node$/ }, () => ({ path: config }));
    bundler.onResolve({ filter: /^\.\/gen\/index\.js$/ }, ({ importer }) =>
      importer === config ? { path: "generated-client", namespace: "left-out" } : undefined,
    );
    bundler.onLoad({ filter: /.*/, namespace: "left-out" }, () => ({
      contents: `
        export function createConfiguration() { throw new Error("the generated Kubernetes client is not part of this bundle"); }
        export class ServerConfiguration {}
      `,
    }));
  },
};

const manifest = z.looseObject({ name: z.string(), version: z.string(), license: z.string().optional() });

/** Licences of the packages whose code went into a bundle, as most of them ask for. */
function licencesOf(inputs: readonly string[]): string {
  const folders = new Set(inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? []));
  const texts = [...folders].sort().map((folder) => {
    const place = resolve(folder);
    const { name, version, license } = manifest.parse(JSON.parse(readFileSync(join(place, "package.json"), "utf8")));
    const file = readdirSync(place).find((candidate) => /^licen[cs]e/i.test(candidate));
    return `${name} ${version} (${license ?? "licence below"})\n\n${file === undefined ? "" : readFileSync(join(place, file), "utf8").trim()}\n`;
  });
  return texts.join(`\n${"-".repeat(80)}\n\n`);
}

/** Everything that the process needs in one file: it starts several times faster than from hundreds, and depends on nothing. */
async function bundle(entry: string, name: string, outDir: string): Promise<void> {
  const { metafile } = await build({
    entryPoints: [join(repository, entry)],
    outfile: join(outDir, name),
    bundle: true,
    platform: "node",
    format: "cjs",
    target: "node22",
    // Names are kept: they stand in stack traces, which end up in bug reports.
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: "none",
    metafile: true,
    plugins: [kubeConfigAlone],
    logLevel: "warning",
    // An import for the sake of its types alone.
    logOverride: { "ignored-bare-import": "silent" },
  });
  writeFileSync(join(outDir, `${name}.LICENSES.txt`), licencesOf(Object.keys(metafile.inputs)));
}

function compile(outDir: string): void {
  const tsc = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  const run = spawnSync(process.execPath, [tsc, "--project", join(here, "tsconfig.json"), "--outDir", outDir], { stdio: "inherit" });
  if (run.status !== 0) throw new Error("tsc refused the sources of the package; its messages stand above");
  for (const name of readdirSync(outDir).filter((file) => file.endsWith(".d.ts"))) {
    // tsc rewrites `.ts` in JavaScript, but not in declarations, and older compilers refuse it there.
    const path = join(outDir, name);
    writeFileSync(path, readFileSync(path, "utf8").replaceAll(/(from "\.\/[^"]+)\.ts"/g, '$1.js"'));
  }
  writeFileSync(join(outDir, "package.json"), `${JSON.stringify({ type: "commonjs" })}\n`);
}

async function main(): Promise<void> {
  // Built beside its place, so that nobody who runs from `dist` meanwhile finds half of it.
  const staging = join(here, `.dist-${process.pid}`);
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging);
  try {
    compile(staging);
    await bundle("provider/fronts/dynamic/host.ts", "dynamic-host.cjs", staging);
    await bundle("provider/controller/main.ts", "controller.cjs", staging);
    rmSync(dist, { recursive: true, force: true });
    renameSync(staging, dist);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  copyFileSync(join(repository, "LICENSE"), join(here, "LICENSE"));
}

await main();
