import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { join, resolve } from "node:path";

import { z } from "zod";

import { clusters, kubeadmConfigTemplates, machineDeployments, machines } from "../../../provider/capi/kinds.ts";
import { isClusterError } from "../../../provider/cluster/errors.ts";
import { configMaps, leases, nodes, secrets } from "../../../provider/cluster/kinds.ts";
import { apiVersionOf, type ResourceKind } from "../../../provider/cluster/objects.ts";
import { parseMachine } from "../../../provider/controller/inventory/machine.ts";
import { inventoryCrds } from "../../../provider/controller/crds/index.ts";
import { type Inventory, parseInventory } from "../../../provider/hosts/inventory.ts";
import { baremetalMachines, baremetalMachineTemplates, machineInventories, machineInventoryPools } from "../../../provider/hosts/kinds.ts";
import { bmcAnnotations, RELEASE_ANNOTATION } from "../../../provider/hosts/names.ts";
import { type Bed, issueClientCertificate, startBed } from "../../testbed/bed.ts";
import { type Bmcs, startBmcs } from "../../testbed/bmc/bmcs.ts";
import { createCertificateAuthority } from "../../testbed/certificates.ts";
import { type Hosts, startHosts } from "../../testbed/hosts/hosts.ts";
import { type RunningProcess, startProcess, tail } from "../../testbed/processes.ts";
import { until } from "../../testbed/wait.ts";

const repository = resolve(import.meta.dirname, "../../..");
const poolName = "edge-workers-pool";
const node = z.object({
  spec: z.object({ providerID: z.string().optional() }),
  status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })).default([]) }),
});
const deployment = z.object({ status: z.object({ readyReplicas: z.number().optional() }).optional() });

