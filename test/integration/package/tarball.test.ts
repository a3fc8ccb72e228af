import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

import { z } from "zod";

import { PulumiProject, pulumiIsBuilt } from "../../e2e/pulumi-cli.ts";

const repository = resolve(import.meta.dirname, "../../..");
const sdk = join(repository, "sdk/nodejs");

const packed = z.array(z.object({ filename: z.string(), files: z.array(z.object({ path: z.string() })) }));

const program = `
import { MachineInventoryPool } from "pulumi-baremetal";

const pool = new MachineInventoryPool("workers", {
  clusterName: "edge",
  machineInventories: [{ name: "rack1-07", hostname: "edge-w1", bmc: { address: "https://10.0.7.7" } }],
  bmcCredentials: { "rack1-07": { username: "root", password: "hunter2" } },
});
export const poolName = pool.poolName;
`;

/** An address on which nobody listens. */
async function deadServer(): Promise<string> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return `https://127.0.0.1:${port}`;
}

function kubeconfig(server: string): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "dead",
    clusters: [{ name: "dead", cluster: { server } }],
    users: [{ name: "nobody", user: { token: "s3cret-token" } }],
    contexts: [{ name: "dead", context: { cluster: "dead", user: "nobody" } }],
  });
}

describe("the packed package in an empty folder", function () {
  this.timeout(120_000);
  let folder: string;
  let files: string[];

  function npm(place: string, ...args: string[]): string {
    const environment = { ...process.env, npm_config_cache: join(folder, "npm-cache") };
    return execFileSync("npm", args, { cwd: place, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"], env: environment });
  }

  before(function () {
    if (!existsSync(join(sdk, "dist/dynamic-host.cjs"))) throw new Error("the package is not built; run: npm run build");
    folder = mkdtempSync(join(tmpdir(), "pulumi-baremetal-package-"));
    const [tarball] = packed.parse(JSON.parse(npm(sdk, "pack", "--json", "--ignore-scripts", "--pack-destination", folder)));
    assert.ok(tarball);
    files = tarball.files.map(({ path }) => path).sort();
    writeFileSync(join(folder, "package.json"), JSON.stringify({ name: "shop", main: "index.ts" }));
    writeFileSync(join(folder, "Pulumi.yaml"), "name: shop\nruntime: nodejs\n");
    writeFileSync(join(folder, "index.ts"), program);
    // Peers are the user's own and come from this checkout, so that nothing is downloaded.
    npm(folder, "install", "--offline", "--ignore-scripts", "--legacy-peer-deps", "--no-audit", "--no-fund", `./${tarball.filename}`);
    mkdirSync(join(folder, "node_modules/@pulumi"));
    for (const peer of ["pulumi", "kubernetes"]) symlinkSync(join(repository, "node_modules/@pulumi", peer), join(folder, "node_modules/@pulumi", peer));
  });

  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });

  it("holds what runs, its types and its licences, and depends on nothing", () => {
    for (const path of [
      "LICENSE",
      "README.md",
      "dist/controller.cjs",
      "dist/dynamic-host.cjs",
      "dist/dynamic-host.cjs.LICENSES.txt",
      "dist/index.d.ts",
      "dist/index.js",
    ]) {
      assert.ok(files.includes(path), `${path} is missing among ${files.join(", ")}`);
    }
    assert.deepEqual(
      files.filter((path) => !/^(dist\/[\w.-]+|LICENSE|README\.md|package\.json)$/.test(path)),
      [],
    );
    assert.deepEqual(
      readdirSync(join(folder, "node_modules")).filter((name) => !name.startsWith(".")),
      ["@pulumi", "pulumi-baremetal"],
    );
  });

  it("loads neither @pulumi/kubernetes nor the host into a program that only imports it", () => {
    const script =
      'require("pulumi-baremetal"); console.log(JSON.stringify(Object.keys(require.cache).filter((path) => /@pulumi.kubernetes|dynamic-host|controller\\.cjs/.test(path))))';
    assert.equal(execFileSync(process.execPath, ["-e", script], { cwd: folder, encoding: "utf8" }).trim(), "[]");
  });

  it("previews with the real CLI as far as the cluster, and says that it does not answer", async function () {
    if (!pulumiIsBuilt()) throw new Error("the Pulumi CLI is not built; run: node test/toolchain/build.mjs pulumi pulumi-language-nodejs");
    const project = await PulumiProject.create({ directory: folder });
    try {
      await project.config({ "baremetal:kubeconfig": kubeconfig(await deadServer()), "baremetal:namespace": "cpaas-system" }, { secret: true });
      const preview = await project.preview();
      assert.equal(preview.exitCode, 1);
      const messages = preview.messages.join("\n");
      assert.match(messages, /the API server cannot be reached \(ECONNREFUSED\)/);
      for (const secret of ["hunter2", "s3cret-token"])
        assert.equal(`${preview.stdout}${preview.stderr}${JSON.stringify(preview.events)}`.includes(secret), false, secret);
    } finally {
      project.close();
    }
  });
});
