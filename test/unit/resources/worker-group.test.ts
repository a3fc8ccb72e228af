import assert from "node:assert/strict";

import { kubeadmConfigTemplates, machineDeployments, machines } from "../../../provider/capi/kinds.ts";
import { ClusterError } from "../../../provider/cluster/errors.ts";
import { baremetalMachineTemplates, machineInventories, machineInventoryPools } from "../../../provider/hosts/kinds.ts";
import type { Json } from "../../../provider/resources/inputs.ts";
import { PartialFailure, UNKNOWN } from "../../../provider/resources/lifecycle.ts";
import { jsonOf } from "../../../provider/resources/changes.ts";
import { resources } from "../../../provider/resources/index.ts";
import type { FakeCluster } from "../fakes/fake-cluster.ts";
import type { TestContext } from "./context.ts";
import { contextFor, run, watchForce } from "./context.ts";
import { FakeClusterApi, fakeManagement, NAMESPACE, seedInventory } from "./fake-cluster-api.ts";

const { WorkerGroup } = resources;
const hosts = ["inv-1", "inv-2", "inv-3", "inv-4"];
const pool = { poolName: "edge-workers-pool", namespace: NAMESPACE, machineInventories: hosts.map((name) => ({ name })) };
const key = `${NAMESPACE}/edge-workers`;

function args(change: Json = {}): Json {
  return {
    clusterName: "edge",
    version: "v1.37.2",
    replicas: 2,
    infrastructure: { machineInventory: { pool } },
    bootstrap: { kubeadm: { users: [{ name: "boot" }] } },
    owner: "proj/stack/workers",
    resourceName: "workers",
    ...change,
  };
}

function world(): { cluster: FakeCluster; capi: FakeClusterApi; context: TestContext } {
  const cluster = fakeManagement();
  for (const name of hosts) seedInventory(cluster, name);
  cluster.seed(machineInventoryPools, { metadata: { name: pool.poolName, namespace: NAMESPACE }, spec: { machineInventories: pool.machineInventories } });
  return { cluster, capi: new FakeClusterApi(cluster), context: contextFor(cluster) };
}

async function checked(context: TestContext, news: Json, olds?: Json): Promise<Json> {
  const { inputs, failures } = await WorkerGroup.check(context, olds, news);
  assert.deepEqual(failures, []);
  return inputs;
}

async function created(news: Json = args()): Promise<ReturnType<typeof world> & { state: Json; inputs: Json }> {
  const made = world();
  const inputs = await checked(made.context, news);
  const { state } = await run(made.context, WorkerGroup.create(made.context, inputs), () => made.capi.step());
  made.context.lines.length = 0;
  made.cluster.requests.length = 0;
  return { ...made, state, inputs };
}

function writesOf(cluster: FakeCluster): string[] {
  return cluster.requests
    .filter(({ write }) => write)
    .map(({ verb, resource, key: at }) => `${verb} ${resource.split(".")[0] ?? ""} ${at.replace(`${NAMESPACE}/`, "").replace(/[0-9a-f]{8}$/, "#")}`);
}

