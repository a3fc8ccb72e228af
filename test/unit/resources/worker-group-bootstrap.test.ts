import assert from "node:assert/strict";

import { completeBootstrap, refusedFields } from "../../../provider/resources/worker-group/bootstrap.ts";

const PATCH = "/etc/kubernetes/patches/kubeletconfiguration0+strategic.json";

function contentOf(config: { [field: string]: unknown }, path: string): unknown {
  const files: unknown = config["files"];
  assert.ok(Array.isArray(files));
  const file: unknown = files.find((candidate: { path: string }) => candidate.path === path);
  assert.ok(typeof file === "object" && file !== null && "content" in file && typeof file.content === "string");
  return JSON.parse(file.content);
}

describe("bootstrap of a group", () => {
  for (const [what, kubeadm, property] of [
    ["the host name", { joinConfiguration: { nodeRegistration: { name: "w1" } } }, "bootstrap.kubeadm.joinConfiguration.nodeRegistration.name"],
    [
      "provider-id",
      { joinConfiguration: { nodeRegistration: { kubeletExtraArgs: { "provider-id": "x" } } } },
      "bootstrap.kubeadm.joinConfiguration.nodeRegistration.kubeletExtraArgs.provider-id",
    ],
    [
      "hostname-override",
      { joinConfiguration: { nodeRegistration: { kubeletExtraArgs: { "hostname-override": "x" } } } },
      "bootstrap.kubeadm.joinConfiguration.nodeRegistration.kubeletExtraArgs.hostname-override",
    ],
    ["/etc/hostname", { files: [{ path: "/etc/hostname", content: "w1" }] }, "bootstrap.kubeadm.files[0].path"],
    ["a file without content", { files: [{ path: "/a" }] }, "bootstrap.kubeadm.files[0]"],
    ["a kubelet patch that cannot be completed", { files: [{ path: PATCH, content: "a: b" }] }, "bootstrap.kubeadm.files[0].content"],
  ] as const) {
    it(`refuses ${what} and names the field`, () => {
      const failures = refusedFields({ ...kubeadm, files: "files" in kubeadm ? [...kubeadm.files] : undefined }, "v1.37.2");
      assert.deepEqual(
        failures.map((failure) => failure.property),
        [property],
      );
    });
  }

  it("adds the kubelet setting from Kubernetes 1.35 on", () => {
    const config = completeBootstrap({}, "v1.35.0");
    assert.deepEqual(config["joinConfiguration"], { patches: { directory: "/etc/kubernetes/patches" } });
    assert.deepEqual(contentOf(config, PATCH), {
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
      imagePullCredentialsVerificationPolicy: "NeverVerify",
    });
  });

  it("adds nothing before", () => {
    const kubeadm = { users: [{ name: "boot" }] };
    assert.deepEqual(completeBootstrap(kubeadm, "v1.34.9"), kubeadm);
  });

  it("refuses the setting before Kubernetes 1.35", () => {
    const files = [{ path: PATCH, content: '{"imagePullCredentialsVerificationPolicy":"NeverVerify"}' }];
    assert.equal(refusedFields({ files }, "v1.34.2")[0]?.property, "bootstrap.kubeadm.files[0].content");
    assert.deepEqual(refusedFields({ files }, "v1.35.0"), []);
  });

  it("merges it into the user's patch and leaves the rest of that file alone", () => {
    const config = completeBootstrap(
      {
        files: [
          { path: "/a", content: "x" },
          { path: PATCH, permissions: "0600", content: '{"protectKernelDefaults":true}' },
        ],
        joinConfiguration: { skipPhases: ["preflight"] },
      },
      "v1.37.2",
    );
    assert.deepEqual(contentOf(config, PATCH), {
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      kind: "KubeletConfiguration",
      imagePullCredentialsVerificationPolicy: "NeverVerify",
      protectKernelDefaults: true,
    });
    assert.deepEqual(config["joinConfiguration"], { skipPhases: ["preflight"], patches: { directory: "/etc/kubernetes/patches" } });
    const files: unknown = config["files"];
    assert.ok(Array.isArray(files));
    assert.equal(files.length, 2);
    assert.deepEqual(files[0], { path: "/a", content: "x" });
    assert.equal((files[1] as { permissions: string }).permissions, "0600");
  });

  it("lets the user's own value stand", () => {
    const files = [{ path: PATCH, content: '{"imagePullCredentialsVerificationPolicy":"AlwaysVerify"}' }];
    assert.equal(
      (contentOf(completeBootstrap({ files }, "v1.37.2"), PATCH) as Record<string, unknown>)["imagePullCredentialsVerificationPolicy"],
      "AlwaysVerify",
    );
  });

  it("uses the user's folder of patches", () => {
    const config = completeBootstrap({ joinConfiguration: { patches: { directory: "/opt/patches" } } }, "v1.37.2");
    assert.ok(contentOf(config, "/opt/patches/kubeletconfiguration0+strategic.json"));
  });
});
