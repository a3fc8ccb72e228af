import assert from "node:assert/strict";

import fc from "fast-check";

import type { GroupMachine, GroupView, Host, PoolView } from "../../../provider/resources/worker-group/observe.ts";
import type { WantedGroup } from "../../../provider/resources/worker-group/plan.ts";
import { groupLines, planGroup } from "../../../provider/resources/worker-group/plan.ts";
import { deployment, machine } from "./group-views.ts";

function view(machines: GroupMachine[], replicas = machines.length): GroupView {
  return { deployment: machines.length === 0 && replicas === 0 ? undefined : deployment(replicas), sets: [], machines, leftovers: [] };
}

function pool(...hosts: (string | [string, string])[]): PoolView {
  return {
    name: "p",
    hosts: hosts.map((host) =>
      typeof host === "string" ? { name: host, hostname: undefined, unavailable: undefined } : { name: host[0], hostname: undefined, unavailable: host[1] },
    ),
  };
}

function wanted(replicas: number | undefined, change: Partial<WantedGroup> = {}): WantedGroup {
  return { replicas, removeMachines: [], maxSurge: 0, maxUnavailable: 1, otherPool: false, rolloutCauses: [], inPlace: [], ...change };
}

const inUse = (name: string): [string, string] => [name, `is in use by machine m-${name}`];

