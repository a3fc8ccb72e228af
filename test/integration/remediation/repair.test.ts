import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { join, resolve } from "node:path";

import { z } from "zod";

import {
  hostRemediations,
  inVersion,
  kubeadmConfigTemplates,
  machineDeployments,
  machineHealthChecks,
  machines,
  metal3Remediations,
  metal3RemediationTemplates,
} from "../../../provider/capi/kinds.ts";
import { isClusterError } from "../../../provider/cluster/errors.ts";
import { configMaps, nodes, secrets } from "../../../provider/cluster/kinds.ts";
import { apiVersionOf, type LiveObject, type ResourceKind } from "../../../provider/cluster/objects.ts";
import { inventoryCrds, remediationCrds } from "../../../provider/controller/crds/index.ts";
import { parseNode, parseStatus } from "../../../provider/controller/remediation/views.ts";
import { type Inventory, parseInventory } from "../../../provider/hosts/inventory.ts";
import { baremetalMachineTemplates, machineInventories, machineInventoryPools } from "../../../provider/hosts/kinds.ts";
import { bmcAnnotations } from "../../../provider/hosts/names.ts";
import { type Bed, issueClientCertificate, startBed } from "../../testbed/bed.ts";
import { type Bmcs, startBmcs } from "../../testbed/bmc/bmcs.ts";
import { createCertificateAuthority } from "../../testbed/certificates.ts";
import { type Hosts, startHosts } from "../../testbed/hosts/hosts.ts";
import { type RunningProcess, startProcess, tail } from "../../testbed/processes.ts";
import { until } from "../../testbed/wait.ts";

const repository = resolve(import.meta.dirname, "../../..");
const strategy = {
  type: "Reboot",
  retryLimit: 1,
  timeoutSeconds: 100,
  powerOffTimeoutSeconds: 5,
  powerOnTimeoutSeconds: 5,
  drainTimeoutSeconds: 20,
  offConfirmationSeconds: 1,
  drainConfirmationSeconds: 1,
};

