import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { connectionFromFile, connectionFromKubeconfig } from "../../../provider/cluster/connection.ts";
import { ClusterError } from "../../../provider/cluster/errors.ts";

function kubeconfig(currentContext = "edge"): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name: "edge",
        cluster: { server: "https://127.0.0.1:6443/", "certificate-authority-data": Buffer.from("CA").toString("base64"), "tls-server-name": "kubernetes" },
      },
      { name: "other", cluster: { server: "https://127.0.0.1:7443", "insecure-skip-tls-verify": true } },
    ],
    users: [
      { name: "token", user: { token: "secret-token" } },
      {
        name: "certificate",
        user: { "client-certificate-data": Buffer.from("CERT").toString("base64"), "client-key-data": Buffer.from("KEY").toString("base64") },
      },
    ],
    contexts: [
      { name: "edge", context: { cluster: "edge", user: "token" } },
      { name: "other", context: { cluster: "other", user: "certificate" } },
    ],
    "current-context": currentContext,
  });
}

async function reason(call: Promise<unknown>): Promise<string> {
  const error: unknown = await call.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof ClusterError && error.kind === "invalid", String(error));
  return error.message;
}

describe("a connection from a kubeconfig", () => {
  it("takes address, trust and token of the current context", async () => {
    const connection = await connectionFromKubeconfig(kubeconfig());
    assert.equal(connection.server, "https://127.0.0.1:6443");
    assert.equal(connection.certificateAuthority, "CA");
    assert.equal(connection.serverName, "kubernetes");
    assert.deepEqual(await connection.authorize?.(), { Authorization: "Bearer secret-token" });
  });

  it("takes another context by name, with its client certificate", async () => {
    const connection = await connectionFromKubeconfig(kubeconfig(), "other");
    assert.equal(connection.insecureSkipTlsVerify, true);
    assert.equal(connection.clientCertificate, "CERT");
    assert.equal(connection.clientKey, "KEY");
    assert.deepEqual(await connection.authorize?.(), {});
  });

  it("reads files that it names, from beside it", async () => {
    const folder = mkdtempSync(join(tmpdir(), "kubeconfig-"));
    try {
      writeFileSync(join(folder, "token"), "token-of-a-file");
      writeFileSync(join(folder, "ca.crt"), "CA OF A FILE");
      writeFileSync(
        join(folder, "kubeconfig"),
        `apiVersion: v1
kind: Config
current-context: one
clusters: [{ name: c, cluster: { server: "https://127.0.0.1:6443", certificate-authority: ca.crt } }]
users: [{ name: u, user: { tokenFile: token } }, { name: nobody }]
contexts: [{ name: one, context: { cluster: c, user: u } }]
`,
      );
      const connection = await connectionFromFile(join(folder, "kubeconfig"));
      assert.equal(connection.certificateAuthority, "CA OF A FILE");
      assert.deepEqual(await connection.authorize?.(), { Authorization: "Bearer token-of-a-file" });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it("says which contexts there are when the wanted one is missing", async () => {
    assert.equal(await reason(connectionFromKubeconfig(kubeconfig(), "nope")), 'the kubeconfig has no context "nope"; it has edge, other');
  });

  it("says so when the current context leads nowhere", async () => {
    assert.match(await reason(connectionFromKubeconfig(kubeconfig("gone"))), /no usable current context \(current-context is "gone"\)/);
  });

  it("says so when a credential plugin fails", async () => {
    const withPlugin = (command: string): string =>
      JSON.stringify({
        ...(JSON.parse(kubeconfig()) as object),
        users: [
          {
            name: "token",
            user: { exec: { apiVersion: "client.authentication.k8s.io/v1", command, args: ["-e", "process.exit(3)"], interactiveMode: "Never" } },
          },
        ],
      });
    const error: unknown = await connectionFromKubeconfig(withPlugin(process.execPath)).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof ClusterError);
    assert.equal(error.kind, "unauthorized");
    assert.match(error.message, /the kubeconfig gives no usable credentials/);
  });

  it("names a file that cannot be read, and content that is no kubeconfig", async () => {
    assert.match(await reason(connectionFromFile("/nonexistent/kubeconfig")), /the kubeconfig file \/nonexistent\/kubeconfig cannot be read/);
    assert.match(await reason(connectionFromKubeconfig("a: [")), /the kubeconfig is not valid YAML/);
    assert.match(await reason(connectionFromKubeconfig("just text")), /the kubeconfig has no contexts/);
  });
});