/** The machine life of one worker group on the real control plane, from the controller as its own process. */
describe("the inventory controller", function () {
  this.timeout(180_000);
  let bed: Bed;
  let bmcs: Bmcs;
  let hosts: Hosts;
  let controller: RunningProcess;
  let address: string;
  const logPath = (): string => join(bed.directory, "controller.log");

  function startController(): RunningProcess {
    return startProcess({
      name: "controller",
      command: process.execPath,
      args: [join(repository, "provider/controller/main.ts"), "--controllers=inventory", `--namespaces=${bed.namespace}`],
      logPath: logPath(),
      environment: { ...process.env, KUBECONFIG: bed.management.kubeconfigPath, POD_NAME: "controller-0", POD_NAMESPACE: bed.namespace, POD_IP: address },
    });
  }

  before(async () => {
    bed = await startBed({ crds: inventoryCrds });
    bmcs = await startBmcs({ directory: bed.directory, certificateAuthority: await createCertificateAuthority("bmc-ca"), hosts: ["rack1-01", "rack1-02"] });
    hosts = startHosts({
      bmcs,
      cluster: bed.management.cluster,
      namespace: bed.namespace,
      directory: bed.directory,
      behaviour: { bootMs: 300, planMs: 200 },
      issueClientCertificate: (user, groups) => issueClientCertificate(bed.management, { user, groups }),
    });
    address = `127.${randomInt(2, 250)}.${randomInt(0, 250)}.${randomInt(2, 250)}`;
    const { cluster } = bed.management;
    const { namespace } = bed;
    await cluster.create(secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { namespace, name: "bmc-ca" },
      stringData: { "ca.crt": bmcs.certificateAuthority },
    });
    for (const { host, username, password } of bmcs.all) {
      await cluster.create(secrets, { apiVersion: "v1", kind: "Secret", metadata: { namespace, name: `${host}-bmc` }, stringData: { username, password } });
    }
    await cluster.create(configMaps, {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { namespace, name: "pulumi-baremetal" },
      data: { cleanTimeoutSeconds: "5" },
    });
    controller = startController();
    await until("the inventories", async () => (await cluster.list(machineInventories, { namespace })).items.length === 2);
    for (const { host, address: bmcAddress } of bmcs.all) {
      const annotations = { [bmcAnnotations.address]: bmcAddress, [bmcAnnotations.secret]: `${host}-bmc`, [bmcAnnotations.caSecret]: "bmc-ca" };
      await cluster.patch(machineInventories, { namespace, name: host }, "merge", { metadata: { annotations } });
    }
  });

  afterEach(function () {
    if (this.currentTest?.state !== "failed") return;
    bed.keep();
    console.log(`${bed.directory}\n${tail(logPath())}`);
  });

  after(async () => {
    await controller.stop();
    await hosts.stop();
    await bmcs.stop();
    await bed.stop();
  });

  async function make(kind: ResourceKind, name: string, content: object): Promise<void> {
    await bed.management.cluster.create(kind, { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { namespace: bed.namespace, name }, ...content });
  }

  async function scale(replicas: number): Promise<void> {
    await bed.management.cluster.patch(machineDeployments, { namespace: bed.namespace, name: "edge-workers" }, "merge", { spec: { replicas } });
  }

  async function inventory(name: string): Promise<Inventory> {
    return parseInventory(await bed.management.cluster.get(machineInventories, { namespace: bed.namespace, name }));
  }

  async function readyNode(name: string): Promise<z.infer<typeof node> | undefined> {
    try {
      const found = node.parse(await bed.workload.cluster.get(nodes, { name }));
      return found.status.conditions.some(({ type, status }) => type === "Ready" && status === "True") ? found : undefined;
    } catch (error) {
      if (isClusterError(error, "notFound")) return undefined;
      throw error;
    }
  }

  async function nodeNames(): Promise<string[]> {
    return (await bed.workload.cluster.list(nodes)).items.map(({ metadata }) => metadata.name);
  }

  async function ready(): Promise<boolean> {
    const answer = await fetch(`http://${address}:8080/readyz`);
    await answer.text();
    return answer.status === 200;
  }

  it("brings a worker group's first machine up on the first host of the pool", async () => {
    await until("the controller to be ready", ready);
    await make(machineInventoryPools, poolName, {
      spec: {
        machineInventories: [
          { name: "rack1-01", hostname: "edge-w1" },
          { name: "rack1-02", hostname: "edge-w2" },
        ],
      },
    });
    await make(baremetalMachineTemplates, "edge-workers-1", { spec: { template: { spec: { machineInventoryPoolRef: { name: poolName } } } } });
    await make(kubeadmConfigTemplates, "edge-workers-1", {
      spec: {
        template: {
          spec: {
            users: [{ name: "boot", sudo: "ALL=(ALL) NOPASSWD:ALL", shell: "/bin/bash", sshAuthorizedKeys: ["ssh-ed25519 AAAA"] }],
            files: [
              {
                path: "/etc/kubernetes/patches/kubeletconfiguration0+strategic.json",
                owner: "root:root",
                permissions: "0644",
                content: '{"staticPodPath":null}',
              },
            ],
            joinConfiguration: { patches: { directory: "/etc/kubernetes/patches" } },
          },
        },
      },
    });
    await make(machineDeployments, "edge-workers", {
      spec: {
        clusterName: bed.clusterName,
        replicas: 1,
        rollout: { strategy: { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } } },
        selector: { matchLabels: {} },
        template: {
          metadata: { labels: { "cluster.x-k8s.io/cluster-name": bed.clusterName, "pool.name": "edge-workers" } },
          spec: {
            clusterName: bed.clusterName,
            version: "v1.37.2",
            bootstrap: { configRef: { apiGroup: "bootstrap.cluster.x-k8s.io", kind: "KubeadmConfigTemplate", name: "edge-workers-1" } },
            infrastructureRef: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "BaremetalMachineTemplate", name: "edge-workers-1" },
          },
        },
      },
    });
    const found = await until("Node edge-w1 to be Ready", () => readyNode("edge-w1"), { timeoutMs: 90_000 });
    assert.equal(found.spec.providerID, "baremetal:///rack1-01");
    await until("the group to be ready", async () => {
      const live = deployment.parse(await bed.management.cluster.get(machineDeployments, { namespace: bed.namespace, name: "edge-workers" }));
      return live.status?.readyReplicas === 1;
    });
    const [machine] = (await bed.management.cluster.list(baremetalMachines, { namespace: bed.namespace })).items.map(parseMachine);
    assert.deepEqual([machine?.phase, machine?.inventory?.name, machine?.providerId], ["Running", "rack1-01", "baremetal:///rack1-01"]);
    const { state, owner, pool } = await inventory("rack1-01");
    assert.deepEqual([state, owner?.name, pool], ["Allocated", machine?.name, poolName]);
    const counted = await bed.management.cluster.get(machineInventoryPools, { namespace: bed.namespace, name: poolName });
    assert.deepEqual(counted["status"], { total: 2, available: 1 });
  });

  it("has kinds that refuse what is wrong, naming the field", async () => {
    const { cluster } = bed.management;
    const refused = async (write: Promise<unknown>, message: RegExp): Promise<void> => {
      await assert.rejects(write, (error) => isClusterError(error, "invalid") && message.test(error.message));
    };
    const template = { spec: { template: { spec: { machineInventoryPoolRef: { name: "another" } } } } };
    await refused(
      cluster.patch(baremetalMachineTemplates, { namespace: bed.namespace, name: "edge-workers-1" }, "merge", template),
      /a BaremetalMachineTemplate is never edited/,
    );
    await refused(
      make(machineInventoryPools, "bad", { spec: { machineInventories: [{ name: "a" }, { name: "a" }] } }),
      /machineInventories\[1\]: Duplicate value/,
    );
    await refused(make(machineInventoryPools, "bad", { spec: { machineInventories: [{ name: "a", hostname: "UPPER" }] } }), /hostname/);
    await refused(make(baremetalMachineTemplates, "bad", { spec: { template: { spec: {} } } }), /machineInventoryPoolRef: Required value/);
    await refused(
      make(baremetalMachineTemplates, "bad", { spec: { template: { spec: { machineInventoryPoolRef: { name: "a" }, allocationPolicy: "Random" } } } }),
      /Ordered/,
    );
  });

  it("cleans the host when the group shrinks, and offers it again", async () => {
    await scale(0);
    await until("the machine to be gone", async () => (await bed.management.cluster.list(machines, { namespace: bed.namespace })).items.length === 0, {
      timeoutMs: 60_000,
    });
    const { state, owner, pool } = await inventory("rack1-01");
    assert.deepEqual([state, owner, pool], ["Available", undefined, poolName]);
    assert.deepEqual(await nodeNames(), []);
    assert.deepEqual(
      bmcs
        .bmc("rack1-01")
        .journal()
        .filter(({ event }) => event === "reset"),
      [],
    );
    assert.equal(hosts.host("rack1-01").trueState().nodeName, undefined);
  });

  it("lets no hung host's machine go before the host is off, also after being killed, and quarantines it", async () => {
    await scale(1);
    await until("Node edge-w1 to be Ready", () => readyNode("edge-w1"), { timeoutMs: 90_000 });
    const bmc = bmcs.bmc("rack1-01");
    hosts.host("rack1-01").hang();
    await bmc.setFault({ dead: true });
    await scale(0);
    await until(
      "OffNotProven",
      async () => {
        const [machine] = (await bed.management.cluster.list(baremetalMachines, { namespace: bed.namespace })).items.map(parseMachine);
        return machine?.phase === "Failed" && machine.conditions.some(({ type, reason }) => type === "HostGivenUp" && reason === "OffNotProven");
      },
      { timeoutMs: 60_000 },
    );
    assert.deepEqual(await nodeNames(), ["edge-w1"]);
    controller.signal("SIGKILL");
    await controller.exited;
    controller = startController();
    let offWhenGone: string | undefined;
    await bmc.setFault({});
    await until(
      "the Node to be gone",
      async () => {
        const [name] = await nodeNames();
        if (name === undefined) offWhenGone ??= bmc.power();
        return name === undefined;
      },
      { timeoutMs: 90_000 },
    );
    assert.equal(offWhenGone, "Off");
    const { state, owner, held, unhealthy } = await inventory("rack1-01");
    assert.deepEqual([state, owner, held, unhealthy !== undefined], ["Quarantined", undefined, false, true]);
  });

  it("releases the quarantined host: powered on, cleaned, available", async () => {
    const { uid } = await inventory("rack1-01");
    // The host takes a few seconds to start.
    await bed.management.cluster.patch(configMaps, { namespace: bed.namespace, name: "pulumi-baremetal" }, "merge", { data: { cleanTimeoutSeconds: "60" } });
    await bed.management.cluster.patch(machineInventories, { namespace: bed.namespace, name: "rack1-01" }, "merge", {
      metadata: { annotations: { [RELEASE_ANNOTATION]: uid } },
    });
    await until("the inventory to be Available", async () => (await inventory("rack1-01")).state === "Available", { timeoutMs: 90_000 });
    const { unhealthy, release } = await inventory("rack1-01");
    assert.deepEqual([unhealthy, release, bmcs.bmc("rack1-01").power()], [undefined, undefined, "On"]);
  });

  it("does nothing while the Cluster is paused", async () => {
    const pause = async (paused: boolean): Promise<unknown> =>
      bed.management.cluster.patch(clusters, { namespace: bed.namespace, name: bed.clusterName }, "merge", { spec: { paused } });
    await scale(1);
    const machine = await until(
      "a machine to be Running",
      async () =>
        (await bed.management.cluster.list(baremetalMachines, { namespace: bed.namespace })).items.find((object) => parseMachine(object).phase === "Running"),
      { timeoutMs: 60_000 },
    );
    await pause(true);
    await bed.management.cluster.delete(baremetalMachines, { namespace: bed.namespace, name: machine.metadata.name });
    await until("the pause to be told", async () => {
      const live = parseMachine(await bed.management.cluster.get(baremetalMachines, { namespace: bed.namespace, name: machine.metadata.name }));
      return live.conditions.some(({ type, status }) => type === "Paused" && status === "True");
    });
    assert.equal((await inventory("rack1-01")).state, "Allocated");
    await pause(false);
    await until("the inventory to be given up", async () => (await inventory("rack1-01")).owner?.uid !== machine.metadata.uid, { timeoutMs: 60_000 });
  });

  it("ends on SIGTERM with code 0 and releases the Lease", async () => {
    const exit = await controller.stop();
    assert.deepEqual(exit, { code: 0, signal: undefined });
    const lease = await bed.management.cluster.get(leases, { namespace: bed.namespace, name: "pulumi-baremetal-controller" });
    const { holderIdentity } = z.object({ holderIdentity: z.string().optional() }).parse(lease["spec"]);
    assert.equal(holderIdentity ?? "", "");
  });
});
