/** The resources' verbs against real API servers, Cluster API and the inventory controller; only the hosts are simulated. */
import assert from "node:assert/strict";
import { appendFileSync } from "node:fs";
import { join } from "node:path";

import {
  inVersion,
  kubeadmConfigTemplates,
  machineDeployments,
  machineHealthChecks,
  machines,
  metal3RemediationTemplates,
} from "../../../provider/capi/kinds.ts";
import type { CapiVersion } from "../../../provider/capi/kinds.ts";
import { readMachineDeployment } from "../../../provider/capi/machine-deployment.ts";
import { systemClock } from "../../../provider/clock.ts";
import type { Cluster } from "../../../provider/cluster/cluster.ts";
import { isClusterError } from "../../../provider/cluster/errors.ts";
import { nodes, secrets } from "../../../provider/cluster/kinds.ts";
import type { LiveObject, ResourceKind } from "../../../provider/cluster/objects.ts";
import { inventoryCrds, remediationCrds } from "../../../provider/controller/crds/index.ts";
import { ControllerProcess } from "../../../provider/controller/process.ts";
import { JsonLog } from "../../../provider/controller/runtime/log.ts";
import { baremetalMachineTemplates, machineInventories, machineInventoryPools } from "../../../provider/hosts/kinds.ts";
import { createBmcAccess } from "../../../provider/redfish/index.ts";
import { jsonOf } from "../../../provider/resources/changes.ts";
import { resources } from "../../../provider/resources/index.ts";
import type { Json } from "../../../provider/resources/inputs.ts";
import type { Lifecycle, VerbContext } from "../../../provider/resources/lifecycle.ts";
import { PartialFailure } from "../../../provider/resources/lifecycle.ts";
import { issueClientCertificate, startBed } from "../../testbed/bed.ts";
import type { Bed } from "../../testbed/bed.ts";
import { startBmcs } from "../../testbed/bmc/bmcs.ts";
import type { Bmcs } from "../../testbed/bmc/bmcs.ts";
import { createCertificateAuthority } from "../../testbed/certificates.ts";
import { startHosts } from "../../testbed/hosts/hosts.ts";
import type { Hosts } from "../../testbed/hosts/hosts.ts";
import { until } from "../../testbed/wait.ts";

const HOSTS = ["rack1-01", "rack1-02", "rack1-03", "rack1-04"];
const VERSION = "v1.37.2";
const { MachineInventoryPool, WorkerGroup, RemediationPolicy } = resources;

type Managed = Lifecycle<Json, Json>;

/** The cluster as it would be if Cluster API served only its older version. */
function servingOnly(cluster: Cluster, version: CapiVersion): Cluster {
  return new Proxy(cluster, {
    get: (target, property) => {
      if (property === "discover") {
        return async (group: string): Promise<ResourceKind[]> => {
          const kinds = await target.discover(group);
          return group.endsWith("cluster.x-k8s.io") && !group.startsWith("infrastructure") ? kinds.filter((kind) => kind.version === version) : kinds;
        };
      }
      const value: unknown = Reflect.get(target, property);
      return typeof value === "function" ? (value.bind(target) as unknown) : value;
    },
  });
}