describe("plan of a group", () => {
  it("takes the first free hosts in pool order for a new group", () => {
    const plan = planGroup(wanted(2), view([]), pool(["a", "is quarantined (x)"], "b", "c", "d"), 0);
    assert.deepEqual(plan.refusals, []);
    assert.deepEqual(groupLines(plan), ["machines: 0 → 2", "takes b, c, in pool order"]);
  });

  it("shows host names", () => {
    const plan = planGroup(wanted(1), view([]), { name: "p", hosts: [{ name: "a", hostname: "w1", unavailable: undefined }] }, 0);
    assert.deepEqual(groupLines(plan), ["machines: 0 → 1", "takes a (w1), in pool order"]);
  });

  it("names the hosts of a scale-up beside those that it has", () => {
    const plan = planGroup(
      wanted(5),
      view([machine("1", "a"), machine("2", "b"), machine("3", "c")]),
      pool(inUse("a"), inUse("b"), inUse("c"), "d", "e", "f"),
      3,
    );
    assert.deepEqual(groupLines(plan), ["machines: 3 → 5", "takes d, e, in pool order"]);
  });

  it("refuses what the pool cannot hold, says how many are missing and why each other host does not count", () => {
    const hosts = pool(inUse("a"), inUse("b"), inUse("c"), "d", ["e", "is quarantined (hung)"], ["f", "is not registered (no MachineInventory of that name)"]);
    const plan = planGroup(wanted(7), view([machine("1", "a"), machine("2", "b"), machine("3", "c")]), hosts, 3);
    assert.deepEqual(plan.refusals, [
      {
        property: "replicas",
        reason:
          "7 machines need 4 more hosts, but pool p has 1 (d) to give: 3 are missing. The others cannot be taken: a is in use by machine m-a; b is in use by machine m-b; c is in use by machine m-c; e is quarantined (hung); f is not registered (no MachineInventory of that name). Lower replicas to 4, or add hosts to the pool",
      },
    ]);
  });

  it("does not refuse an unrelated edit while a machine waits for a host", () => {
    const waiting = machine("2", undefined);
    const plan = planGroup(
      wanted(2, { inPlace: ["nodeDrainTimeout"] }),
      view([machine("1", "a"), waiting]),
      pool(inUse("a"), ["b", "is quarantined (hung)"]),
      2,
    );
    assert.deepEqual(plan.refusals, []);
    assert.deepEqual(plan.warnings, ["pool p has too few free hosts for all machines: 1 machine will wait for one"]);
    assert.deepEqual(groupLines(plan), ["changes in place, no machine is replaced: nodeDrainTimeout"]);
  });

  it("goes on after a failure that left its machines in place", () => {
    const plan = planGroup(wanted(5), view([machine("1", "a"), machine("2", "b")], 5), pool(inUse("a"), inUse("b"), "c", "d", "e"), 2);
    assert.deepEqual(plan.refusals, []);
    assert.deepEqual(
      plan.takes.map(({ name }) => name),
      ["c", "d", "e"],
    );
  });

  it("removes the machines that are named, by machine or node name", () => {
    const plan = planGroup(wanted(1, { removeMachines: ["1", "node-3"] }), view([machine("1", "a"), machine("2", "b"), machine("3", "c")]), undefined, 3);
    assert.deepEqual(plan.refusals, []);
    assert.deepEqual(groupLines(plan), ["machines: 3 → 1", "removes 1 (node node-1, host a), 3 (node node-3, host c); their hosts are cleaned and free again"]);
  });

  it("leaves the choice to Cluster API where none is named", () => {
    assert.deepEqual(groupLines(planGroup(wanted(1), view([machine("1", "a"), machine("2", "b")]), undefined, 2)), [
      "machines: 2 → 1",
      "removes 1 machine that Cluster API chooses; name them in removeMachines to decide which",
    ]);
  });

  for (const [what, replicas, removeMachines, reason] of [
    [
      "fewer are named than go",
      1,
      ["1"],
      "names 1 machine of this group, but replicas goes from 3 to 1, which is 2 fewer; set replicas to 2, or name exactly 2",
    ],
    [
      "more are named than go",
      2,
      ["1", "2"],
      "names 2 machines of this group, but replicas goes from 3 to 2, which is 1 fewer; set replicas to 1, or name exactly 1",
    ],
    ["replicas stay", 3, ["1"], "names 1 machine of this group, but replicas goes from 3 to 3, which is 0 fewer; set replicas to 2, or remove removeMachines"],
    [
      "a name is misspelt",
      2,
      ["9"],
      "names 0 machines of this group, but replicas goes from 3 to 2, which is 1 fewer; 9 is no machine or node of this group; set replicas to 3, or name exactly 1",
    ],
  ] as const) {
    it(`refuses a removal where ${what}`, () => {
      const plan = planGroup(wanted(replicas, { removeMachines }), view([machine("1", "a"), machine("2", "b"), machine("3", "c")]), undefined, 3);
      assert.deepEqual(plan.refusals, [{ property: "removeMachines", reason }]);
    });
  }

  it("takes names that are gone already for done", () => {
    const plan = planGroup(wanted(2, { removeMachines: ["9"] }), view([machine("1", "a"), machine("2", "b")]), undefined, 2);
    assert.deepEqual(plan.refusals, []);
  });

  it("does not count a named machine that is going already", () => {
    const plan = planGroup(
      wanted(2, { removeMachines: ["3"] }),
      view([machine("1", "a"), machine("2", "b"), machine("3", "c", { deleting: true })], 2),
      undefined,
      3,
    );
    assert.deepEqual([plan.refusals, plan.removes], [[], []]);
  });

  it("names the machines of a rollout and why they are replaced", () => {
    const plan = planGroup(
      wanted(2, { rolloutCauses: ["the version goes from v1.36.0 to v1.37.2", "the bootstrap configuration changes"] }),
      view([machine("1", "a"), machine("2", "b")]),
      pool(inUse("a"), inUse("b")),
      2,
    );
    assert.deepEqual(plan.refusals, []);
    assert.deepEqual(groupLines(plan), [
      "re-provisions one by one, because the version goes from v1.36.0 to v1.37.2 and the bootstrap configuration changes: 1 (node node-1, host a), 2 (node node-2, host b)",
    ]);
  });

  it("refuses a surge that the pool cannot give and that the rollout cannot do without", () => {
    const plan = planGroup(wanted(1, { rolloutCauses: ["x"], maxSurge: 1, maxUnavailable: 0 }), view([machine("1", "a")]), pool(inUse("a")), 1);
    assert.deepEqual(plan.refusals, [
      {
        property: "rollout.maxSurge",
        reason:
          "asks for 1 host more than there are machines, but pool p has 0 to spare, and with maxUnavailable 0 the rollout could never begin; use maxSurge 0 and maxUnavailable 1",
      },
    ]);
  });

  it("needs all hosts anew from another pool", () => {
    const plan = planGroup(
      wanted(2, { otherPool: true, rolloutCauses: ["hosts come from pool p in place of q"] }),
      view([machine("1", "x"), machine("2", "y")]),
      pool("a"),
      2,
    );
    assert.equal(plan.refusals[0]?.property, "replicas");
  });

  it("says what is not known yet", () => {
    assert.deepEqual(groupLines(planGroup(wanted(undefined), view([]), pool("a"), 0)), [
      "replicas are not known yet, and so neither which hosts are taken nor which machines go",
    ]);
  });

  it("never plans a host twice or one that is not free, keeps the order, and refuses exactly when too few are free", () => {
    const host = fc.record({ name: fc.stringMatching(/^[a-z]{1,6}$/), free: fc.boolean() });
    const world = fc.record({
      hosts: fc.uniqueArray(host, { selector: ({ name }) => name, maxLength: 12 }),
      used: fc.nat({ max: 12 }),
      replicas: fc.nat({ max: 15 }),
      before: fc.nat({ max: 15 }),
    });
    fc.assert(
      fc.property(world, ({ hosts, used, replicas, before }) => {
        const taken = hosts.filter(({ free }) => !free).slice(0, used);
        const machines = taken.map(({ name }) => machine(`m-${name}`, name));
        const list: Host[] = hosts.map(({ name, free }) => ({ name, hostname: undefined, unavailable: free ? undefined : "is in use" }));
        const plan = planGroup(wanted(replicas), { deployment: deployment(before), sets: [], machines, leftovers: [] }, { name: "p", hosts: list }, before);
        const free = hosts.filter((candidate) => candidate.free).map(({ name }) => name);
        const takes = plan.takes.map(({ name }) => name);
        assert.deepEqual(takes, free.slice(0, Math.max(0, replicas - machines.length)));
        const short = replicas - machines.length > free.length;
        assert.equal(
          plan.refusals.some(({ property }) => property === "replicas"),
          short && replicas > before,
        );
      }),
    );
  });
});
