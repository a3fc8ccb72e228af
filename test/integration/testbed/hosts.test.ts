import assert from "node:assert/strict";
import { X509Certificate, createHash, randomBytes } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { z } from "zod";

import { ClusterClient } from "../../../provider/cluster/client.ts";
import { isClusterError } from "../../../provider/cluster/errors.ts";
import { nodes, pods, secrets } from "../../../provider/cluster/kinds.ts";
import { RedfishAccess } from "../../../provider/redfish/access.ts";
import { machineInventories } from "../../../provider/hosts/kinds.ts";
import { issueClientCertificate, startBed } from "../../testbed/bed.ts";
import type { Bed } from "../../testbed/bed.ts";
import { startBmcs } from "../../testbed/bmc/bmcs.ts";
import type { Bmcs } from "../../testbed/bmc/bmcs.ts";
import { createCertificateAuthority } from "../../testbed/certificates.ts";
import { META_DATA_PATH, USER_DATA_PATH } from "../../testbed/hosts/cloud-init.ts";
import { startHosts } from "../../testbed/hosts/hosts.ts";
import type { Hosts } from "../../testbed/hosts/hosts.ts";
import { decodedData } from "../../testbed/hosts/registration.ts";
import { until } from "../../testbed/wait.ts";

const node = z.object({
  metadata: z.object({ uid: z.string() }),
  spec: z.object({ providerID: z.string().optional(), taints: z.array(z.looseObject({ key: z.string() })).default([]) }),
  status: z.object({
    conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]),
    nodeInfo: z.object({ bootID: z.string(), kubeletVersion: z.string() }),
  }),
});
type Node = z.infer<typeof node>;
const inventory = z.object({
  status: z.object({
    conditions: z.array(z.object({ type: z.string(), status: z.string() })),
    plan: z.object({ secretRef: z.object({ name: z.string(), namespace: z.string() }), state: z.string().optional() }),
  }),
});

const readyOf = (found: Node): string | undefined => found.status.conditions.find(({ type }) => type === "Ready")?.status;

