import assert from "node:assert/strict";

import { baremetalMachines, machineInventoryPools } from "../../../provider/hosts/kinds.ts";
import { allocationAnnotations, POWER_HOLD_ANNOTATION, RELEASE_ANNOTATION, RELEASING_ANNOTATION, UNHEALTHY_ANNOTATION } from "../../../provider/hosts/names.ts";
import { writeHold } from "../../../provider/hosts/power-hold.ts";
import { namespace, poolName, World } from "./world.ts";

describe("releasing an inventory", () => {
  let world: World;

  beforeEach(async () => {
    world = new World();
    world.hosts(2);
    world.annotate("inv-1", {
      [allocationAnnotations.state]: "Quarantined",
      [allocationAnnotations.pool]: poolName,
      [UNHEALTHY_ANNOTATION]: JSON.stringify({ reason: "stays off", at: "2026-01-01T00:00:00Z", by: "x" }),
    });
    bmc().power = "off";
    world.settings = { cleanTimeoutSeconds: "60" };
    await world.start();
  });

  afterEach(async () => world.end());

  const bmc = (): ReturnType<World["bmcs"]["at"]> => world.bmcs.at("https://inv-1.bmc");
  const release = (uid = world.inventory("inv-1").uid): void => world.annotate("inv-1", { [RELEASE_ANNOTATION]: uid });
  const state = (): unknown[] => [world.inventory("inv-1").state, world.inventory("inv-1").unhealthy?.reason, world.inventory("inv-1").release];

  it("powers it on, cleans it and then offers it", async () => {
    release();
    await world.advance(3_000);
    assert.deepEqual(state(), ["Preparing", undefined, undefined]);
    assert.deepEqual(
      bmc().actions.map(({ action }) => action),
      ["On"],
    );
    assert.equal(world.plan("inv-1").type, "clean");
    world.applyPlan("inv-1");
    await world.advance(3_000);
    assert.deepEqual(state(), ["Available", undefined, undefined]);
    const { pool, annotations } = world.inventory("inv-1");
    assert.deepEqual([pool, annotations[RELEASING_ANNOTATION]], [poolName, undefined]);
    assert.deepEqual(world.cluster.peek(machineInventoryPools, `${namespace}/${poolName}`)?.["status"], { total: 2, available: 2 });
  });

  it("is not allocated before it is clean", async () => {
    release();
    await world.advance(3_000);
    world.machine("m1");
    await world.advance(3_000);
    assert.equal(world.get("m1")?.inventory?.name, "inv-2");
  });

  it("leaves it as it is when another uid was written, and says so", async () => {
    release("wrong");
    await world.advance(30_000);
    assert.deepEqual(state(), ["Quarantined", "stays off", "wrong"]);
    assert.deepEqual(bmc().actions, []);
    assert.ok(world.recorded.some(({ name, reason }) => name === "inv-1" && reason === "ReleaseRefused"));
  });

  it("sets it aside again after one attempt, asking On no more than every 30 s", async () => {
    bmc().ignoresOn = true;
    release();
    await world.advance(59_000);
    assert.deepEqual([world.inventory("inv-1").state, bmc().actions.length], ["Preparing", 2]);
    await world.advance(4_000);
    assert.equal(world.inventory("inv-1").state, "Quarantined");
    assert.match(world.inventory("inv-1").unhealthy?.reason ?? "", /not applied in time after the release/);
    const actions = bmc().actions.length;
    await world.advance(300_000);
    assert.equal(bmc().actions.length, actions);
  });

  it("begins a new attempt for a second release, and does not count the plan of the first", async () => {
    release();
    await world.advance(3_000);
    world.failPlan("inv-1", "no kubeadm");
    await world.advance(3_000);
    assert.equal(world.inventory("inv-1").state, "Quarantined");
    assert.match(world.inventory("inv-1").unhealthy?.reason ?? "", /no kubeadm/);
    release();
    await world.advance(3_000);
    assert.deepEqual([world.inventory("inv-1").state, world.plan("inv-1").state], ["Preparing", "pending"]);
  });

  it("tells of a BMC that refuses when it sets the host aside", async () => {
    bmc().fault = "unauthorized";
    release();
    await world.advance(70_000);
    assert.match(world.inventory("inv-1").unhealthy?.reason ?? "", /power on: the BMC at https:\/\/inv-1\.bmc does not answer/);
  });

  it("waits while the host is held, or the stop switch is on", async () => {
    world.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: "x" });
    release();
    await world.advance(30_000);
    assert.equal(world.inventory("inv-1").state, "Quarantined");
    world.settings = { stop: "true" };
    world.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: undefined });
    await world.advance(30_000);
    assert.deepEqual([world.inventory("inv-1").state, bmc().actions.length], ["Quarantined", 0]);
  });

  it("comes to the same end when it is ended before and after any of its writes", async () => {
    for (const when of ["before", "after"] as const) {
      for (let nth = 1; nth <= 4; nth++) {
        await world.end();
        world = new World();
        world.hosts(1);
        world.annotate("inv-1", { [allocationAnnotations.state]: "Quarantined", [UNHEALTHY_ANNOTATION]: "{}" });
        bmc().power = "off";
        await world.start();
        let writes = 0;
        const dead = new Error("the process is dead");
        world.cluster[when] = ({ write }) => {
          if (!write || ++writes < nth) return;
          world.cluster.before = () => Promise.reject(dead);
          throw dead;
        };
        release();
        await world.clock.advance(3_000);
        await world.end();
        world.cluster.before = undefined;
        world.cluster.after = undefined;
        await world.start();
        await world.advance(5_000);
        assert.equal(world.plan("inv-1").type, "clean", `ended ${when} write ${nth}`);
        world.applyPlan("inv-1");
        await world.advance(5_000);
        assert.equal(world.inventory("inv-1").state, "Available", `ended ${when} write ${nth}`);
        assert.equal(bmc().power, "on");
      }
    }
  });

  it("cleans an inventory whose machine vanished without giving it up", async () => {
    await world.running("m1", "inv-2");
    world.cluster.remove(baremetalMachines, `${namespace}/m1`);
    await world.advance(3_000);
    assert.deepEqual([world.inventory("inv-2").state, world.inventory("inv-2").owner], ["Preparing", undefined]);
    world.applyPlan("inv-2");
    await world.advance(3_000);
    assert.equal(world.inventory("inv-2").state, "Available");
  });

  it("sets an inventory aside, without the hold, whose machine vanished while it was being powered off", async () => {
    await world.running("m1", "inv-2");
    const held = (by: "inventory" | "remediation"): string =>
      writeHold({
        by,
        purpose: "replace",
        machine: { namespace, name: "m1", uid: world.uidOfMachine("m1") },
        host: world.inventory("inv-2").uid,
        cluster: { namespace, name: "edge" },
        wasOn: null,
        attempt: 1,
        askedAt: "2025-12-31T23:00:00Z",
        offBy: "2025-12-31T23:05:00Z",
      });
    world.annotate("inv-2", { [allocationAnnotations.state]: "Preparing", [POWER_HOLD_ANNOTATION]: held("remediation") });
    world.cluster.remove(baremetalMachines, `${namespace}/m1`);
    await world.advance(30_000);
    assert.deepEqual([world.inventory("inv-2").state, world.inventory("inv-2").held], ["Preparing", true]);
    world.annotate("inv-2", { [POWER_HOLD_ANNOTATION]: held("inventory") });
    await world.advance(3_000);
    const { state: after, owner, held: still, unhealthy } = world.inventory("inv-2");
    assert.deepEqual(
      [after, owner, still, unhealthy?.reason],
      ["Quarantined", undefined, false, "its machine m1 vanished while the host was being powered off"],
    );
    world.annotate("inv-2", { [RELEASE_ANNOTATION]: world.inventory("inv-2").uid });
    await world.advance(3_000);
    world.applyPlan("inv-2");
    await world.advance(3_000);
    assert.equal(world.inventory("inv-2").state, "Available");
  });

  it("does not begin to clean an inventory whose machine vanished while the stop switch is on", async () => {
    await world.running("m1", "inv-2");
    world.settings = { stop: "true" };
    world.cluster.remove(baremetalMachines, `${namespace}/m1`);
    await world.advance(30_000);
    assert.deepEqual([world.inventory("inv-2").state, world.plan("inv-2").type], ["Allocated", "reprovision"]);
    world.settings = {};
    await world.advance(30_000);
    assert.deepEqual([world.inventory("inv-2").state, world.plan("inv-2").type], ["Preparing", "clean"]);
  });

  it("takes a gone pool's name off free inventories, and off no other", async () => {
    await world.running("m1", "inv-2");
    world.cluster.remove(machineInventoryPools, `${namespace}/${poolName}`);
    await world.advance(3_000);
    assert.deepEqual([world.inventory("inv-1").pool, world.inventory("inv-2").pool], [poolName, poolName]);
    await world.deleteMachine("m1");
    await world.advance(3_000);
    world.applyPlan("inv-2");
    await world.advance(3_000);
    assert.deepEqual([world.inventory("inv-2").state, world.inventory("inv-2").pool], ["Available", undefined]);
  });
});