/** Repairs on the real control plane: found by the real MachineHealthCheck, replaced by the real MachineSet. */
describe("the remediation controller", function () {
  this.timeout(240_000);
  let bed: Bed;
  let bmcs: Bmcs;
  let hosts: Hosts;
  let controller: RunningProcess;
  const logPath = (): string => join(bed.directory, "controller.log");

  before(async () => {
    bed = await startBed({ crds: [...inventoryCrds, ...remediationCrds] });
    bmcs = await startBmcs({ directory: bed.directory, certificateAuthority: await createCertificateAuthority("bmc-ca"), hosts: ["rack1-01", "rack1-02"] });
    hosts = startHosts({
      bmcs,
      cluster: bed.management.cluster,
      namespace: bed.namespace,
      directory: bed.directory,
      behaviour: { bootMs: 300, planMs: 200 },
      issueClientCertificate: (user, groups) => issueClientCertificate(bed.management, { user, groups }),
    });
    const address = `127.${randomInt(2, 250)}.${randomInt(0, 250)}.${randomInt(2, 250)}`;
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
    await cluster.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: { namespace, name: "pulumi-baremetal" }, data: {} });
    controller = startProcess({
      name: "controller",
      command: process.execPath,
      args: [join(repository, "provider/controller/main.ts"), "--controllers=remediation,inventory", `--namespaces=${namespace}`],
      logPath: logPath(),
      environment: { ...process.env, KUBECONFIG: bed.management.kubeconfigPath, POD_NAME: "controller-0", POD_NAMESPACE: namespace, POD_IP: address },
    });
    await until("the inventories", async () => (await cluster.list(machineInventories, { namespace })).items.length === 2);
    for (const { host, address: bmcAddress } of bmcs.all) {
      const annotations = { [bmcAnnotations.address]: bmcAddress, [bmcAnnotations.secret]: `${host}-bmc`, [bmcAnnotations.caSecret]: "bmc-ca" };
      await cluster.patch(machineInventories, { namespace, name: host }, "merge", { metadata: { annotations } });
    }
    await makeGroup();
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

  async function make(kind: ResourceKind, name: string, content: object): Promise<LiveObject> {
    return bed.management.cluster.create(kind, { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { namespace: bed.namespace, name }, ...content });
  }

  async function makeGroup(): Promise<void> {
    await make(machineInventoryPools, "edge-workers-pool", {
      spec: {
        machineInventories: [
          { name: "rack1-01", hostname: "edge-w1" },
          { name: "rack1-02", hostname: "edge-w2" },
        ],
      },
    });
    await make(baremetalMachineTemplates, "edge-workers-1", { spec: { template: { spec: { machineInventoryPoolRef: { name: "edge-workers-pool" } } } } });
    await make(kubeadmConfigTemplates, "edge-workers-1", { spec: { template: { spec: { users: [{ name: "boot" }] } } } });
    const labels = { "cluster.x-k8s.io/cluster-name": bed.clusterName, "pool.name": "edge-workers" };
    await make(machineDeployments, "edge-workers", {
      spec: {
        clusterName: bed.clusterName,
        replicas: 1,
        selector: { matchLabels: {} },
        template: {
          metadata: { labels },
          spec: {
            clusterName: bed.clusterName,
            version: "v1.37.2",
            bootstrap: { configRef: { apiGroup: "bootstrap.cluster.x-k8s.io", kind: "KubeadmConfigTemplate", name: "edge-workers-1" } },
            infrastructureRef: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "BaremetalMachineTemplate", name: "edge-workers-1" },
          },
        },
      },
    });
    await make(metal3RemediationTemplates, "edge-workers", { spec: { template: { spec: { strategy } } } });
    await until("Node edge-w1 to be Ready", () => readyNode("edge-w1"), { timeoutMs: 90_000 });
    await make(machineHealthChecks, "edge-workers", {
      spec: {
        clusterName: bed.clusterName,
        selector: { matchLabels: { "pool.name": "edge-workers" } },
        checks: {
          nodeStartupTimeoutSeconds: 600,
          unhealthyNodeConditions: [
            { type: "Ready", status: "Unknown", timeoutSeconds: 2 },
            { type: "Ready", status: "False", timeoutSeconds: 2 },
          ],
        },
        remediation: { templateRef: { apiVersion: apiVersionOf(metal3RemediationTemplates), kind: metal3RemediationTemplates.kind, name: "edge-workers" } },
      },
    });
  }

  async function readyNode(name: string): Promise<LiveObject | undefined> {
    try {
      const found = await bed.workload.cluster.get(nodes, { name });
      return parseNode(found).ready ? found : undefined;
    } catch (error) {
      if (isClusterError(error, "notFound")) return undefined;
      throw error;
    }
  }

  async function remediations(): Promise<LiveObject[]> {
    return (await bed.management.cluster.list(metal3Remediations, { namespace: bed.namespace })).items;
  }

  async function inventory(name: string): Promise<Inventory> {
    return parseInventory(await bed.management.cluster.get(machineInventories, { namespace: bed.namespace, name }));
  }

  it("repairs a hung host: off, fenced, on, one change of its power each, and lets its Node work again", async () => {
    const before = await readyNode("edge-w1");
    assert.ok(before !== undefined);
    await bed.workload.cluster.patch(nodes, { name: "edge-w1" }, "merge", { metadata: { labels: { rack: "1" } } });
    hosts.host("rack1-01").hang();
    await until("a remediation", async () => (await remediations()).length === 1, { timeoutMs: 90_000 });
    let fenceSeen: string | undefined;
    await until(
      "the Node to be Ready again",
      async () => {
        const node = await bed.workload.cluster.get(nodes, { name: "edge-w1" });
        if (fenceSeen === undefined && parseNode(node).outOfService === "ours") fenceSeen = bmcs.bmc("rack1-01").power();
        return parseNode(node).ready && parseNode(node).bootID !== parseNode(before).bootID && parseNode(node).outOfService === "none";
      },
      { timeoutMs: 90_000 },
    );
    assert.equal(fenceSeen, "Off");
    await until("the MachineHealthCheck to remove the remediation", async () => (await remediations()).length === 0, { timeoutMs: 60_000 });
    const changes = bmcs
      .bmc("rack1-01")
      .journal()
      .filter(({ event }) => event === "power")
      .map((entry) => ("power" in entry ? entry.power : undefined));
    assert.deepEqual(changes, ["Off", "On"]);
    assert.equal((await readyNode("edge-w1"))?.metadata.labels?.["rack"], "1");
    const { held, unhealthy } = await inventory("rack1-01");
    assert.deepEqual([held, unhealthy], [false, undefined]);
  });

  it("gives a host that does not come on again up: off, quarantined, its Machine replaced on the next host", async () => {
    const bmc = bmcs.bmc("rack1-01");
    await bmc.setPower({ neverOn: true });
    hosts.host("rack1-01").hang();
    await until("Deleting machine", async () => (await remediations()).some((object) => parseStatus(object).phase === "Deleting machine"), {
      timeoutMs: 120_000,
    });
    await until("Node edge-w2 to be Ready", () => readyNode("edge-w2"), { timeoutMs: 120_000 });
    const { state, unhealthy, held } = await inventory("rack1-01");
    assert.deepEqual([state, unhealthy?.by, held, bmc.power()], ["Quarantined", "remediation", false, "Off"]);
    await until("the remediation to be gone", async () => (await remediations()).length === 0, { timeoutMs: 60_000 });
    const left = (await bed.management.cluster.list(machines, { namespace: bed.namespace })).items;
    assert.equal(left.length, 1);
  });

  it("refuses what no webhook is there to refuse, and keeps a field of the other version", async () => {
    const wrong: [object, string][] = [
      [{ type: "Replace" }, "spec.strategy.type"],
      [{ retryLimit: 0 }, "spec.strategy.retryLimit"],
      [{ timeoutSeconds: 99 }, "spec.strategy.timeoutSeconds"],
      [{ timeout: "99s" }, "spec.strategy.timeout"],
      [{ timeout: "soon" }, "spec.strategy.timeout"],
      [{ timeout: "10m", timeoutSeconds: 600 }, "spec.strategy"],
    ];
    for (const [given, field] of wrong) {
      await assert.rejects(
        make(hostRemediations, "wrong", { spec: { strategy: given } }),
        (error) => isClusterError(error, "invalid") && error.fields.includes(field),
        JSON.stringify(given),
      );
    }
    await make(inVersion(hostRemediations, "v1beta1"), "older", { spec: { strategy: { timeout: "5m" } } });
    const read = await bed.management.cluster.get(hostRemediations, { namespace: bed.namespace, name: "older" });
    assert.deepEqual(z.object({ strategy: z.unknown() }).parse(read["spec"]).strategy, { type: "Reboot", retryLimit: 1, timeout: "5m" });
  });
});
