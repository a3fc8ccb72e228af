import assert from "node:assert/strict";

import type { MachineSetView } from "../../../provider/capi/machine-deployment.ts";
import type { GroupMachine, GroupView, HostMachine } from "../../../provider/resources/worker-group/observe.ts";
import { missingController, removalProgress, removalStall, rolloutProgress } from "../../../provider/resources/worker-group/progress.ts";
import { deployment, machine } from "./group-views.ts";

const target = { replicas: 2, version: "v1.37.2", infrastructureTemplate: "i", bootstrapTemplate: "b" };

function set(name: string, change: Partial<MachineSetView> = {}): MachineSetView {
  return {
    name,
    deleting: false,
    replicas: 2,
    version: "v1.37.2",
    bootstrap: { apiGroup: "bootstrap.cluster.x-k8s.io", kind: "KubeadmConfigTemplate", name: "b" },
    infrastructure: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "BaremetalMachineTemplate", name: "i" },
    conditions: [],
    ...change,
  };
}

const old = set("old", { bootstrap: { apiGroup: "bootstrap.cluster.x-k8s.io", kind: "KubeadmConfigTemplate", name: "b-old" } });
const good = [machine("1", "a"), machine("2", "b")];

function view(change: Partial<GroupView> = {}): GroupView {
  return { deployment: deployment(2), sets: [set("set")], machines: good, leftovers: [], ...change };
}

function on(change: Partial<HostMachine>): HostMachine {
  return { name: "1", phase: "Running", host: "a", deleting: false, takenUp: true, conditions: [], ...change };
}

function joining(change: Partial<GroupMachine>): GroupMachine {
  return machine("1", "a", { ready: false, nodeName: undefined, ...change });
}

describe("progress of a group", () => {
  it("is done when every machine is ready and made from what is wanted", () => assert.equal(rolloutProgress(view(), target).done, true));

  const unfinished: [string, Partial<GroupView>][] = [
    ["the controller has not seen the change", { deployment: { ...deployment(2), observed: false } }],
    ["the old replicas still stand", { deployment: deployment(3) }],
    ["fewer are available than wanted", { deployment: { ...deployment(2), availableReplicas: 1 } }],
    ["MachineSets count fewer as updated, though all other counters claim the end", { deployment: { ...deployment(2), updatedReplicas: 0 } }],
    [
      "machines are of the old MachineSet, though all counters claim the end",
      { sets: [set("new"), old], machines: [machine("1", "a", { setName: "old" }), machine("2", "b", { setName: "old" })] },
    ],
    ["one machine is of the old MachineSet", { sets: [set("set"), old], machines: [machine("1", "a"), machine("2", "b", { setName: "old" })] }],
    ["the MachineSet has another version", { sets: [set("set", { version: "v1.36.0" })] }],
    ["a machine has another version", { machines: [machine("1", "a"), machine("2", "b", { version: "v1.36.0" })] }],
    ["a machine is going", { machines: [machine("1", "a"), machine("2", "b", { deleting: true, ready: false })] }],
    ["one machine too many is there", { machines: [...good, machine("3", "c")] }],
    ["one machine is missing", { machines: [machine("1", "a")] }],
    ["a Node is not ready", { machines: [machine("1", "a"), machine("2", "b", { ready: false })] }],
    ["there is no MachineDeployment", { deployment: undefined }],
  ];
  for (const [what, change] of unfinished) {
    it(`is not done while ${what}`, () => assert.equal(rolloutProgress(view(change), target).done, false));
  }

  for (const [what, one, words] of [
    ["no infrastructure object yet", joining({ on: undefined, phase: "Provisioning" }), "1: Provisioning"],
    ["nobody has taken it up", joining({ on: on({ takenUp: false, phase: undefined, host: undefined }) }), "1: not taken up by any inventory controller"],
    [
      "no host is free",
      joining({ on: on({ host: undefined, phase: "Pending", conditions: [{ type: "Ready", status: "False", message: "no inventory is Available" }] }) }),
      "1: waits for a free host: no inventory is Available",
    ],
    ["its host is provisioned", joining({ on: on({ phase: "Reprovisioning" }) }), "1: host a Reprovisioning"],
    [
      "its host failed",
      joining({ on: on({ phase: "Failed", conditions: [{ type: "Ready", status: "False", message: "disk full" }] }) }),
      "1: host a Failed: disk full",
    ],
    ["its Node has not joined", joining({}), "1: host a runs, its Node has not joined"],
    ["its Node is not ready", joining({ nodeName: "w1" }), "1: host a, Node w1 is not ready"],
    ["it goes", joining({ deleting: true, on: on({ phase: "Preparing", deleting: true }) }), "1: being removed, host a Preparing"],
  ] as const) {
    it(`says of a machine that ${what}`, () =>
      assert.equal(rolloutProgress(view({ machines: [one, machine("2", "b")] }), target).line, `1 of 2 machines ready; ${words}`));
  }

  it("counts the replaced ones of a rollout, not those that still run as they were", () => {
    const rolling = view({ sets: [set("set"), old], machines: [machine("1", "a", { setName: "old" }), machine("2", "b")] });
    assert.equal(rolloutProgress(rolling, target).line, "1 of 2 machines replaced and ready; 1: waits to be replaced");
  });

  it("says what holds a MachineSet back", () => {
    const message = "Scaling up from 0 to 1 replicas is blocked because: KubeadmVersionSkew";
    const held = set("set", { conditions: [{ type: "ScalingUp", status: "True", message }] });
    assert.equal(rolloutProgress(view({ sets: [held], machines: [] }), target).line, `0 of 2 machines ready; ${message}`);
  });

  it("moves with any step of any machine", () => {
    const before = rolloutProgress(view({ machines: [joining({ on: on({ phase: "Reprovisioning" }) })] }), target).progress;
    assert.notEqual(rolloutProgress(view({ machines: [joining({})] }), target).progress, before);
    assert.equal(rolloutProgress(view({ machines: [joining({ on: on({ phase: "Reprovisioning" }) })] }), target).progress, before);
  });

  it("misses an inventory controller only where none has shown itself", () => {
    assert.equal(missingController(view()), undefined);
    assert.match(
      missingController(view({ machines: [joining({ on: on({ takenUp: false, phase: undefined, host: undefined }) })] })) ?? "",
      /^no inventory controller is running: nothing has taken up 1;/,
    );
  });

  it("is gone when nothing of the group is left", () => {
    assert.equal(removalProgress(view({ deployment: undefined, machines: [], leftovers: [] })).done, true);
    assert.equal(removalProgress(view({ deployment: undefined, machines: [], leftovers: [on({})] })).done, false);
    assert.equal(removalProgress(view({ machines: [] })).done, false);
  });

  it("knows who has to act on a removal that stands still", () => {
    assert.match(
      removalStall(view({ machines: [joining({ deleting: true, on: on({ deleting: true }) })] })),
      /^no inventory controller is running: nothing gives back the host of 1;/,
    );
    assert.match(
      removalStall(view({ machines: [joining({ deleting: true, on: on({ deleting: true, phase: "Preparing" }) })] })),
      /^host a of 1 is not given back yet \(Preparing\): its agent has to apply the clean plan/,
    );
    assert.match(removalStall(view({ machines: [joining({ deleting: true })] })), /^nothing moves: Cluster API's controllers/);
  });
});
