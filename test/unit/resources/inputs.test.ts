import assert from "node:assert/strict";

import fc from "fast-check";
import { z } from "zod";

import { formatDuration, parseDuration } from "../../../provider/resources/durations.ts";
import { canonical, containsUnknown, knownField, parseInputs } from "../../../provider/resources/inputs.ts";
import { UNKNOWN } from "../../../provider/resources/lifecycle.ts";
import { groupArgs } from "../../../provider/resources/worker-group/inputs.ts";
import { policyArgs } from "../../../provider/resources/remediation-policy/inputs.ts";

describe("durations", () => {
  for (const [text, seconds] of [
    ["20s", 20],
    ["5m", 300],
    ["1h30m", 5400],
    ["300s", 300],
    ["0s", 0],
    ["1h1m1s", 3661],
  ] as const) {
    it(`${text} is ${seconds} seconds`, () => assert.equal(parseDuration(text), seconds));
  }

  for (const text of ["", "5", "m", "5 m", "-5m", "5m1h", "1.5h", "5min"]) {
    it(`${JSON.stringify(text)} is no duration`, () => assert.equal(parseDuration(text), undefined));
  }

  it("reads what it writes", () => {
    fc.assert(fc.property(fc.nat({ max: 1_000_000 }), (seconds) => parseDuration(formatDuration(seconds)) === seconds));
  });
});

describe("inputs", () => {
  const model = z.strictObject({ name: z.string(), replicas: z.int(), list: z.array(z.strictObject({ at: z.string().min(3, "must be longer") })).default([]) });

  it("names the path of what is wrong and what to do", () => {
    assert.deepEqual(parseInputs(model, { name: 1, list: [{ at: "ab" }, { at: "abc", et: 1 }] }).failures, [
      { property: "name", reason: "must be a string" },
      { property: "replicas", reason: "is missing; it must be a number" },
      { property: "list[0].at", reason: "must be longer" },
      { property: "list[1].et", reason: "is not known here; remove it or correct its spelling" },
    ]);
  });

  it("says nothing about what is not known yet, and everything about the rest", () => {
    const { inputs, failures } = parseInputs(model, { name: "a", replicas: UNKNOWN, list: [{ at: UNKNOWN }, { at: "ab" }] });
    assert.equal(inputs, undefined);
    assert.deepEqual(failures, [{ property: "list[1].at", reason: "must be longer" }]);
  });

  it("takes nothing for complete that has an unknown part", () => {
    assert.equal(parseInputs(z.object({ text: z.string() }), { text: UNKNOWN }).inputs, undefined);
    assert.equal(knownField(z.string(), UNKNOWN), undefined);
    assert.ok(containsUnknown({ a: [{ b: UNKNOWN }] }));
  });

  it("writes equal values equally", () => {
    assert.equal(canonical({ b: [1, { d: undefined, c: 2 }], a: "x" }), canonical({ a: "x", b: [1, { c: 2 }] }));
    assert.notEqual(canonical({ a: [1, 2] }), canonical({ a: [2, 1] }));
  });

  const group = { clusterName: "edge", version: "v1.37.2", replicas: 1, infrastructure: { machineInventory: { pool: "p" } }, bootstrap: { kubeadm: {} } };
  for (const [what, change, property, reason] of [
    ["a version without v", { version: "1.34.2" }, "version", 'must be a full Kubernetes version with a leading v, such as "v1.34.2"'],
    ["a version that is short", { version: "v1.34" }, "version", 'must be a full Kubernetes version with a leading v, such as "v1.34.2"'],
    ["negative replicas", { replicas: -1 }, "replicas", "must not be negative"],
    ["a negative surge", { rollout: { maxSurge: -1 } }, "rollout.maxSurge", "must be at least 0"],
    ["an empty name among those that go", { removeMachines: [""] }, "removeMachines[0]", "must not be empty"],
    ["half a replica", { replicas: 1.5 }, "replicas", "must be an integer"],
    ["replicas as text", { replicas: "3" }, "replicas", "must be a number"],
    ["no infrastructure", { infrastructure: {} }, "infrastructure", "must have exactly one of `machineInventory` and `templateRef`"],
    [
      "a rollout that cannot begin",
      { rollout: { maxSurge: 0, maxUnavailable: "0%" } },
      "rollout",
      "must allow at least one of `maxSurge` and `maxUnavailable`, else a rollout cannot begin",
    ],
    [
      "a pool that is no name",
      { infrastructure: { machineInventory: { pool: 7 } } },
      "infrastructure.machineInventory.pool",
      "has none of the forms that are accepted here; see the documentation of this input",
    ],
    [
      "a field of a pool that is wrong",
      { infrastructure: { machineInventory: { pool: { poolName: "p", namespace: "n", machineInventories: [{ name: "A_" }] } } } },
      "infrastructure.machineInventory.pool.machineInventories[0].name",
      "must be a DNS name: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit",
    ],
    ["a misspelt field", { replica: 3 }, "replica", "is not known here; remove it or correct its spelling"],
  ] as const) {
    it(`refuses ${what}`, () => {
      assert.deepEqual(parseInputs(groupArgs, { ...group, ...change }).failures, [{ property, reason }]);
    });
  }

  it("accepts a minimal group", () => assert.deepEqual(parseInputs(groupArgs, group).failures, []));

  const policy = { workerGroup: { clusterName: "edge", machineDeployment: "edge-w", namespace: "n" } };
  for (const [what, change, property, reason] of [
    [
      "a start-up time between nothing and 30 s",
      { nodeStartupTimeout: "29s" },
      "nodeStartupTimeout",
      'must be at least 30s, or "0s" to never give up on a machine that does not join',
    ],
    ["a range", { maxUnhealthy: "[5-3]" }, "maxUnhealthy", 'must be a number or a percentage such as "40%"'],
    ["no unhealthy machine allowed", { maxUnhealthy: 0 }, "maxUnhealthy", "must be at least 1, or nothing would ever be repaired"],
    ["no condition", { unhealthyNodeConditions: [] }, "unhealthyNodeConditions", "must hold at least one condition"],
    ["a Ready time below what the kind allows", { strategy: { timeout: "99s" } }, "strategy.timeout", "must be at least 100s"],
    ["no retry", { strategy: { retryLimit: 0 } }, "strategy.retryLimit", "must be at least 1"],
    ["another strategy", { strategy: { type: "Replace" } }, "strategy.type", 'must be "Reboot"'],
  ] as const) {
    it(`refuses ${what}`, () => {
      assert.deepEqual(parseInputs(policyArgs, { ...policy, ...change }).failures, [{ property, reason }]);
    });
  }

  it("fills a policy's defaults", () => {
    const { inputs } = parseInputs(policyArgs, policy);
    assert.ok(inputs);
    assert.equal(inputs.nodeStartupTimeout, "20m");
    assert.deepEqual(inputs.strategy, {
      type: "Reboot",
      retryLimit: 1,
      timeout: "10m",
      powerOffTimeout: "5m",
      powerOnTimeout: "5m",
      drainTimeout: "5m",
      offConfirmation: "2s",
      drainConfirmation: "5s",
    });
  });
});