describe("a simulated host", function () {
  this.timeout(120_000);
  let bed: Bed;
  let bmcs: Bmcs;
  let hosts: Hosts;
  let access: RedfishAccess;

  before(async () => {
    bed = await startBed();
    bmcs = await startBmcs({ directory: bed.directory, certificateAuthority: await createCertificateAuthority("bmc-ca"), hosts: ["rack1-01", "rack1-02"] });
    hosts = startHosts({
      bmcs,
      cluster: bed.management.cluster,
      namespace: bed.namespace,
      directory: bed.directory,
      behaviour: { bootMs: 200, planMs: 200 },
      issueClientCertificate: (user, groups) => issueClientCertificate(bed.management, { user, groups }),
    });
    access = new RedfishAccess({ spacingMs: 0 });
  });

  afterEach(function () {
    if (this.currentTest?.state === "failed") console.log(hostLog());
  });

  after(async () => {
    await access.close();
    await hosts.stop();
    await bmcs.stop();
    await bed.stop();
  });

  function hostLog(): string {
    const path = join(bed.directory, "hosts.log");
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  async function nodeOf(name: string): Promise<Node | undefined> {
    try {
      return node.parse(await bed.workload.cluster.get(nodes, { name }));
    } catch (error) {
      if (isClusterError(error, "notFound")) return undefined;
      throw error;
    }
  }

  async function secretOf(host: string): Promise<ReadonlyMap<string, Buffer>> {
    return decodedData(await bed.management.cluster.get(secrets, { namespace: bed.namespace, name: host }));
  }

  async function writePlan(host: string, plan: object): Promise<string> {
    const bytes = Buffer.from(JSON.stringify(plan));
    await bed.management.cluster.patch(secrets, { namespace: bed.namespace, name: host }, "merge", { data: { plan: bytes.toString("base64") } });
    return createHash("sha256").update(bytes).digest("hex");
  }

  async function applied(host: string, checksum: string): Promise<void> {
    await until(`${host} to apply its plan`, async () => (await secretOf(host)).get("applied-checksum")?.toString() === checksum);
  }

  /** Returns once the other host, which is as quick, has applied a plan that is younger than whatever this one is to leave alone. */
  async function witness(name: string): Promise<void> {
    for (const round of [1, 2]) await applied("rack1-01", await writePlan("rack1-01", { instructions: [{ name: `${name}-${round}` }] }));
  }

  async function bootstrapToken(): Promise<string> {
    const id = randomBytes(3).toString("hex");
    const secret = randomBytes(8).toString("hex");
    await bed.workload.cluster.create(secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { namespace: "kube-system", name: `bootstrap-token-${id}` },
      type: "bootstrap.kubernetes.io/token",
      stringData: {
        "token-id": id,
        "token-secret": secret,
        "usage-bootstrap-authentication": "true",
        "usage-bootstrap-signing": "true",
        "auth-extra-groups": "system:bootstrappers:kubeadm:default-node-token",
      },
    });
    return `${id}.${secret}`;
  }

  function reprovision(instance: string, hostname: string, provider: string, token: string): object {
    const spki = new X509Certificate(bed.workload.certificateAuthority.certificate).publicKey.export({ type: "spki", format: "der" });
    const configuration = {
      apiVersion: "kubeadm.k8s.io/v1beta4",
      kind: "JoinConfiguration",
      discovery: {
        bootstrapToken: {
          token,
          apiServerEndpoint: new URL(bed.workload.server).host,
          caCertHashes: [`sha256:${createHash("sha256").update(spki).digest("hex")}`],
        },
      },
      nodeRegistration: {
        name: hostname,
        kubeletExtraArgs: [{ name: "provider-id", value: provider }],
        taints: [{ key: "node.cluster.x-k8s.io/uninitialized", effect: "NoSchedule" }],
      },
    };
    const path = "/run/kubeadm/kubeadm-join-config.yaml";
    const userData = `#cloud-config\n${JSON.stringify({ write_files: [{ path, content: JSON.stringify(configuration) }], runcmd: [`kubeadm join --config ${path}`] })}`;
    return {
      files: [
        { path: USER_DATA_PATH, content: Buffer.from(userData).toString("base64"), permissions: "0600" },
        { path: META_DATA_PATH, content: Buffer.from(`instance-id: ${instance}\nlocal-hostname: ${hostname}\n`).toString("base64"), permissions: "0600" },
      ],
      instructions: [{ name: "reprovision", command: "/usr/sbin/reprovision" }],
    };
  }

  it("registers an inventory that is Ready, with a plan Secret that it applies", async () => {
    const found = await until("the inventory", async () =>
      inventory.parse(await bed.management.cluster.get(machineInventories, { namespace: bed.namespace, name: "rack1-01" })),
    );
    assert.deepEqual(
      found.status.conditions.map(({ type, status }) => [type, status]),
      [["Ready", "True"]],
    );
    assert.deepEqual(found.status.plan.secretRef, { name: "rack1-01", namespace: bed.namespace });
    await until("the plan to be shown as applied", async () => {
      const shown = inventory.parse(await bed.management.cluster.get(machineInventories, { namespace: bed.namespace, name: "rack1-01" }));
      return shown.status.plan.state === "Applied";
    });
    assert.equal((await secretOf("rack1-01")).get("plan")?.toString(), "{}");
  });

  it("has the credentials of its own inventory and Secret only", async () => {
    const client = new ClusterClient(await issueClientCertificate(bed.management, { user: "host:rack1-01", groups: [] }));
    try {
      await client.get(secrets, { namespace: bed.namespace, name: "rack1-01" });
      await client.get(machineInventories, { namespace: bed.namespace, name: "rack1-01" });
      for (const refused of [
        () => client.get(secrets, { namespace: bed.namespace, name: "rack1-02" }),
        () => client.get(secrets, { namespace: bed.namespace, name: "edge-kubeconfig" }),
        () => client.list(secrets, { namespace: bed.namespace }),
        () => client.list(machineInventories, { namespace: bed.namespace }),
      ]) {
        await assert.rejects(refused, (error) => isClusterError(error, "forbidden"));
      }
    } finally {
      await client.close();
    }
  });

  it("joins with what its bootstrap data says, and is the same Node with another boot after a power cycle", async () => {
    const token = await bootstrapToken();
    await applied("rack1-01", await writePlan("rack1-01", reprovision("m-1", "w1", "baremetal:///rack1-01", token)));
    const joined = await until("Node w1 to be Ready", async () => {
      const found = await nodeOf("w1");
      return found !== undefined && readyOf(found) === "True" && found;
    });
    assert.equal(joined.spec.providerID, "baremetal:///rack1-01");
    assert.ok(joined.spec.taints.some(({ key }) => key === "node.cluster.x-k8s.io/uninitialized"));
    assert.equal(joined.status.nodeInfo.kubeletVersion, "v1.37.2");
    assert.equal(joined.status.nodeInfo.bootID, hosts.host("rack1-01").trueState().bootIds.at(-1));

    const target = bmcs.bmc("rack1-01");
    const bmc = access.bmc({
      ...target,
      address: target.address,
      username: target.username,
      password: target.password,
      certificateAuthority: bmcs.certificateAuthority,
    });
    await bmc.forceOff();
    await until("the kubelet to be gone", () => !hosts.host("rack1-01").trueState().kubeletRuns);
    assert.equal((await bmc.readPower()).power, "off");
    await bmc.on();
    const back = await until("another boot", async () => {
      const found = await nodeOf("w1");
      return found !== undefined && found.status.nodeInfo.bootID !== joined.status.nodeInfo.bootID && found;
    });
    assert.equal(back.metadata.uid, joined.metadata.uid);
  });

  it("ends the Pods that are deleted while it lives, and none while it hangs", async () => {
    const pod = (name: string): Parameters<typeof bed.workload.cluster.create>[1] => ({
      apiVersion: "v1",
      kind: "Pod",
      metadata: { namespace: "default", name },
      spec: { nodeName: "w1", containers: [{ name: "app", image: "app" }], tolerations: [{ operator: "Exists" }] },
    });
    const gone = async (name: string): Promise<boolean> => {
      const { items } = await bed.workload.cluster.list(pods, { namespace: "default", fieldSelector: `metadata.name=${name}` });
      return items.length === 0;
    };
    const host = hosts.host("rack1-01");
    await bed.workload.cluster.create(pods, pod("one"));
    await bed.workload.cluster.create(pods, pod("two"));
    await bed.workload.cluster.delete(pods, { namespace: "default", name: "one" });
    await until("Pod one to be gone", () => gone("one"));
    host.hang();
    assert.deepEqual([host.trueState().hung, host.trueState().power, host.trueState().kubeletRuns], [true, "On", false]);
    await bed.workload.cluster.delete(pods, { namespace: "default", name: "two" });
    await until("the Node to be Unknown", async () => {
      const found = await nodeOf("w1");
      return found !== undefined && readyOf(found) === "Unknown";
    });
    assert.equal(await gone("two"), false);
    await bmcs.bmc("rack1-01").pressPower("Off");
    await bmcs.bmc("rack1-01").pressPower("On");
    await until("Pod two to be gone", () => gone("two"));
  });

  it("applies nothing while it hangs, is cut off or is off, and makes up for it afterwards", async () => {
    const host = hosts.host("rack1-02");
    const bmc = bmcs.bmc("rack1-02");
    await until("the host to have booted", () => host.trueState().registered && host.trueState().booted);
    host.cutOff();
    const first = await writePlan("rack1-02", { instructions: [{ name: "first" }] });
    await witness("one");
    host.reconnect();
    await applied("rack1-02", first);
    host.hang();
    const second = await writePlan("rack1-02", { instructions: [{ name: "second" }] });
    await witness("two");
    await bmc.pressPower("Off");
    await until("the host to be off", () => host.trueState().power === "Off");
    await witness("three");
    assert.equal((await secretOf("rack1-02")).get("applied-checksum")?.toString(), first);
    await bmc.pressPower("On");
    await applied("rack1-02", second);
    assert.deepEqual(
      host.trueState().plans.filter(({ instructions }) => instructions.length > 0),
      [
        { instructions: ["first"], applied: true },
        { instructions: ["second"], applied: true },
      ],
    );
  });

  it("fails a plan with its output", async () => {
    hosts.host("rack1-02").behaviour.planFailure = "no space left on device";
    const checksum = await writePlan("rack1-02", { instructions: [{ name: "third" }] });
    const data = await until("the plan to fail", async () => {
      const found = await secretOf("rack1-02");
      return found.get("failed-checksum")?.toString() === checksum && found;
    });
    assert.equal(data.get("failed-output")?.toString(), "no space left on device");
    hosts.host("rack1-02").behaviour.planFailure = undefined;
  });

  it("leaves the cluster when it is cleaned, and stays out of it", async () => {
    const host = hosts.host("rack1-01");
    await until("the host to be in the cluster", () => host.trueState().kubeletRuns);
    await applied("rack1-01", await writePlan("rack1-01", { instructions: [{ name: "clean", command: "/usr/sbin/clean" }] }));
    assert.equal(host.trueState().nodeName, undefined);
    assert.equal(host.trueState().kubeletRuns, false);
    const boots = host.trueState().bootIds.length;
    await bmcs.bmc("rack1-01").pressPower("Off");
    await bmcs.bmc("rack1-01").pressPower("On");
    await until("another boot", () => host.trueState().bootIds.length === boots + 1);
    assert.equal(host.trueState().nodeName, undefined);
  });

  it("joins never, not where the CA is another than its bootstrap data says, or under a wrong name, as it is told to", async () => {
    const host = hosts.host("rack1-02");
    host.behaviour.joinDelayMs = "never";
    await applied("rack1-02", await writePlan("rack1-02", reprovision("m-2", "w2", "baremetal:///rack1-02", "aaaaaa.0123456789abcdef")));
    await until("the host to have booted again", () => host.trueState().booted);
    assert.equal(host.trueState().nodeName, undefined);
    host.behaviour.joinDelayMs = 0;
    const token = await bootstrapToken();
    const wrong = JSON.parse(JSON.stringify(reprovision("m-3", "w2", "baremetal:///rack1-02", token))) as { files: { content: string }[] };
    const userData = Buffer.from(wrong.files[0]!.content, "base64")
      .toString()
      .replace(/sha256:[0-9a-f]{64}/, `sha256:${"0".repeat(64)}`);
    wrong.files[0]!.content = Buffer.from(userData).toString("base64");
    await applied("rack1-02", await writePlan("rack1-02", wrong));
    await until("the join to be refused", () => hostLog().includes("rack1-02 kubeadm join: the cluster's CA is not the one whose hash the bootstrap data has"));
    assert.equal(await nodeOf("w2"), undefined);
    host.behaviour.wrongName = "w2-wrong";
    await applied("rack1-02", await writePlan("rack1-02", reprovision("m-4", "w2", "baremetal:///rack1-02", token)));
    await until("Node w2-wrong", async () => (await nodeOf("w2-wrong")) !== undefined);
    assert.equal(await nodeOf("w2"), undefined);
  });
});
