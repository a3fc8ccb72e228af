/** One deliberately wrong decision for each rule; the checker has to catch every one of them. */
import { decide } from "../../../provider/controller/remediation/decide.ts";
import type { Action } from "../../../provider/controller/remediation/decision.ts";
import { intentOf, ownHold } from "../../../provider/controller/remediation/draft.ts";
import type { Decide } from "./process.ts";
import { PASSWORD } from "./world.ts";

export interface BrokenDecide {
  rule: number;
  name: string;
  decide: Decide;
}

export const broken: readonly BrokenDecide[] = [
  {
    rule: 1,
    name: "believes the first Off reading",
    decide: (snapshot, policy, now) =>
      decide(
        { ...snapshot, power: { ...snapshot.power, readings: snapshot.power.readings.flatMap((reading) => [reading, reading]) } },
        policy.valid ? { valid: true, policy: { ...policy.policy, offConfirmationMs: 0 } } : policy,
        now,
      ),
  },
  {
    rule: 2,
    name: "lets go of a host that is off once its remediation is deleted",
    decide: (snapshot, policy, now) => {
      const decision = decide(snapshot, policy, now);
      if (!snapshot.remediation.deleting || ownHold(snapshot) === undefined) return decision;
      return { ...decision, actions: [{ type: "dropHold" }, { type: "removeFinalizer" }] };
    },
  },
  {
    rule: 3,
    name: "asks for power-off again after power-on",
    decide: (snapshot, policy, now) => {
      const decision = decide(snapshot, policy, now);
      const hold = ownHold(snapshot);
      return hold?.onAskedAt === undefined || hold.purpose !== "reboot"
        ? decision
        : { ...decision, actions: [{ type: "askOff", hold: intentOf(hold) }, ...decision.actions] };
    },
  },
  {
    rule: 4,
    name: "does not heed a pause",
    decide: (snapshot, policy, now) =>
      decide(
        {
          ...snapshot,
          remediation: { ...snapshot.remediation, paused: false },
          machine: snapshot.machine === undefined ? undefined : { ...snapshot.machine, paused: false },
          cluster: { ...snapshot.cluster, paused: false },
          host: snapshot.host === undefined ? undefined : { ...snapshot.host, paused: false },
        },
        policy,
        now,
      ),
  },
  {
    rule: 5,
    name: "tries once more than it may",
    decide: (snapshot, policy, now) =>
      decide(snapshot, policy.valid ? { valid: true, policy: { ...policy.policy, retryLimit: policy.policy.retryLimit + 1 } } : policy, now),
  },
  {
    rule: 6,
    name: "takes any Node for a new boot",
    decide: (snapshot, policy, now) => {
      const { workload } = snapshot;
      const pretended =
        workload.state === "read" && workload.node !== null && ownHold(snapshot) === undefined
          ? { ...workload, node: { ...workload.node, bootID: "another" } }
          : workload;
      return decide({ ...snapshot, workload: pretended }, policy, now);
    },
  },
  {
    rule: 7,
    name: "offers the Machine before the host is marked",
    decide: (snapshot, policy, now) => {
      const decision = decide(snapshot, policy, now);
      const late = (action: Action): boolean => action.type === "markUnhealthy";
      return { ...decision, actions: [...decision.actions.filter((action) => !late(action)), ...decision.actions.filter(late)] };
    },
  },
  {
    rule: 8,
    name: "never sees the deadline of an off that does not come",
    decide: (snapshot, policy, now) => {
      const asked = ownHold(snapshot)?.askedAt;
      return decide(snapshot, policy, asked === undefined ? now : Math.min(now, Date.parse(asked) + 5_000));
    },
  },
  {
    rule: 9,
    name: "tells how it logs in",
    decide: (snapshot, policy, now) => {
      const decision = decide(snapshot, policy, now);
      return { ...decision, reasons: decision.reasons.map((reason) => ({ ...reason, message: `${reason.message} (https://admin:${PASSWORD}@10.0.0.1)` })) };
    },
  },
  {
    rule: 10,
    name: "takes every view for a fresh one",
    decide: (snapshot, policy, now) => decide({ ...snapshot, fresh: true }, policy, now),
  },
];
