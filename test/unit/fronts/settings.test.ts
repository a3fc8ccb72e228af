import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

import { isClusterError } from "../../../provider/cluster/errors.ts";
import { connectionOf, settingsOf } from "../../../provider/fronts/dynamic/settings.ts";
import type { StackConfig } from "../../../provider/fronts/dynamic/settings.ts";

function kubeconfig(server: string): string {
  return `apiVersion: v1
kind: Config
current-context: one
clusters:
  - {name: c, cluster: {server: "${server}"}}
  - {name: d, cluster: {server: "${server}/other"}}
users:
  - {name: u, user: {token: s3cret-token}}
contexts:
  - {name: one, context: {cluster: c, user: u}}
  - {name: two, context: {cluster: d, user: u}}
`;
}

function config(values: Record<string, string>): StackConfig {
  return { get: (key) => values[key] };
}

describe("settings of the dynamic front", () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "settings-"));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it("come from the stack's configuration, with the namespace default as default", () => {
    assert.deepEqual(settingsOf(config({})), { kubeconfig: undefined, context: undefined, namespace: "default" });
    assert.deepEqual(
      settingsOf(config({ "baremetal:kubeconfig": " /k ", "baremetal:context": "two", "baremetal:namespace": "cpaas-system", "other:namespace": "x" })),
      {
        kubeconfig: "/k",
        context: "two",
        namespace: "cpaas-system",
      },
    );
  });

  it("take a kubeconfig as contents or as a path, and select the context", async () => {
    const text = kubeconfig("https://contents:1");
    assert.equal((await connectionOf({ kubeconfig: text, context: undefined, namespace: "n" }, {})).server, "https://contents:1");
    assert.equal((await connectionOf({ kubeconfig: text, context: "two", namespace: "n" }, {})).server, "https://contents:1/other");
    const path = join(folder, "file");
    writeFileSync(path, kubeconfig("https://file:1"));
    assert.equal((await connectionOf({ kubeconfig: path, context: undefined, namespace: "n" }, { KUBECONFIG: "/not/this" })).server, "https://file:1");
  });

  it("fall back to the first file of KUBECONFIG that exists", async () => {
    const path = join(folder, "file");
    writeFileSync(path, kubeconfig("https://environment:1"));
    const environment = { KUBECONFIG: [join(folder, "missing"), path].join(delimiter) };
    assert.equal((await connectionOf({ kubeconfig: undefined, context: undefined, namespace: "n" }, environment)).server, "https://environment:1");
  });

  it("say what to set where there is none", async () => {
    const missing = join(folder, "missing");
    await assert.rejects(connectionOf({ kubeconfig: undefined, context: undefined, namespace: "n" }, { KUBECONFIG: missing }), (error) => {
      assert.ok(isClusterError(error, "invalid"));
      assert.equal(
        error.message,
        `no kubeconfig was found (${missing} does not exist); set one with "pulumi config set --secret baremetal:kubeconfig" (contents or a path), or point KUBECONFIG at it`,
      );
      return true;
    });
  });

  it("do not quote a kubeconfig that is not valid", async () => {
    const broken = `${kubeconfig("https://x")}\n  s3cret-token: [\n`;
    await assert.rejects(connectionOf({ kubeconfig: broken, context: undefined, namespace: "n" }, {}), (error) => {
      assert.ok(isClusterError(error, "invalid"));
      assert.match(error.message, /^the kubeconfig is not valid YAML/);
      assert.equal(JSON.stringify([error.message, error.stack, error.cause]).includes("s3cret"), false);
      return true;
    });
  });
});
