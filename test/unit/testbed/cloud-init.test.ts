import assert from "node:assert/strict";
import { gzipSync } from "node:zlib";

import { META_DATA_PATH, USER_DATA_PATH, joinOf, seedOf } from "../../testbed/hosts/cloud-init.ts";
import type { Seed } from "../../testbed/hosts/cloud-init.ts";

const joinConfiguration = (registration: string): string => `apiVersion: kubeadm.k8s.io/v1beta4
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: 127.0.0.1:6443
    caCertHashes: ["sha256:abc"]
    token: abcdef.0123456789abcdef
nodeRegistration:
${registration}`;

function userData(registration: string, content = joinConfiguration(registration), encoding = ""): string {
  return `## template: jinja
#cloud-config

write_files:
-   path: /run/kubeadm/kubeadm-join-config.yaml
    owner: root:root
    permissions: '0640'
${encoding === "" ? "" : `    encoding: ${encoding}\n`}    content: |
${content.replaceAll(/^/gm, "      ")}
runcmd:
  - kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml  && echo success > /run/cluster-api/bootstrap-success.complete
`;
}

const seed = (text: string): Seed => ({ instanceId: "m1", userData: text, metaData: { "instance-id": "m1", "local-hostname": "edge-1-w1" } });

describe("the cloud-init of a simulated host", () => {
  it("joins with name, provider id, labels and taints of the newer kubeadm form", () => {
    const text = userData(`  name: '{{ ds.meta_data.local_hostname }}'
  kubeletExtraArgs:
  - {name: provider-id, value: 'baremetal:///rack1-07'}
  - {name: node-labels, value: 'a=b,zone/c=d'}
  taints:
  - {key: node.cluster.x-k8s.io/uninitialized, effect: NoSchedule}`);
    assert.deepEqual(joinOf(seed(text)), {
      server: "https://127.0.0.1:6443",
      token: "abcdef.0123456789abcdef",
      caCertHashes: ["sha256:abc"],
      nodeName: "edge-1-w1",
      providerId: "baremetal:///rack1-07",
      labels: { a: "b", "zone/c": "d" },
      taints: [{ key: "node.cluster.x-k8s.io/uninitialized", effect: "NoSchedule" }],
    });
  });

  it("understands the older map of kubelet arguments, and takes its name from the meta-data where none is given", () => {
    const join = joinOf(seed(userData("  kubeletExtraArgs:\n    provider-id: 'baremetal:///rack1-07'\n  taints: null")));
    assert.equal(join.providerId, "baremetal:///rack1-07");
    assert.equal(join.nodeName, "edge-1-w1");
    assert.deepEqual(join.taints, []);
  });

  it("decodes files", () => {
    const content = gzipSync(joinConfiguration("  name: zipped")).toString("base64");
    assert.equal(joinOf(seed(userData("", content, "gzip+base64"))).nodeName, "zipped");
  });

  it("fails where a placeholder, the command or the configuration is missing", () => {
    assert.throws(() => joinOf(seed(userData("  name: '{{ ds.meta_data.serial }}'"))), /asks for ds\.meta_data\.serial/);
    assert.throws(() => joinOf(seed("#cloud-config\nruncmd: [echo]\n")), /runs no kubeadm join/);
    assert.throws(() => joinOf(seed("#cloud-config\nruncmd: ['kubeadm join --config /x']\n")), /writes no file \/x/);
    assert.throws(() => joinOf(seed(userData("", "kind: ClusterConfiguration"))), /holds no JoinConfiguration/);
  });

  it("finds its seed on the disk", () => {
    assert.equal(seedOf(new Map()), undefined);
    const found = seedOf(
      new Map([
        [USER_DATA_PATH, "#cloud-config\n"],
        [META_DATA_PATH, "instance-id: 7\nlocal-hostname: w1\n"],
      ]),
    );
    assert.deepEqual(found, { instanceId: "7", userData: "#cloud-config\n", metaData: { "instance-id": "7", "local-hostname": "w1" } });
  });
});