describe("WorkerGroup", () => {
  it("checks a new group without a write and says which hosts it takes", async () => {
    const { cluster, context } = world();
    const inputs = await checked(context, args());
    assert.equal(inputs["machineDeployment"], "edge-workers");
    assert.equal(inputs["namespace"], NAMESPACE);
    assert.equal(inputs["nodeDrainTimeout"], "5m");
    assert.deepEqual(context.lines, ["info: machines: 0 → 2", "info: takes inv-1, inv-2, in pool order"]);
    assert.deepEqual(writesOf(cluster), []);
  });

  it("creates templates, then the MachineDeployment, and waits until its machines are ready", async () => {
    const { cluster, capi, context } = world();
    const inputs = await checked(context, args());
    const { id, state } = await run(context, WorkerGroup.create(context, inputs), () => capi.step());
    assert.equal(id, key);
    assert.deepEqual(writesOf(cluster), [
      "create baremetalmachinetemplates edge-workers-#",
      "create kubeadmconfigtemplates edge-workers-#",
      "apply machinedeployments edge-workers",
    ]);
    assert.deepEqual({ ...state, infrastructureTemplate: "", bootstrapTemplate: "" }, { ...inputs, infrastructureTemplate: "", bootstrapTemplate: "" });
    assert.ok(context.lines.includes("status: 0 of 2 machines ready; m1: host inv-1 Reprovisioning"));
    assert.equal(cluster.all(machines).length, 2);
  });

  it("says that no inventory controller is running, ends at waitTimeout and keeps its state", async () => {
    const { capi, context } = world();
    capi.inventoryController = false;
    const inputs = await checked(context, args({ waitTimeout: "40s" }));
    const failed = run(context, WorkerGroup.create(context, inputs), () => capi.step());
    await assert.rejects(failed, (error) => {
      assert.ok(error instanceof PartialFailure);
      assert.equal(error.id, key);
      assert.equal(jsonOf(error.state)["machineDeployment"], "edge-workers");
      assert.deepEqual(error.reasons, [
        'not finished after 40s: 0 of 2 machines ready; m1: not taken up by any inventory controller; m2: not taken up by any inventory controller. no inventory controller is running: nothing has taken up m1, m2; deploy RemediationController with controllers: ["remediation", "inventory"], and look at its Pods. The next run goes on from here; a larger waitTimeout waits longer',
      ]);
      return true;
    });
    assert.ok(context.lines.some((line) => line.startsWith("warn: no inventory controller is running")));
  });

  it("goes on after that with an update", async () => {
    const { capi, context, cluster } = world();
    capi.inventoryController = false;
    const inputs = await checked(context, args({ waitTimeout: "40s" }));
    const failure: unknown = await run(context, WorkerGroup.create(context, inputs), () => capi.step()).catch((error: unknown) => error);
    assert.ok(failure instanceof PartialFailure);
    capi.inventoryController = true;
    const again = await checked(context, args({ waitTimeout: "40s" }), inputs);
    await run(context, WorkerGroup.update(context, key, jsonOf(failure.state), again), () => capi.step());
    assert.equal(cluster.all(machines).length, 2);
    assert.equal(cluster.all(baremetalMachineTemplates).length, 1);
  });

  it("asks again where the API server asks it to come back later, and nowhere else", async () => {
    const { cluster, capi, context } = world();
    cluster.fail(({ verb }) => verb === "list" || verb === "apply", "throttled", { times: 4 });
    const inputs = await run(context, checked(context, args()));
    await run(context, WorkerGroup.create(context, inputs), () => capi.step());
    assert.equal(cluster.all(machineDeployments).length, 1);
    cluster.fail(({ verb }) => verb === "get", "throttled", { times: 100 });
    await assert.rejects(run(context, WorkerGroup.read(context, key, { ...inputs, infrastructureTemplate: "i", bootstrapTemplate: "b" })), /fake throttled/);
  });

  it("refuses a name that another program has, and says what to do", async () => {
    const { cluster, context } = world();
    cluster.seed(machineDeployments, {
      metadata: { name: "edge-workers", namespace: NAMESPACE, annotations: { "pulumi-baremetal.dev/owner": "other/dev/workers" } },
      spec: {},
    });
    const inputs = { ...(await created()).inputs };
    await assert.rejects(WorkerGroup.create(context, inputs), {
      message: `MachineDeployment ${key} already exists and belongs to other/dev/workers; give this resource another \`name\`, or set \`adopt: true\` to take it over`,
    });
    assert.deepEqual(writesOf(cluster), []);
  });

  it("sees no difference in what it made, nor in the pool's list", async () => {
    const { context, state } = await created();
    const longer = { ...pool, machineInventories: [...pool.machineInventories, { name: "inv-5", hostname: "w5" }] };
    const news = await checked(context, args({ infrastructure: { machineInventory: { pool: longer } } }), args());
    assert.deepEqual(await WorkerGroup.diff(context, key, state, news), { changed: false, replaces: [], deleteBeforeReplace: false });
    const refreshed = await WorkerGroup.read(context, key, state);
    assert.deepEqual(refreshed, { id: key, state });
  });

  it("replaces, the old one first, when what names it changes", async () => {
    const { context, state } = await created();
    const news = await checked(context, args({ name: "other" }), args());
    assert.deepEqual(await WorkerGroup.diff(context, key, state, news), { changed: true, replaces: ["machineDeployment"], deleteBeforeReplace: true });
  });

  it("previews and does a scale-up", async () => {
    const { context, state, inputs, cluster, capi } = await created();
    const news = await checked(context, args({ replicas: 3 }), inputs);
    assert.deepEqual(await WorkerGroup.diff(context, key, state, news), { changed: true, replaces: [], deleteBeforeReplace: false });
    assert.deepEqual(context.lines, ["info: machines: 2 → 3", "info: takes inv-3, in pool order"]);
    await run(context, WorkerGroup.update(context, key, state, news), () => capi.step());
    assert.equal(cluster.all(machines).length, 3);
  });

  it("refuses more than the pool holds", async () => {
    const { context, inputs } = await created();
    const { failures } = await WorkerGroup.check(context, inputs, args({ replicas: 7 }));
    assert.deepEqual(
      failures.map(({ property }) => property),
      ["replicas"],
    );
    assert.match(
      failures[0]?.reason ?? "",
      /^7 machines need 5 more hosts, but pool edge-workers-pool has 2 \(inv-3, inv-4\) to give: 3 are missing\. .*inv-1 is in use by machine m1/,
    );
  });

  it("marks exactly the named machine before it lowers replicas", async () => {
    const { context, state, inputs, cluster, capi } = await created();
    const news = await checked(context, args({ replicas: 1, removeMachines: ["node-m2"] }), inputs);
    await run(context, WorkerGroup.update(context, key, state, news), () => capi.step());
    assert.deepEqual(
      writesOf(cluster).filter((line) => !line.startsWith("create")),
      ["patch machines m2", "apply machinedeployments edge-workers"],
    );
    assert.deepEqual(
      cluster.all(machines).map(({ metadata }) => metadata.name),
      ["m1"],
    );
    assert.equal(cluster.peek(machineInventories, `${NAMESPACE}/inv-2`)?.metadata.annotations?.["baremetal.alauda.io/allocation-state"], "Available");
  });

  it("leaves replicas alone when one of the named machines cannot be marked", async () => {
    const { context, state, inputs, cluster } = await created(args({ replicas: 3 }));
    const news = await checked(context, args({ replicas: 1, removeMachines: ["m2", "m3"] }), inputs);
    cluster.fail(({ verb, key: at }) => verb === "patch" && at.endsWith("m3"), "forbidden");
    await assert.rejects(run(context, WorkerGroup.update(context, key, state, news)));
    assert.deepEqual(
      writesOf(cluster).filter((line) => line.startsWith("apply")),
      [],
    );
  });

  function markedOf(cluster: FakeCluster): string[] {
    return cluster
      .all(machines)
      .filter(({ metadata }) => metadata.annotations?.["cluster.x-k8s.io/delete-machine"] !== undefined)
      .map(({ metadata }) => metadata.name);
  }

  function mark(cluster: FakeCluster, name: string, manager: string): void {
    cluster.edit(machines, `${NAMESPACE}/${name}`, ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, "cluster.x-k8s.io/delete-machine": "true" };
      const fieldsV1 = { "f:metadata": { "f:annotations": { ".": {}, "f:cluster.x-k8s.io/delete-machine": {} } } };
      const entry = { manager, operation: "Update", fieldsType: "FieldsV1", fieldsV1 };
      metadata.managedFields = [entry];
    });
  }

  it("takes its marks off again where replicas could not be lowered, and leaves those of others", async () => {
    const { context, state, inputs, cluster } = await created(args({ replicas: 3 }));
    mark(cluster, "m3", "kubectl");
    const news = await checked(context, args({ replicas: 1, removeMachines: ["m2", "m3"] }), inputs);
    cluster.fail(({ verb }) => verb === "apply", "forbidden");
    await assert.rejects(run(context, WorkerGroup.update(context, key, state, news)), /does not permit fake request: fake forbidden/);
    assert.deepEqual(
      writesOf(cluster).filter((line) => !line.startsWith("create")),
      ["patch machines m2", "apply machinedeployments edge-workers", "patch machines m2"],
    );
    assert.deepEqual(markedOf(cluster), ["m3"]);
  });

  it("keeps its marks where replicas were lowered although the answer was an error", async () => {
    const { context, state, inputs, cluster } = await created();
    const news = await checked(context, args({ replicas: 1, removeMachines: ["m2"] }), inputs);
    cluster.fail(({ verb }) => verb === "apply", "forbidden", { after: true });
    await assert.rejects(run(context, WorkerGroup.update(context, key, state, news)));
    assert.deepEqual(markedOf(cluster), ["m2"]);
  });

  it("tells the first error where its marks cannot be taken off either", async () => {
    const { context, state, inputs, cluster } = await created();
    const news = await checked(context, args({ replicas: 1, removeMachines: ["m2"] }), inputs);
    cluster.fail(({ verb }) => verb === "apply", "invalid");
    let patches = 0;
    cluster.fail(({ verb }) => verb === "patch" && ++patches > 1, "forbidden");
    await assert.rejects(run(context, WorkerGroup.update(context, key, state, news)), /refuses fake request: fake invalid/);
  });

  it("takes marks of an earlier run off machines that are not named now, and leaves those of others", async () => {
    const { context, state, inputs, cluster, capi } = await created(args({ replicas: 3 }));
    mark(cluster, "m1", "pulumi-baremetal");
    mark(cluster, "m3", "kubectl");
    const news = await checked(context, args({ replicas: 2, removeMachines: ["m2"] }), inputs);
    await run(context, WorkerGroup.update(context, key, state, news), () => capi.step());
    assert.deepEqual(
      cluster.all(machines).map(({ metadata }) => metadata.name),
      ["m1", "m3"],
    );
    assert.deepEqual(markedOf(cluster), ["m3"]);
  });

  it("keeps the marks of a removal that is still to be done", async () => {
    const { context, state, inputs, cluster, capi } = await created();
    mark(cluster, "m2", "pulumi-baremetal");
    cluster.edit(machineDeployments, key, (object) => Object.assign(object, { spec: { ...jsonOf(object["spec"]), replicas: 1 } }));
    const news = await checked(context, args({ replicas: 1 }), inputs);
    await run(context, WorkerGroup.update(context, key, state, news), () => capi.step());
    assert.deepEqual(
      cluster.all(machines).map(({ metadata }) => metadata.name),
      ["m1"],
    );
  });

  it("rolls a changed bootstrap out with a new template and removes the old one only at the end", async () => {
    const { context, state, inputs, cluster, capi } = await created();
    const before = cluster.all(kubeadmConfigTemplates).map(({ metadata }) => metadata.name);
    const edited = cluster.all(kubeadmConfigTemplates)[0]?.metadata.generation;
    const news = await checked(context, args({ bootstrap: { kubeadm: { users: [{ name: "other" }] } } }), inputs);
    await WorkerGroup.diff(context, key, state, news);
    assert.deepEqual(context.lines, [
      "info: re-provisions one by one, because the bootstrap configuration changes: m1 (node node-m1, host inv-1), m2 (node node-m2, host inv-2)",
    ]);
    let together = 0;
    await run(context, WorkerGroup.update(context, key, state, news), () => {
      together = Math.max(together, cluster.all(kubeadmConfigTemplates).length);
      for (const template of cluster.all(kubeadmConfigTemplates)) assert.equal(template.metadata.generation, edited);
      capi.step();
    });
    assert.equal(together, 2);
    const after = cluster.all(kubeadmConfigTemplates).map(({ metadata }) => metadata.name);
    assert.equal(after.length, 1);
    assert.notDeepEqual(after, before);
    assert.deepEqual(
      cluster
        .all(machines)
        .map(({ metadata }) => metadata.name)
        .sort(),
      ["m3", "m4"],
    );
    const order = writesOf(cluster);
    assert.ok(order.indexOf("create kubeadmconfigtemplates edge-workers-#") < order.indexOf("apply machinedeployments edge-workers"));
    assert.ok(order.indexOf("apply machinedeployments edge-workers") < order.indexOf("delete kubeadmconfigtemplates edge-workers-#"));
  });

  it("changes a drain timeout in place", async () => {
    const { context, state, inputs, cluster, capi } = await created();
    const names = cluster.all(machines).map(({ metadata }) => metadata.name);
    const news = await checked(context, args({ nodeDrainTimeout: "10m" }), inputs);
    await WorkerGroup.diff(context, key, state, news);
    assert.deepEqual(context.lines, ["info: changes in place, no machine is replaced: nodeDrainTimeout"]);
    await run(context, WorkerGroup.update(context, key, state, news), () => capi.step());
    assert.deepEqual(
      cluster.all(machines).map(({ metadata }) => metadata.name),
      names,
    );
  });

  it("takes another waitTimeout into its state, by which a removal goes", async () => {
    const { context, state, inputs, capi } = await created();
    const news = await checked(context, args({ waitTimeout: "7m" }), inputs);
    assert.equal((await WorkerGroup.diff(context, key, state, news)).changed, true);
    assert.deepEqual(context.lines, ["info: changes in place, no machine is replaced: waitTimeout"]);
    const updated = await run(context, WorkerGroup.update(context, key, state, news), () => capi.step());
    assert.equal(updated["waitTimeout"], "7m");
  });

  it("shows drift of replicas after a refresh", async () => {
    const { context, state, inputs, cluster } = await created();
    cluster.edit(machineDeployments, key, (object) => Object.assign(object, { spec: { ...(object["spec"] as object), replicas: 5 } }));
    const refreshed = await WorkerGroup.read(context, key, state);
    assert.equal(refreshed?.state["replicas"], 5);
    assert.equal((await WorkerGroup.diff(context, key, refreshed.state, inputs)).changed, true);
  });

  it("takes back what others changed once a refresh has shown it, and not before", async () => {
    const { context, state, inputs, cluster, capi } = await created();
    const forced = watchForce(cluster, machineDeployments);
    cluster.edit(machineDeployments, key, (object) => Object.assign(object, { spec: { ...(object["spec"] as object), replicas: 5 } }));
    const update = (from: Json): Promise<Json> => run(context, WorkerGroup.update(context, key, from, inputs), () => capi.step());
    const refreshed = await WorkerGroup.read(context, key, state);
    assert.ok(refreshed);
    await update(state);
    cluster.edit(machineDeployments, key, (object) => Object.assign(object, { spec: { ...(object["spec"] as object), replicas: 5 } }));
    await update(refreshed.state);
    assert.deepEqual(forced, [false, true]);
  });

  it("is gone only where the object is, not where the cluster cannot say", async () => {
    const { context, state, cluster } = await created();
    cluster.fail(({ verb, resource }) => verb === "get" && resource.startsWith("machinedeployments"), "forbidden");
    await assert.rejects(WorkerGroup.read(context, key, state), /does not permit/);
    cluster.unserve(machineDeployments);
    await assert.rejects(WorkerGroup.read(context, key, state), /machinedeployments\.cluster\.x-k8s\.io/);
    cluster.serve(machineDeployments);
    cluster.remove(machineDeployments, key);
    assert.equal(await WorkerGroup.read(context, key, state), undefined);
  });

  it("deletes all and waits until the hosts are given back", async () => {
    const { context, state, cluster, capi } = await created();
    await run(context, WorkerGroup.delete(context, key, state), () => capi.stepOfRemoval());
    for (const kind of [machineDeployments, machines, baremetalMachineTemplates, kubeadmConfigTemplates]) assert.deepEqual(cluster.all(kind), []);
    assert.equal(cluster.peek(machineInventories, `${NAMESPACE}/inv-1`)?.metadata.annotations?.["baremetal.alauda.io/allocation-state"], "Available");
  });

  it("leaves a group that another program has taken over", async () => {
    const { context, state, cluster } = await created();
    cluster.edit(machineDeployments, key, ({ metadata }) => (metadata.annotations = { "pulumi-baremetal.dev/owner": "other/dev/workers" }));
    assert.equal(await WorkerGroup.read(context, key, state), undefined);
    await run(context, WorkerGroup.delete(context, key, state));
    assert.deepEqual(writesOf(cluster), []);
    assert.deepEqual(context.lines, [`warn: MachineDeployment ${key} belongs to other/dev/workers now; it is left there`]);
  });

  it("deletes a group that names no owner, but not one that was made anew in the meantime", async () => {
    const { context, state, cluster, capi } = await created();
    const unowned = cluster.edit(machineDeployments, key, ({ metadata }) => (metadata.annotations = {}));
    cluster.before = ({ verb, resource }) => {
      if (verb !== "delete" || !resource.startsWith("machinedeployments")) return;
      cluster.before = undefined;
      cluster.remove(machineDeployments, key);
      cluster.seed(machineDeployments, { metadata: { name: "edge-workers", namespace: NAMESPACE }, spec: unowned["spec"] });
    };
    await assert.rejects(run(context, WorkerGroup.delete(context, key, state)), /has been modified/);
    assert.ok(cluster.peek(machineDeployments, key));
    await run(context, WorkerGroup.delete(context, key, state), () => capi.stepOfRemoval());
    assert.equal(cluster.peek(machineDeployments, key), undefined);
  });

  it("says who would have to act when a removal stands still", async () => {
    const { context, state, cluster } = await created(args({ waitTimeout: "35s" }));
    cluster.remove(machineDeployments, key);
    for (const machine of cluster.all(machines))
      cluster.edit(machines, `${NAMESPACE}/${machine.metadata.name}`, (object) => (object.metadata.deletionTimestamp = "2026-01-01T00:00:00Z"));
    await assert.rejects(run(context, WorkerGroup.delete(context, key, state)), /^Error: not gone after 35s: /);
    assert.ok(context.lines.some((line) => line.startsWith("warn: nothing moves: Cluster API's controllers")));
  });

  describe("in a preview", () => {
    for (const [what, change, failure] of [
      [
        "an unknown pool by name",
        { infrastructure: { machineInventory: { pool: "nope" } } },
        {
          property: "infrastructure.machineInventory.pool",
          reason: "no MachineInventoryPool nope exists in namespace cpaas-system; there are edge-workers-pool",
        },
      ],
      [
        "a pool of another namespace",
        { infrastructure: { machineInventory: { pool: { ...pool, namespace: "other" } } } },
        {
          property: "infrastructure.machineInventory.pool",
          reason: "pool edge-workers-pool is in namespace other, the group in cpaas-system; both must be in the same one, set `namespace`",
        },
      ],
      [
        "hosts of baremetal-operator",
        { infrastructure: { metal3: {} } },
        {
          property: "infrastructure.metal3",
          reason: "is not supported by this version; keep a Metal3MachineTemplate yourself and name it in infrastructure.templateRef",
        },
      ],
      [
        "a label of Cluster API",
        { labels: { "pool.name": "x" } },
        { property: "labels", reason: "pool.name is set by this resource and by Cluster API; remove it" },
      ],
    ] as const) {
      it(`refuses ${what}`, async () => {
        const { context } = world();
        assert.deepEqual((await WorkerGroup.check(context, undefined, args(change))).failures, [failure]);
      });
    }

    it("accepts a pool by name and plans from its list", async () => {
      const { context } = world();
      await checked(context, args({ infrastructure: { machineInventory: { pool: pool.poolName } } }));
      assert.deepEqual(context.lines, ["info: machines: 0 → 2", "info: takes inv-1, inv-2, in pool order"]);
    });

    it("names Cluster API's missing kinds", async () => {
      const { cluster, context } = world();
      cluster.unserve(machineDeployments);
      assert.deepEqual((await WorkerGroup.check(context, undefined, args())).failures, [
        {
          property: "",
          reason:
            "the management cluster does not know machinedeployments.cluster.x-k8s.io (its CustomResourceDefinition is missing); Cluster API brings it: install its core provider (clusterctl init) first",
        },
      ]);
    });

    it("only notes missing kinds of ours, and fails on them in create", async () => {
      const { cluster, context } = world();
      cluster.unserve(baremetalMachineTemplates);
      const inputs = await checked(context, args());
      const note =
        'the management cluster does not know baremetalmachinetemplates.infrastructure.cluster.x-k8s.io (its CustomResourceDefinition is missing); RemediationController brings it: add one with controllers: ["remediation", "inventory"], and let this resource depend on it';
      assert.ok(context.lines.includes(`warn: ${note}`));
      await assert.rejects(WorkerGroup.create(context, inputs), { message: note });
    });

    it("fails where the cluster does not answer or does not permit", async () => {
      const dead = contextFor(() => Promise.reject(new ClusterError("unreachable", "GET /apis", "the API server cannot be reached (ECONNREFUSED)")));
      assert.deepEqual((await WorkerGroup.check(dead, undefined, args())).failures, [
        {
          property: "",
          reason:
            "the management cluster does not answer: the API server cannot be reached (ECONNREFUSED); check the kubeconfig (baremetal:kubeconfig, else KUBECONFIG) and the way to it",
        },
      ]);
      const { cluster, context } = world();
      cluster.fail(({ verb, resource }) => verb === "list" && resource.startsWith("machines."), "forbidden");
      const { failures } = await WorkerGroup.check(context, undefined, args());
      assert.match(failures[0]?.reason ?? "", /does not permit .*; grant this to the kubeconfig's user$/);
    });

    it("says what is not known yet and checks the rest", async () => {
      const { context } = world();
      const unknownPool = { machineInventory: { pool: { ...pool, machineInventories: UNKNOWN } } };
      const { failures } = await WorkerGroup.check(context, undefined, args({ replicas: UNKNOWN, infrastructure: unknownPool, version: "1.2" }));
      assert.deepEqual(
        failures.map(({ property }) => property),
        ["version"],
      );
      context.lines.length = 0;
      await checked(context, args({ replicas: UNKNOWN, infrastructure: unknownPool }));
      assert.deepEqual(context.lines, [
        "info: the hosts of pool edge-workers-pool are not known yet, and so neither which of them are taken",
        "info: replicas are not known yet, and so neither which hosts are taken nor which machines go",
      ]);
    });

    it("does not plan a rollout because a pool's list is not known yet", async () => {
      const { context, state, inputs } = await created();
      const news = await checked(context, args({ infrastructure: { machineInventory: { pool: { ...pool, machineInventories: UNKNOWN } } } }), inputs);
      assert.equal((await WorkerGroup.diff(context, key, state, news)).changed, false);
    });
  });
});