describe("the resources on a real control plane", function () {
  this.timeout(240_000);
  let bed: Bed;
  let bmcs: Bmcs;
  let hosts: Hosts;
  let cluster: Cluster;
  let stopController: (() => Promise<void>) | undefined;
  const lines: string[] = [];
  let pool: { inputs: Json; state: Json };
  let group: { inputs: Json; state: Json };

  function contextOn(target: Cluster): VerbContext {
    return {
      cluster: () => Promise.resolve(target),
      bmcs: createBmcAccess(),
      clock: systemClock,
      signal: new AbortController().signal,
      report: { status: (line) => lines.push(line), info: (line) => lines.push(line), warn: (line) => lines.push(line) },
      defaultNamespace: bed.namespace,
    };
  }

  function runController(): () => Promise<void> {
    const stop = new AbortController();
    const log = new JsonLog(systemClock, (line) => appendFileSync(join(bed.directory, "controller.log"), line));
    const controller = new ControllerProcess({
      cluster,
      bmcs: createBmcAccess(),
      clock: systemClock,
      log,
      arguments: {
        controllers: ["inventory"],
        namespaces: [bed.namespace],
        settings: { namespace: bed.namespace, name: "pulumi-baremetal" },
        podName: "test",
        podNamespace: bed.namespace,
        listenAddress: "127.0.0.1",
        nodeName: "",
      },
      healthPort: 0,
    });
    const running = controller.run(stop.signal);
    return async () => {
      stop.abort();
      await running;
    };
  }

  before(async () => {
    bed = await startBed({ crds: [...inventoryCrds, ...remediationCrds] });
    const management = bed.management.cluster;
    cluster = management;
    bmcs = await startBmcs({ directory: bed.directory, certificateAuthority: await createCertificateAuthority("bmc-ca"), hosts: HOSTS });
    hosts = startHosts({
      bmcs,
      cluster: management,
      namespace: bed.namespace,
      directory: bed.directory,
      behaviour: { bootMs: 100, planMs: 100 },
      issueClientCertificate: (user, groups) => issueClientCertificate(bed.management, { user, groups }),
    });
    await cluster.create(secrets, {
      apiVersion: "v1",
      kind: "Secret",
      metadata: { name: "bmc-ca", namespace: bed.namespace },
      data: { "ca.crt": Buffer.from(bmcs.certificateAuthority).toString("base64") },
    });
    await until("all hosts to register", async () => (await cluster.list(machineInventories, { namespace: bed.namespace })).items.length === HOSTS.length);
  });

  afterEach(function () {
    if (this.currentTest?.state === "failed") {
      console.log(lines.slice(-15).join("\n"));
      bed.keep();
    }
    lines.length = 0;
  });

  after(async () => {
    await stopController?.();
    await hosts.stop();
    await bmcs.stop();
    await bed.stop();
  });

  const idOf = (name: string): string => `${bed.namespace}/${name}`;

  async function check(resource: Managed, news: Json, olds?: Json, target: Cluster = cluster): Promise<Json> {
    const { inputs, failures } = await resource.check(contextOn(target), olds, news);
    assert.deepEqual(failures, []);
    return inputs;
  }

  async function unchanged(resource: Managed, id: string, news: Json, olds: Json, state: Json, target: Cluster = cluster): Promise<void> {
    assert.equal((await resource.diff(contextOn(target), id, state, await check(resource, news, olds, target))).changed, false);
    const refreshed = await resource.read(contextOn(target), id, state);
    assert.deepEqual(refreshed, { id, state });
  }

  function poolArgs(): Json {
    return {
      clusterName: "edge",
      machineInventories: HOSTS.map((name, index) => ({ name, hostname: `w${index + 1}`, bmc: { address: bmcs.bmc(name).address, caSecretName: "bmc-ca" } })),
      bmcCredentials: Object.fromEntries(HOSTS.map((name) => [name, { username: bmcs.bmc(name).username, password: bmcs.bmc(name).password }])),
      verifyBmc: true,
      owner: "proj/test/workers",
      resourceName: "workers",
    };
  }

  function groupArgs(change: Json = {}): Json {
    return {
      clusterName: "edge",
      version: VERSION,
      replicas: 2,
      infrastructure: {
        machineInventory: {
          pool: {
            poolName: "edge-workers-pool",
            namespace: bed.namespace,
            machineInventories: HOSTS.map((name, index) => ({ name, hostname: `w${index + 1}` })),
          },
        },
      },
      bootstrap: {
        kubeadm: {
          users: [{ name: "boot", sudo: "ALL=(ALL) NOPASSWD:ALL", sshAuthorizedKeys: ["ssh-ed25519 AAAA"] }],
          files: [{ path: "/etc/motd", permissions: "0644", content: "hello" }],
          joinConfiguration: { nodeRegistration: { kubeletExtraArgs: { "max-pods": "50" } } },
        },
      },
      waitTimeout: "90s",
      owner: "proj/test/workers",
      resourceName: "workers",
      ...change,
    };
  }

  async function namesOf(kind: ResourceKind): Promise<string[]> {
    return (await cluster.list(kind, { namespace: bed.namespace })).items.map(({ metadata }) => metadata.name).sort();
  }

  async function statesOf(): Promise<(string | undefined)[]> {
    return (await cluster.list(machineInventories, { namespace: bed.namespace })).items.map(
      ({ metadata }) => metadata.annotations?.["baremetal.alauda.io/allocation-state"],
    );
  }

  async function nodeNames(): Promise<string[]> {
    return (await bed.workload.cluster.list(nodes)).items.map(({ metadata }) => metadata.name).sort();
  }

  async function found(kind: ResourceKind, name: string): Promise<LiveObject | undefined> {
    try {
      return await cluster.get(kind, { namespace: bed.namespace, name });
    } catch (error) {
      if (isClusterError(error, "notFound")) return undefined;
      throw error;
    }
  }

  it("makes a pool, its Secrets and what it writes on the inventories, after asking each BMC", async () => {
    const inputs = await check(MachineInventoryPool, poolArgs());
    const { id, state } = await MachineInventoryPool.create(contextOn(cluster), inputs);
    assert.equal(id, idOf("edge-workers-pool"));
    pool = { inputs, state };
    const inventory = await cluster.get(machineInventories, { namespace: bed.namespace, name: "rack1-02" });
    assert.equal(inventory.metadata.annotations?.["pulumi-baremetal.dev/bmc-address"], bmcs.bmc("rack1-02").address);
    assert.equal(inventory.metadata.annotations["pulumi-baremetal.dev/bmc-secret"], "rack1-02-bmc");
    await unchanged(MachineInventoryPool, id, poolArgs(), inputs, state);
  });

  for (const version of ["v1beta1", "v1beta2"] as const) {
    it(`writes and reads a group and a policy in ${version}, each in its own shape`, async () => {
      const target = servingOnly(cluster, version);
      const empty = groupArgs({ replicas: 0, name: `edge-${version}`, rollout: { maxSurge: 0, maxUnavailable: "50%" } });
      const inputs = await check(WorkerGroup, empty, undefined, target);
      const { id, state } = await WorkerGroup.create(contextOn(target), inputs);
      await unchanged(WorkerGroup, id, empty, inputs, state, target);
      const live = readMachineDeployment(await cluster.get(machineDeployments, { namespace: bed.namespace, name: `edge-${version}` }));
      assert.deepEqual(
        [live.replicas, live.version, live.maxSurge, live.maxUnavailable, live.nodeDrainSeconds, live.nodeVolumeDetachSeconds],
        [0, VERSION, 0, "50%", 300, 300],
      );
      assert.equal((await WorkerGroup.diff(contextOn(cluster), id, state, inputs)).changed, false, "another version of Cluster API is no change");

      const drain = { ...empty, nodeDrainTimeout: "0s" };
      const next = await WorkerGroup.update(contextOn(target), id, state, await check(WorkerGroup, drain, inputs, target));
      assert.equal(
        readMachineDeployment(await cluster.get(inVersion(machineDeployments, version), { namespace: bed.namespace, name: `edge-${version}` }))
          .nodeDrainSeconds,
        0,
      );

      const policyArgs = {
        workerGroup: { clusterName: "edge", machineDeployment: `edge-${version}`, namespace: bed.namespace },
        maxUnhealthy: "40%",
        owner: "proj/test/p",
        resourceName: version,
      };
      const policyInputs = await check(RemediationPolicy, policyArgs, undefined, target);
      const policy = await RemediationPolicy.create(contextOn(target), policyInputs);
      await unchanged(RemediationPolicy, policy.id, policyArgs, policyInputs, policy.state, target);
      assert.deepEqual((await cluster.get(machineHealthChecks, { namespace: bed.namespace, name: `edge-${version}` }))["spec"], {
        clusterName: "edge",
        selector: { matchLabels: { "cluster.x-k8s.io/cluster-name": "edge", "cluster.x-k8s.io/deployment-name": `edge-${version}` } },
        checks: {
          nodeStartupTimeoutSeconds: 1200,
          unhealthyNodeConditions: [
            { type: "Ready", status: "Unknown", timeoutSeconds: 300 },
            { type: "Ready", status: "False", timeoutSeconds: 300 },
          ],
        },
        remediation: {
          triggerIf: { unhealthyLessThanOrEqualTo: "40%" },
          templateRef: { apiVersion: "infrastructure.cluster.x-k8s.io/v1beta2", kind: "Metal3RemediationTemplate", name: policy.state["remediationTemplate"] },
        },
      });
      const changed = await check(RemediationPolicy, { ...policyArgs, strategy: { retryLimit: 3, powerOffTimeout: "20s" } }, policyInputs, target);
      const policyState = await RemediationPolicy.update(contextOn(target), policy.id, policy.state, changed);
      assert.deepEqual(await namesOf(metal3RemediationTemplates), [policyState["remediationTemplate"]]);
      await RemediationPolicy.delete(contextOn(target), policy.id, policyState);
      assert.deepEqual([await namesOf(machineHealthChecks), await namesOf(metal3RemediationTemplates)], [[], []]);

      await WorkerGroup.delete(contextOn(target), id, next);
      assert.deepEqual([await namesOf(machineDeployments), await namesOf(baremetalMachineTemplates), await namesOf(kubeadmConfigTemplates)], [[], [], []]);
    });
  }

  it("says that no inventory controller is running, and keeps the state of what is there", async () => {
    const inputs = await check(WorkerGroup, groupArgs({ waitTimeout: "12s" }));
    assert.deepEqual(lines, ["machines: 0 → 2", "takes rack1-01 (w1), rack1-02 (w2), in pool order"]);
    const failure: unknown = await WorkerGroup.create(contextOn(cluster), inputs).catch((error: unknown) => error);
    assert.ok(failure instanceof PartialFailure);
    assert.match(failure.message, /^not finished after 12s: 0 of 2 machines ready; .*no inventory controller is running: nothing has taken up edge-workers-/);
    group = { inputs, state: jsonOf(failure.state) };
  });

  it("goes on from there once one runs, and ends when two Nodes are Ready", async () => {
    stopController = runController();
    const inputs = await check(WorkerGroup, groupArgs(), group.inputs);
    group = { inputs, state: await WorkerGroup.update(contextOn(cluster), idOf("edge-workers"), group.state, inputs) };
    assert.deepEqual(await nodeNames(), ["w1", "w2"]);
    await unchanged(WorkerGroup, idOf("edge-workers"), groupArgs(), group.inputs, group.state);
  });

  it("refuses to drop a host in use from the pool", async () => {
    const shorter = { ...poolArgs(), machineInventories: [{ name: "rack1-04" }], bmcCredentials: undefined };
    const { failures } = await MachineInventoryPool.check(contextOn(cluster), pool.inputs, shorter);
    assert.deepEqual(
      failures.map(({ property, reason }) => [property, reason.split(" and cannot")[0]?.replace(/machine \S+$/, "machine …")]),
      [
        ["machineInventories", "inventory rack1-01 is in use by machine …"],
        ["machineInventories", "inventory rack1-02 is in use by machine …"],
      ],
    );
  });

  it("scales up to the hosts that the preview named, and refuses more than there are", async () => {
    const { failures } = await WorkerGroup.check(contextOn(cluster), group.inputs, groupArgs({ replicas: 5 }));
    assert.match(
      failures[0]?.reason ?? "",
      /^5 machines need 3 more hosts, but pool edge-workers-pool has 2 \(rack1-03 \(w3\), rack1-04 \(w4\)\) to give: 1 is missing\. The others cannot be taken: rack1-01 is in use by machine /,
    );
    const inputs = await check(WorkerGroup, groupArgs({ replicas: 3 }), group.inputs);
    await WorkerGroup.diff(contextOn(cluster), idOf("edge-workers"), group.state, inputs);
    assert.deepEqual(lines, ["machines: 2 → 3", "takes rack1-03 (w3), in pool order"]);
    group = { inputs, state: await WorkerGroup.update(contextOn(cluster), idOf("edge-workers"), group.state, inputs) };
    assert.deepEqual(await nodeNames(), ["w1", "w2", "w3"]);
  });

  it("removes exactly the machine whose Node is named, and its host is free again", async () => {
    const inputs = await check(WorkerGroup, groupArgs({ removeMachines: ["w1"] }), group.inputs);
    group = { inputs, state: await WorkerGroup.update(contextOn(cluster), idOf("edge-workers"), group.state, inputs) };
    assert.deepEqual(await nodeNames(), ["w2", "w3"]);
    const inventory = await cluster.get(machineInventories, { namespace: bed.namespace, name: "rack1-01" });
    assert.equal(inventory.metadata.annotations?.["baremetal.alauda.io/allocation-state"], "Available");
    assert.equal(inventory.metadata.annotations["baremetal.alauda.io/pool"], "edge-workers-pool");
    await unchanged(WorkerGroup, idOf("edge-workers"), groupArgs({ removeMachines: ["w1"] }), group.inputs, group.state);
  });

  it("rolls a bootstrap change out one by one and ends only when every machine is new", async () => {
    const before = { templates: await namesOf(kubeadmConfigTemplates), machines: await namesOf(machines) };
    const changed = groupArgs({ bootstrap: { kubeadm: { files: [{ path: "/etc/motd", content: "changed" }] } } });
    const inputs = await check(WorkerGroup, changed, group.inputs);
    await WorkerGroup.diff(contextOn(cluster), idOf("edge-workers"), group.state, inputs);
    assert.equal(lines.length, 1);
    assert.match(
      lines[0] ?? "",
      /^re-provisions one by one, because the bootstrap configuration changes: edge-workers-\S+ \(node w[23], host rack1-0[23]\), edge-workers-\S+ \(node w[23], host rack1-0[23]\)$/,
    );
    group = { inputs, state: await WorkerGroup.update(contextOn(cluster), idOf("edge-workers"), group.state, inputs) };
    const after = { templates: await namesOf(kubeadmConfigTemplates), machines: await namesOf(machines) };
    assert.equal(after.machines.length, 2);
    assert.ok(after.machines.every((name) => !before.machines.includes(name)));
    assert.deepEqual(after.templates, [group.state["bootstrapTemplate"]]);
    assert.ok(!before.templates.includes(String(group.state["bootstrapTemplate"])));
    for (const template of (await cluster.list(kubeadmConfigTemplates, { namespace: bed.namespace })).items) assert.equal(template.metadata.generation, 1);
  });

  it("names the other manager when somebody else has set a field, and takes back what a refresh has shown", async () => {
    await cluster.patch(
      machineDeployments,
      { namespace: bed.namespace, name: "edge-workers" },
      "merge",
      { spec: { replicas: 1 } },
      { fieldManager: "somebody" },
    );
    await assert.rejects(
      WorkerGroup.update(contextOn(cluster), idOf("edge-workers"), group.state, group.inputs),
      /another client has set fields that this resource sets \(\.spec\.replicas\): .*"somebody".*or set adopt: true to take them over/,
    );
    const refreshed = await WorkerGroup.read(contextOn(cluster), idOf("edge-workers"), group.state);
    assert.equal(refreshed?.state["replicas"], 1);
    group.state = await WorkerGroup.update(contextOn(cluster), idOf("edge-workers"), refreshed.state, group.inputs);
    assert.equal((await namesOf(machines)).length, 2);
  });

  it("deletes the group and gives every host back, then the pool", async () => {
    await WorkerGroup.delete(contextOn(cluster), idOf("edge-workers"), group.state);
    assert.deepEqual(await namesOf(machines), []);
    assert.deepEqual([await namesOf(baremetalMachineTemplates), await namesOf(kubeadmConfigTemplates)], [[], []]);
    // A host that never had a machine says nothing of its state.
    assert.deepEqual((await statesOf()).sort(), ["Available", "Available", "Available", undefined]);
    assert.deepEqual(await nodeNames(), []);
    await MachineInventoryPool.delete(contextOn(cluster), idOf("edge-workers-pool"), pool.state);
    assert.equal(await found(machineInventoryPools, "edge-workers-pool"), undefined);
    assert.equal(await found(secrets, "rack1-01-bmc"), undefined);
    for (const { metadata } of (await cluster.list(machineInventories, { namespace: bed.namespace })).items) {
      assert.deepEqual(
        Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith("pulumi-baremetal.dev/") || key.endsWith("/pool")),
        [],
      );
    }
  });
});
