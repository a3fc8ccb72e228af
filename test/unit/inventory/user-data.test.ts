import assert from "node:assert/strict";

import { parse, parseAllDocuments } from "yaml";

import { normaliseUserData, UserDataError } from "../../../provider/controller/inventory/user-data.ts";
import { initV1beta4, joinV1beta3, joinV1beta4, joinV1beta4WithArguments } from "./bootstrap-data.ts";

const host = { hostname: "edge-w1", providerId: "baremetal:///rack1-07" };

interface CloudConfig {
  hostname: string;
  fqdn: string;
  preserve_hostname: boolean;
  write_files: { path: string; permissions: string; content: string }[];
  runcmd: string[];
  users: { sudo: string; ssh_authorized_keys: string[] }[];
}

function cloudConfig(text: string): CloudConfig {
  return parse(text, { version: "1.1" }) as CloudConfig;
}

function join(text: string): unknown {
  const file = cloudConfig(text).write_files.find(({ path }) => path === "/run/kubeadm/kubeadm-join-config.yaml");
  return parseAllDocuments(file?.content ?? "").map((document) => document.toJS() as unknown)[0];
}

function registration(text: string): unknown {
  const parsed = join(text);
  return typeof parsed === "object" && parsed !== null ? Reflect.get(parsed, "nodeRegistration") : undefined;
}

describe("user-data", () => {
  it("gets the host's name, its provider id as a list for v1beta4, and a CRI socket", () => {
    assert.deepEqual(registration(normaliseUserData(joinV1beta4, host)), {
      name: "edge-w1",
      imagePullPolicy: "IfNotPresent",
      criSocket: "unix:///var/run/containerd/containerd.sock",
      kubeletExtraArgs: [{ name: "provider-id", value: "baremetal:///rack1-07" }],
      taints: [{ effect: "NoSchedule", key: "node.cluster.x-k8s.io/uninitialized" }],
    });
  });

  it("keeps other arguments and a CRI socket that is set, and replaces a provider id", () => {
    assert.deepEqual(registration(normaliseUserData(joinV1beta4WithArguments, host)), {
      name: "edge-w1",
      criSocket: "unix:///run/crio/crio.sock",
      kubeletExtraArgs: [
        { name: "v", value: "2" },
        { name: "provider-id", value: "baremetal:///rack1-07" },
      ],
      taints: [{ effect: "NoSchedule", key: "node.cluster.x-k8s.io/uninitialized" }],
    });
  });

  it("has the arguments as a map for v1beta3", () => {
    const changed = registration(normaliseUserData(joinV1beta3, host));
    assert.deepEqual(typeof changed === "object" && changed !== null && Reflect.get(changed, "kubeletExtraArgs"), {
      "node-labels": "a=b",
      "provider-id": "baremetal:///rack1-07",
    });
  });

  it("keeps its head, and everything else means what it meant before", () => {
    const after = normaliseUserData(joinV1beta4, host);
    assert.ok(after.startsWith("## template: jinja\n#cloud-config\n"));
    const { hostname, fqdn, preserve_hostname, write_files, ...rest } = cloudConfig(after);
    assert.deepEqual([hostname, fqdn, preserve_hostname], ["edge-w1", "edge-w1", false]);
    const before = cloudConfig(joinV1beta4);
    const others = (config: Pick<CloudConfig, "write_files">): unknown => config.write_files.filter(({ path }) => !path.includes("join-config"));
    assert.deepEqual(others({ write_files }), others(before));
    assert.deepEqual({ ...rest, write_files: before.write_files }, before);
    assert.equal(write_files.find(({ path }) => path.includes("join-config"))?.permissions, "0640");
  });

  it("is the same when it is normalised twice", () => {
    const once = normaliseUserData(joinV1beta4, host);
    assert.equal(normaliseUserData(once, host), once);
  });

  it("keeps a host name a string that YAML 1.1 would take for something else", () => {
    for (const hostname of ["on", "12", "1e3"]) {
      assert.equal(cloudConfig(normaliseUserData(joinV1beta4, { ...host, hostname })).hostname, hostname);
      const changed = registration(normaliseUserData(joinV1beta4, { ...host, hostname }));
      assert.equal(typeof changed === "object" && changed !== null && Reflect.get(changed, "name"), hostname);
    }
  });

  const refused: [string, string, RegExp][] = [
    ["a control plane's", initV1beta4, /holds no JoinConfiguration/],
    ["another bootstrap provider's", "#cloud-config\nruncmd: [ls]\n", /writes no kubeadm-join-config\.yaml/],
    ["ignition", '{"ignition":{"version":"2.3.0"}}', /not cloud-init user-data/],
    ["broken", "#cloud-config\nwrite_files: [\n", /not valid YAML/],
    ["empty", "", /not cloud-init user-data/],
  ];
  for (const [name, text, message] of refused) {
    it(`is refused where it is ${name}`, () => {
      assert.throws(
        () => normaliseUserData(text, host),
        (error) => error instanceof UserDataError && message.test(error.message),
      );
    });
  }
});
