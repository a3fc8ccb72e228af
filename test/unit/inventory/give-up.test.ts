import assert from "node:assert/strict";

import { clusters } from "../../../provider/capi/kinds.ts";
import { baremetalMachines, machineInventories } from "../../../provider/hosts/kinds.ts";
import { CONFIRMED_OFF_ANNOTATION, POWER_HOLD_ANNOTATION, UNHEALTHY_ANNOTATION } from "../../../provider/hosts/names.ts";
import { type PowerHold, readHold, writeHold } from "../../../provider/hosts/power-hold.ts";
import { secrets } from "../../../provider/cluster/kinds.ts";
import { namespace, poolName, World } from "./world.ts";

const unhealthy = JSON.stringify({ reason: "stays off", at: "2026-01-01T00:00:00Z", by: "remediation" });

describe("giving a host up", () => {
  let world: World;

  beforeEach(() => {
    world = new World();
  });

  afterEach(async () => world.end());

  async function runningOn(options: { bmc?: boolean } = {}): Promise<void> {
    world.hosts(2, options);
    await world.start();
    await world.running("m1", "inv-1");
    assert.equal(world.at("m1"), "Running/Provisioned");
  }

  const bmc = (): ReturnType<World["bmcs"]["at"]> => world.bmcs.at("https://inv-1.bmc");

  function repairHold(purpose: PowerHold["purpose"], machineUid = world.uidOfMachine("m1")): string {
    return writeHold({
      by: "remediation",
      purpose,
      machine: { namespace, name: "m1", uid: machineUid },
      host: world.inventory("inv-1").uid,
      cluster: { namespace, name: "edge" },
      wasOn: true,
      attempt: 2,
      askedAt: "2025-12-31T23:00:00Z",
      offBy: "2025-12-31T23:05:00Z",
    });
  }

  it("cleans the host, offers it again with its pool and without owner, and then lets the machine go", async () => {
    await runningOn();
    const before = world.plan("inv-1");
    await world.deleteMachine("m1");
    await world.advance(5_000);
    assert.equal(world.at("m1"), "Preparing/Cleaning");
    assert.equal(world.inventory("inv-1").state, "Preparing");
    const plan = world.plan("inv-1");
    assert.deepEqual([before.type, before.state, plan.type, plan.id, plan.state], ["reprovision", "applied", "clean", world.uidOfMachine("m1"), "pending"]);
    world.applyPlan("inv-1");
    await world.advance(3_000);
    assert.equal(world.at("m1"), "gone");
    const { state, owner, pool, unhealthy: mark } = world.inventory("inv-1");
    assert.deepEqual([state, owner, pool, mark], ["Available", undefined, poolName, undefined]);
    assert.deepEqual(bmc().actions, []);
    assert.ok(world.recorded.some(({ name, reason }) => name === "inv-1" && reason === "Cleaned"));
  });

  it("gives the host to the next machine at once", async () => {
    await runningOn();
    await world.deleteMachine("m1");
    await world.advance(100);
    world.applyPlan("inv-1");
    await world.advance(2_000);
    assert.equal(world.at("m1"), "gone");
    world.machine("m2");
    await world.advance(1_000);
    assert.equal(world.get("m2")?.inventory?.name, "inv-1");
  });

  it("does not take the clean of an earlier machine for its own", async () => {
    await runningOn();
    await world.deleteMachine("m1");
    await world.advance(3_000);
    world.applyPlan("inv-1");
    await world.advance(3_000);
    await world.running("m2", "inv-1");
    await world.deleteMachine("m2");
    await world.advance(60_000);
    assert.equal(world.at("m2"), "Preparing/Cleaning");
    assert.deepEqual([world.plan("inv-1").type, world.plan("inv-1").state], ["clean", "pending"]);
  });

  it("lets a machine go at once that never had a host", async () => {
    world.hosts(0);
    await world.start();
    world.machine("m1");
    await world.advance(3_000);
    assert.equal(world.at("m1"), "Pending/NoInventoryAvailable");
    await world.deleteMachine("m1");
    await world.advance(1_000);
    assert.equal(world.at("m1"), "gone");
  });

  it("cleans the host of a machine whose status was lost before it lets it go", async () => {
    await runningOn();
    world.cluster.edit(baremetalMachines, `${namespace}/m1`, (object) => (object["status"] = {}));
    await world.deleteMachine("m1");
    await world.advance(3_000);
    assert.deepEqual([world.at("m1"), world.plan("inv-1").type], ["Preparing/Cleaning", "clean"]);
    world.applyPlan("inv-1");
    await world.advance(3_000);
    assert.deepEqual([world.at("m1"), world.inventory("inv-1").state], ["gone", "Available"]);
  });

  it("powers a host off that does not clean itself in time, and quarantines it in one write", async () => {
    await runningOn();
    world.settings = { cleanTimeoutSeconds: "20" };
    await world.deleteMachine("m1");
    await world.advance(19_000);
    assert.deepEqual([world.at("m1"), bmc().actions.length], ["Preparing/Cleaning", 0]);
    let quarantines = 0;
    let holdFirst: boolean | undefined;
    world.cluster.after = ({ resource, body }) => {
      if (resource !== "machineinventories.elemental.cattle.io") return;
      const text = JSON.stringify(body);
      if (text.includes(POWER_HOLD_ANNOTATION) && holdFirst === undefined) holdFirst = bmc().actions.length === 0;
      if (text.includes("Quarantined")) quarantines++;
    };
    await world.advance(6_000);
    assert.equal(world.at("m1"), "gone");
    assert.equal(holdFirst, true);
    assert.equal(quarantines, 1);
    assert.deepEqual(
      bmc().actions.map(({ action }) => action),
      ["ForceOff"],
    );
    const inventory = world.inventory("inv-1");
    assert.deepEqual([inventory.state, inventory.owner, inventory.held, inventory.pool], ["Quarantined", undefined, false, poolName]);
    assert.match(inventory.unhealthy?.reason ?? "", /clean plan was not applied in time/);
    assert.equal(bmc().power, "off");
  });

  it("lets the machine go only after two Off readings that are 2 s apart", async () => {
    await runningOn();
    world.annotate("inv-1", { [UNHEALTHY_ANNOTATION]: unhealthy });
    bmc().ignoresOff = true;
    await world.deleteMachine("m1");
    await world.advance(10_000);
    assert.equal(world.at("m1"), "Preparing/PoweringOff");
    bmc().shown = "other";
    await world.advance(10_000);
    assert.equal(world.at("m1"), "Preparing/PoweringOff");
    bmc().shown = undefined;
    bmc().power = "off";
    const off = world.clock.now();
    let went: number | undefined;
    world.cluster.after = ({ body }) => {
      if (JSON.stringify(body).includes("Quarantined")) went ??= world.clock.now();
    };
    await world.advance(10_000);
    assert.equal(world.at("m1"), "gone");
    assert.ok((went ?? 0) - off >= 2_000, `went after ${(went ?? 0) - off} ms`);
    assert.equal(world.inventory("inv-1").unhealthy?.reason, "stays off");
  });

  it("starts over when the host reads on between two Off readings", async () => {
    await runningOn();
    world.annotate("inv-1", { [UNHEALTHY_ANNOTATION]: unhealthy });
    await world.deleteMachine("m1");
    // One Off reading so far.
    await world.advance(1_500);
    assert.equal(world.at("m1"), "Preparing/PoweringOff");
    bmc().power = "on";
    await world.advance(10_000);
    assert.equal(world.at("m1"), "Preparing/PoweringOff");
    bmc().power = "off";
    await world.advance(1_900);
    assert.equal(world.at("m1"), "Preparing/PoweringOff");
    await world.advance(2_000);
    assert.equal(world.at("m1"), "gone");
  });

  it("deletes nothing while the BMC is dead, says OffNotProven, and goes on when it answers", async () => {
    await runningOn();
    world.annotate("inv-1", { [UNHEALTHY_ANNOTATION]: unhealthy });
    bmc().fault = "unreachable";
    await world.deleteMachine("m1");
    await world.advance(3_600_000);
    assert.equal(world.at("m1"), "Failed/OffNotProven");
    assert.match(world.message("m1"), /the BMC at https:\/\/inv-1\.bmc does not answer.*confirmed-off/);
    assert.equal(world.inventory("inv-1").owner?.name, "m1");
    bmc().fault = undefined;
    await world.advance(34_000);
    assert.equal(world.at("m1"), "gone");
    assert.equal(world.inventory("inv-1").state, "Quarantined");
  });

  it("deletes nothing where the host has no BMC, until a person confirms it for this very Machine", async () => {
    await runningOn({ bmc: false });
    world.settings = { cleanTimeoutSeconds: "20" };
    await world.deleteMachine("m1");
    world.annotate("inv-1", { [CONFIRMED_OFF_ANNOTATION]: "another-machine" });
    await world.advance(600_000);
    assert.equal(world.at("m1"), "Failed/OffNotProven");
    assert.match(world.message("m1"), /names no BMC/);
    world.annotate("inv-1", { [CONFIRMED_OFF_ANNOTATION]: world.uidOfMachine("m1") });
    await world.advance(3_000);
    assert.equal(world.at("m1"), "gone");
    const { state, owner, confirmedOff } = world.inventory("inv-1");
    assert.deepEqual([state, owner, confirmedOff], ["Quarantined", undefined, undefined]);
  });

  it("offers the host after all when it cleans itself late and no power-off was asked", async () => {
    await runningOn({ bmc: false });
    world.settings = { cleanTimeoutSeconds: "20" };
    await world.deleteMachine("m1");
    await world.advance(120_000);
    assert.equal(world.at("m1"), "Failed/OffNotProven");
    world.applyPlan("inv-1");
    await world.advance(16_000);
    assert.deepEqual([world.at("m1"), world.inventory("inv-1").state], ["gone", "Available"]);
  });

  it("quarantines a host that cleaned itself after its power-off was asked", async () => {
    await runningOn();
    world.settings = { cleanTimeoutSeconds: "20" };
    bmc().ignoresOff = true;
    await world.deleteMachine("m1");
    await world.advance(25_000);
    assert.equal(world.at("m1"), "Preparing/PoweringOff");
    world.applyPlan("inv-1");
    await world.advance(3_000);
    assert.deepEqual([world.at("m1"), world.inventory("inv-1").state, world.inventory("inv-1").held], ["gone", "Quarantined", false]);
  });

  it("tells of a clean plan that failed", async () => {
    await runningOn();
    await world.deleteMachine("m1");
    await world.advance(3_000);
    world.failPlan("inv-1", "kubeadm: no such file");
    await world.advance(3_000);
    assert.equal(world.at("m1"), "Preparing/CleanFailed");
    assert.match(world.message("m1"), /kubeadm: no such file/);
  });

  it("waits while a repair is being undone, and writes no plan meanwhile", async () => {
    await runningOn();
    world.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: repairHold("reboot") });
    await world.deleteMachine("m1");
    await world.advance(30_000);
    assert.equal(world.at("m1"), "Preparing/HostHeld");
    assert.equal(world.plan("inv-1").type, "reprovision");
    assert.deepEqual(bmc().actions, []);
    world.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: undefined });
    await world.advance(3_000);
    world.applyPlan("inv-1");
    await world.advance(3_000);
    assert.deepEqual([world.at("m1"), world.inventory("inv-1").state], ["gone", "Available"]);
  });

  it("takes the hold of an escalated repair over, and proves off anew by readings", async () => {
    await runningOn();
    bmc().power = "off";
    world.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: repairHold("replace"), [UNHEALTHY_ANNOTATION]: unhealthy });
    await world.deleteMachine("m1");
    await world.advance(1_500);
    const hold = readHold(world.inventory("inv-1").annotations);
    assert.equal(hold.state === "held" && hold.hold.by, "inventory");
    assert.notEqual(world.at("m1"), "gone");
    await world.advance(3_000);
    assert.deepEqual([world.at("m1"), world.inventory("inv-1").state, world.inventory("inv-1").held], ["gone", "Quarantined", false]);
    assert.ok(bmc().reads >= 2);
  });

  it("touches no host whose hold cannot be read, or is another machine's", async () => {
    for (const hold of ["not json", repairHoldOfAnother()]) {
      const tried = new World();
      tried.hosts(1);
      await tried.start();
      await tried.running("m1", "inv-1");
      tried.annotate("inv-1", { [POWER_HOLD_ANNOTATION]: hold, [UNHEALTHY_ANNOTATION]: unhealthy });
      await tried.deleteMachine("m1");
      await tried.advance(900_000);
      assert.match(tried.at("m1"), /^(Failed\/OffNotProven|Preparing\/HostHeld)$/);
      assert.deepEqual(tried.bmcs.at("https://inv-1.bmc").actions, []);
      await tried.end();
    }
  });

  function repairHoldOfAnother(): string {
    return writeHold({
      by: "remediation",
      purpose: "replace",
      machine: { namespace, name: "m9", uid: "another" },
      host: "h",
      cluster: { namespace, name: "edge" },
      wasOn: true,
      attempt: 1,
      askedAt: "2025-12-31T23:00:00Z",
      offBy: "2025-12-31T23:05:00Z",
    });
  }

  it("does nothing while the Cluster is paused", async () => {
    await runningOn();
    world.annotate("inv-1", { [UNHEALTHY_ANNOTATION]: unhealthy });
    world.cluster.edit(clusters, `${namespace}/edge`, (object) => (object["spec"] = { paused: true }));
    await world.advance(100);
    await world.deleteMachine("m1");
    await world.advance(60_000);
    assert.deepEqual([world.at("m1"), world.inventory("inv-1").state, bmc().actions.length], ["Running/Provisioned", "Allocated", 0]);
  });

  it("powers no host off while the stop switch is on", async () => {
    await runningOn();
    world.annotate("inv-1", { [UNHEALTHY_ANNOTATION]: unhealthy });
    world.settings = { stop: "true" };
    await world.deleteMachine("m1");
    await world.advance(60_000);
    assert.deepEqual([world.at("m1"), bmc().actions.length, world.inventory("inv-1").held], ["Failed/Stopped", 0, false]);
    world.settings = {};
    await world.advance(20_000);
    assert.equal(world.at("m1"), "gone");
  });

  it("does nothing on a stale view", async () => {
    await runningOn();
    await world.deleteMachine("m1");
    await world.advance(4_000);
    world.cluster.silenceWatches();
    await world.clock.advance(91_000);
    world.applyPlan("inv-1");
    world.cluster.requests.length = 0;
    await world.clock.advance(30_000);
    assert.deepEqual(
      world.cluster.requests.filter(({ write }) => write),
      [],
    );
    assert.equal(world.at("m1"), "Preparing/Cleaning");
    world.cluster.cutWatches(undefined, "timeout");
    await world.advance(10_000);
    assert.equal(world.at("m1"), "gone");
  });

  it("does not let a machine go whose inventory vanished or lost its owner, unless a person confirms", async () => {
    await runningOn();
    world.cluster.remove(machineInventories, `${namespace}/inv-1`);
    await world.deleteMachine("m1");
    await world.advance(120_000);
    assert.equal(world.at("m1"), "Failed/OffNotProven");
    await world.cluster.patch({ ...machineKind() }, { namespace, name: "m1" }, "merge", {
      metadata: { annotations: { [CONFIRMED_OFF_ANNOTATION]: world.uidOfMachine("m1") } },
    });
    await world.advance(1_000);
    assert.equal(world.at("m1"), "gone");
  });

  function machineKind(): { group: string; version: string; plural: string; kind: string; namespaced: boolean } {
    return { group: "infrastructure.cluster.x-k8s.io", version: "v1beta1", plural: "baremetalmachines", kind: "BaremetalMachine", namespaced: true };
  }

  it("comes to the same end when it is ended before and after any of its writes", async () => {
    for (const clean of [true, false]) {
      for (const when of ["before", "after"] as const) {
        for (let nth = 1; nth <= 10; nth++) {
          const tried = new World();
          tried.hosts(1);
          await tried.start();
          await tried.running("m1", "inv-1");
          const host = tried.bmcs.at("https://inv-1.bmc");
          tried.settings = { cleanTimeoutSeconds: "20" };
          let writes = 0;
          const dead = new Error("the process is dead");
          tried.cluster[when] = ({ write }) => {
            if (!write || ++writes < nth) return;
            tried.cluster.before = () => Promise.reject(dead);
            throw dead;
          };
          // Whatever happens: the machine may not go while its host runs uncleaned.
          let applied = false;
          const check = (): void => {
            if (tried.at("m1") === "gone") assert.ok(applied || host.power === "off", `ended ${when} write ${nth}`);
          };
          await tried.deleteMachine("m1").catch(() => undefined);
          await tried.advance(clean ? 3_000 : 30_000);
          check();
          await tried.end();
          tried.cluster.before = undefined;
          tried.cluster.after = undefined;
          if (tried.get("m1")?.deleting === false) await tried.deleteMachine("m1");
          await tried.start();
          await tried.advance(3_000);
          check();
          if (clean && tried.plan("inv-1").type === "clean") {
            applied = true;
            tried.applyPlan("inv-1");
          }
          await tried.advance(60_000);
          check();
          assert.equal(tried.at("m1"), "gone", `ended ${when} write ${nth}`);
          const inventory = tried.inventory("inv-1");
          assert.deepEqual([inventory.state, inventory.owner, inventory.held], [clean ? "Available" : "Quarantined", undefined, false]);
          await tried.end();
        }
      }
    }
  }).timeout(60_000);

  it("reads Secrets one by one and lists none", async () => {
    await runningOn();
    await world.deleteMachine("m1");
    await world.advance(10_000);
    const asked = world.cluster.requests.filter(({ resource }) => resource === "secrets");
    assert.deepEqual([...new Set(asked.map(({ verb }) => verb))].toSorted(), ["get", "patch"]);
    assert.notEqual(world.cluster.peek(secrets, `${namespace}/inv-1`), undefined);
  });
});
