import assert from "node:assert/strict";

import { clusters, machines } from "../../../provider/capi/kinds.ts";
import { baremetalMachines, machineInventories, machineInventoryPools } from "../../../provider/hosts/kinds.ts";
import { allocationAnnotations, PLAN_TYPE_ANNOTATION, POWER_HOLD_ANNOTATION, UNHEALTHY_ANNOTATION } from "../../../provider/hosts/names.ts";
import { secrets } from "../../../provider/cluster/kinds.ts";
import { initV1beta4 } from "./bootstrap-data.ts";
import { namespace, poolName, World } from "./world.ts";

describe("provisioning a machine", () => {
  let world: World;

  beforeEach(() => {
    world = new World();
  });

  afterEach(async () => world.end());

  it("goes from Pending to Running on the first available inventory of the pool", async () => {
    world.hosts(3);
    world.annotate("inv-1", { [UNHEALTHY_ANNOTATION]: "{}" });
    await world.start();
    world.machine("m1");
    await world.advance(3_000);
    const machine = world.get("m1");
    assert.equal(world.at("m1"), "Reprovisioning/Reprovisioning");
    assert.deepEqual(machine?.finalizers, ["baremetalmachine.infrastructure.cluster.x-k8s.io"]);
    assert.equal(machine.inventory?.name, "inv-2");
    const inventory = world.inventory("inv-2");
    assert.deepEqual(
      [inventory.state, inventory.owner, inventory.pool],
      ["Allocated", { kind: "BaremetalMachine", namespace, name: "m1", uid: machine.uid }, poolName],
    );

    const plan = world.plan("inv-2");
    assert.deepEqual([plan.type, plan.id, plan.hostname], ["reprovision", world.uidOfMachine("m1"), "edge-w2"]);
    const secret = world.cluster.peek(secrets, `${namespace}/inv-2`);
    assert.equal(secret?.metadata.annotations?.[PLAN_TYPE_ANNOTATION], "reprovision");
    const resolved = world.data("m1-bootstrap")["resolved-value"] ?? "";
    assert.match(resolved, /name: edge-w2\n/);
    assert.match(resolved, /value: baremetal:\/\/\/inv-2\n/);
    const files: unknown = JSON.parse(world.data("inv-2")["plan"] ?? "");
    const file = (path: string): string => {
      const list: unknown = typeof files === "object" && files !== null ? Reflect.get(files, "files") : [];
      const found: unknown = Array.isArray(list) ? list.find((candidate: { path?: unknown }) => candidate.path === path) : undefined;
      return Buffer.from(typeof found === "object" && found !== null ? String(Reflect.get(found, "content")) : "", "base64").toString("utf8");
    };
    assert.equal(file("/var/lib/cloud/seed/nocloud/user-data"), resolved);
    assert.equal(file("/var/lib/cloud/seed/nocloud/meta-data"), `instance-id: ${world.uidOfMachine("m1")}\nlocal-hostname: edge-w2\n`);

    world.applyPlan("inv-2");
    await world.advance(3_000);
    assert.equal(world.at("m1"), "Running/Provisioned");
    const live = world.live("m1");
    assert.deepEqual(live["spec"], { machineInventoryPoolRef: { name: poolName }, providerID: "baremetal:///inv-2" });
    const status: unknown = live["status"];
    assert.ok(typeof status === "object" && status !== null);
    assert.deepEqual(Reflect.get(status, "ready"), true);
    assert.deepEqual(Reflect.get(status, "initialization"), { provisioned: true });
    assert.deepEqual(Reflect.get(status, "addresses"), [{ type: "Hostname", address: "edge-w2" }]);
    assert.deepEqual(world.cluster.peek(machineInventoryPools, `${namespace}/${poolName}`)?.["status"], { total: 3, available: 1 });
  });

  it("sets the provider id before it says ready", async () => {
    world.hosts(1);
    await world.start();
    const order: string[] = [];
    world.cluster.after = ({ resource, subresource, body }) => {
      if (resource !== "baremetalmachines.infrastructure.cluster.x-k8s.io") return;
      const text = JSON.stringify(body);
      if (text.includes("providerID")) order.push("providerID");
      if (subresource === "status" && text.includes('"ready":true')) order.push("ready");
    };
    await world.running("m1", "inv-1");
    assert.deepEqual(order, ["providerID", "ready"]);
  });

  it("takes hosts in declared order, also for machines that come at once", async () => {
    world.hosts(4);
    await world.start();
    for (const name of ["m1", "m2", "m3"]) world.machine(name);
    await world.advance(3_000);
    assert.deepEqual(
      ["m1", "m2", "m3"].map((name) => world.get(name)?.inventory?.name),
      ["inv-1", "inv-2", "inv-3"],
    );
    assert.equal(world.inventory("inv-4").owner, undefined);
  });

  it("says why each inventory does not count, and goes on when one becomes free", async () => {
    world.hosts(2);
    world.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: "x" });
    world.cluster.edit(
      machineInventories,
      `${namespace}/inv-2`,
      (object) => (object["status"] = { conditions: [{ type: "Ready", status: "False", message: "no plan yet" }] }),
    );
    await world.start();
    world.machine("m1");
    await world.advance(1_000);
    assert.equal(world.at("m1"), "Pending/NoInventoryAvailable");
    assert.equal(world.message("m1"), `pool ${poolName} has no available inventory: inv-1 is held off by a repair; inv-2 is not Ready (no plan yet)`);
    world.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: undefined });
    await world.advance(3_000);
    assert.equal(world.get("m1")?.inventory?.name, "inv-1");
  });

  it("waits for bootstrap data and for the pool", async () => {
    await world.start();
    world.machine("m1", { bootstrap: false });
    await world.advance(1_000);
    assert.equal(world.at("m1"), "Pending/WaitingForBootstrapData");
    world.machine("m2");
    await world.advance(1_000);
    assert.equal(world.at("m2"), "Pending/PoolNotFound");
    world.hosts(1);
    await world.advance(3_000);
    assert.equal(world.at("m2"), "Reprovisioning/Reprovisioning");
  });

  it("fails with the end of the output when the plan fails, and counts a later success", async () => {
    world.hosts(1);
    await world.start();
    world.machine("m1");
    await world.advance(3_000);
    world.failPlan("inv-1", `${"x".repeat(5_000)}: disk is full`);
    await world.advance(3_000);
    assert.equal(world.at("m1"), "Failed/PlanFailed");
    assert.match(world.message("m1"), /^the reprovision plan failed on inventory inv-1: …x+: disk is full$/);
    assert.ok(world.message("m1").length < 500);
    assert.ok(world.recorded.some(({ name, reason }) => name === "m1" && reason === "PlanFailed"));
    world.applyPlan("inv-1");
    await world.advance(11_000);
    assert.equal(world.at("m1"), "Running/Provisioned");
  });

  it("fails on bootstrap data that it cannot use, and says why", async () => {
    world.hosts(1);
    await world.start();
    world.machine("m1", { bootstrap: initV1beta4 });
    await world.advance(1_000);
    assert.equal(world.at("m1"), "Failed/BootstrapDataInvalid");
    assert.match(world.message("m1"), /holds no JoinConfiguration/);
    assert.equal(world.plan("inv-1").type, "none");
  });

  it("starts nothing while the Cluster is paused, and goes on after it", async () => {
    world.hosts(1);
    world.cluster.edit(clusters, `${namespace}/edge`, (object) => (object["spec"] = { paused: true }));
    await world.start();
    world.machine("m1");
    await world.advance(10_000);
    assert.deepEqual(world.get("m1")?.finalizers, []);
    assert.equal(world.inventory("inv-1").owner, undefined);
    world.cluster.edit(clusters, `${namespace}/edge`, (object) => (object["spec"] = { paused: false }));
    await world.advance(3_000);
    assert.equal(world.at("m1"), "Reprovisioning/Reprovisioning");
  });

  it("returns to Running once the inventory is its own again, and writes no second plan to the live host", async () => {
    world.hosts(1);
    await world.start();
    await world.running("m1", "inv-1");
    world.annotate("inv-1", { [allocationAnnotations.ownerKind]: "Other", [allocationAnnotations.ownerUid]: "x" });
    await world.advance(3_000);
    assert.equal(world.at("m1"), "Failed/OwnerLost");
    world.cluster.edit(secrets, `${namespace}/inv-1`, (secret) => (secret["data"] = { plan: Buffer.from("{}").toString("base64") }));
    world.annotate("inv-1", { [allocationAnnotations.ownerKind]: "BaremetalMachine", [allocationAnnotations.ownerUid]: world.get("m1")?.uid });
    await world.advance(30_000);
    assert.deepEqual([world.at("m1"), world.plan("inv-1").type], ["Running/Provisioned", "none"]);
  });

  it("goes on to Running where only the provider id was set", async () => {
    world.hosts(1);
    await world.start();
    world.machine("m1");
    await world.advance(3_000);
    world.applyPlan("inv-1");
    world.cluster.edit(baremetalMachines, `${namespace}/m1`, (object) => {
      object["spec"] = { machineInventoryPoolRef: { name: poolName }, providerID: "baremetal:///inv-1" };
    });
    await world.advance(3_000);
    const status: unknown = world.live("m1")["status"];
    assert.ok(typeof status === "object" && status !== null);
    assert.equal(world.at("m1"), "Running/Provisioned");
    assert.deepEqual(Reflect.get(status, "initialization"), { provisioned: true });
    assert.deepEqual(Reflect.get(status, "addresses"), [{ type: "Hostname", address: "edge-w1" }]);
  });

  it("finds the inventory that names it when its status was lost, and chooses no other", async () => {
    world.hosts(2);
    await world.start();
    await world.running("m1", "inv-1");
    const plan = world.plan("inv-1");
    world.cluster.edit(baremetalMachines, `${namespace}/m1`, (object) => (object["status"] = {}));
    await world.advance(3_000);
    assert.deepEqual([world.at("m1"), world.get("m1")?.inventory?.name, world.inventory("inv-2").owner], ["Running/Provisioned", "inv-1", undefined]);
    assert.deepEqual(world.plan("inv-1"), plan);
  });

  it("chooses no other host for a machine that was provisioned and that no inventory names", async () => {
    world.hosts(1);
    await world.start();
    world.machine("m1");
    world.cluster.edit(baremetalMachines, `${namespace}/m1`, (object) => {
      object["spec"] = { machineInventoryPoolRef: { name: poolName }, providerID: "baremetal:///inv-9" };
    });
    await world.advance(3_000);
    assert.deepEqual([world.at("m1"), world.inventory("inv-1").owner], ["Failed/InventoryUnknown", undefined]);
  });

  it("writes no plan for a Machine that is being deleted", async () => {
    world.hosts(1);
    await world.start();
    world.cluster.after = ({ resource, body }) => {
      if (resource !== "machineinventories.elemental.cattle.io" || !JSON.stringify(body).includes('"Allocated"')) return;
      world.cluster.after = undefined;
      world.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: "x" });
    };
    world.machine("m1");
    await world.advance(3_000);
    assert.equal(world.at("m1"), "Allocated/HostHeld");
    world.cluster.edit(machines, `${namespace}/m1`, ({ metadata }) => {
      metadata.finalizers = ["machine.cluster.x-k8s.io"];
      metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
    });
    world.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: undefined });
    await world.advance(10_000);
    assert.deepEqual([world.at("m1"), world.plan("inv-1").type], ["Allocated/MachineDeleting", "none"]);
  });

  it("does not re-provision a host that is held", async () => {
    world.hosts(1);
    await world.start();
    world.cluster.after = ({ resource, body }) => {
      // The hold comes just after the claim.
      if (resource === "machineinventories.elemental.cattle.io" && JSON.stringify(body).includes('"Allocated"'))
        world.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: "x" });
    };
    world.machine("m1");
    await world.advance(20_000);
    assert.equal(world.at("m1"), "Allocated/HostHeld");
    assert.equal(world.plan("inv-1").type, "none");
    world.cluster.after = undefined;
    world.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: undefined });
    await world.advance(6_000);
    assert.equal(world.plan("inv-1").type, "reprovision");
  });

  it("comes to the same end when it is ended before and after any of its writes", async () => {
    for (const when of ["before", "after"] as const) {
      for (let nth = 1; nth <= 12; nth++) {
        const tried = new World();
        tried.hosts(2);
        let writes = 0;
        const kill = ({ write }: { write: boolean }): void => {
          if (write && ++writes === nth) {
            tried.cluster[when] = () => Promise.reject(new Error("the process is dead"));
            throw new Error("the process is dead");
          }
        };
        tried.cluster[when] = kill;
        await tried.start();
        tried.machine("m1");
        await tried.clock.advance(1_000);
        await tried.end();
        tried.cluster[when] = undefined;
        await tried.start();
        await tried.advance(5_000);
        tried.applyPlan("inv-1");
        await tried.advance(5_000);
        assert.equal(tried.at("m1"), "Running/Provisioned", `ended ${when} write ${nth}`);
        assert.equal(tried.get("m1")?.inventory?.name, "inv-1");
        assert.deepEqual(
          tried.cluster.all(machineInventories).filter((object) => object.metadata.annotations?.["baremetal.alauda.io/owner-uid"] !== undefined).length,
          1,
        );
        await tried.end();
      }
    }
  }).timeout(30_000);

  it("is told by its CRD's name when the kind is not served, and works once it is", async () => {
    world.hosts(1);
    world.cluster.unserve(baremetalMachines);
    world.cluster.unserve(machines);
    await world.start();
    world.machine("m1");
    await world.advance(30_000);
    assert.equal(world.at("m1"), "/");
    world.cluster.serve(baremetalMachines);
    world.cluster.serve(machines);
    await world.advance(60_000);
    assert.equal(world.at("m1"), "Reprovisioning/Reprovisioning");
  });
});
