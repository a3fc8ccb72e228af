import assert from "node:assert/strict";

import fc from "fast-check";

import { decide } from "../../../provider/controller/remediation/decide.ts";
import type { Decide } from "./process.ts";
import { broken } from "./broken.ts";
import { type Setup, setups, type Step, steps, Story } from "./story.ts";
import { type Violation } from "./world.ts";

const STEPS = Number(process.env["PROPERTY_STEPS"] ?? 200_000);
const SEED = Number(process.env["PROPERTY_SEED"] ?? Date.now() % 1_000_000_007);
/** Runs in which a broken decision has to be caught at the latest. */
const BROKEN_RUNS = 3_000;

const rules = [
  "no Node is fenced before its host is proven off under our hold",
  "no host stays off because of us",
  "one remediation a host, one power-off an attempt",
  "nothing is done to what is foreign, paused or going",
  "no more power cycles than retryLimit allows",
  "what was taken from a Node comes back, and the taint goes by a new boot alone",
  "a host is marked before its Machine is offered",
  "every wait ends, or is held with a reason",
  "no credential is written",
  "nothing is done on a stale view",
];

function run(decision: Decide, setup: Setup, told: readonly Step[]): { violations: readonly Violation[]; taken: number } {
  const story = new Story(decision);
  const violations = story.tell(setup, told);
  return { violations, taken: story.stepsTaken };
}

function describeViolation({ rule, what, at }: Violation): string {
  return `rule ${rule} (${rules[rule - 1] ?? ""}): ${what}, at ${new Date(at).toISOString()}`;
}

describe("remediation against a model of the world", function () {
  this.timeout(0);

  it(`keeps the ten rules over ${STEPS} steps (PROPERTY_SEED=${SEED})`, () => {
    let taken = 0;
    for (let batch = 0; taken < STEPS; batch++) {
      const before = taken;
      fc.assert(
        fc.property(setups, steps, (setup, told) => {
          const result = run(decide, setup, told);
          taken += result.taken;
          const [first] = result.violations;
          if (first !== undefined) throw new Error(describeViolation(first));
        }),
        { seed: SEED + batch, numRuns: 50 },
      );
      assert.ok(taken > before);
    }
  });

  for (const { rule, name, decide: mutant } of broken) {
    it(`catches a decision that breaks rule ${rule}: ${name} (PROPERTY_SEED=${SEED})`, () => {
      const outcome = fc.check(
        fc.property(setups, steps, (setup, told) => !run(mutant, setup, told).violations.some((violation) => violation.rule === rule)),
        { seed: SEED, numRuns: BROKEN_RUNS, endOnFailure: true },
      );
      assert.equal(outcome.failed, true, `${BROKEN_RUNS} runs did not catch it`);
    });
  }

  it("has a broken decision for each of the ten rules", () => {
    assert.deepEqual(
      [...new Set(broken.map(({ rule }) => rule))].sort((a, b) => a - b),
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    );
  });
});
