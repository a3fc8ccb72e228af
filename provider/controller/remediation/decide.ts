/**
 * The decision of a remediation: what to do now, given what was observed and the time. No clock, no I/O.
 * Order: stale view, pause, undoing, gates, then the stage that the hold and the status are in.
 */
import { escalate } from "./decide/escalate.ts";
import { turnOn, waitForBoot } from "./decide/on.ts";
import { adoptHold, attemptFailed, beginFirst } from "./decide/attempt.ts";
import { powerOff } from "./decide/off.ts";
import { resume, standStill } from "./decide/pause.ts";
import { undo } from "./decide/undo.ts";
import type { Decision } from "./decision.ts";
import { Draft, IDLE_CHECK_MS, ownHold } from "./draft.ts";
import { gateOf, pausedBy, undoCause } from "./gates.ts";
import { defaultPolicy, type PolicyReading } from "./policy.ts";
import type { Snapshot } from "./snapshot.ts";

export function decide(snapshot: Snapshot, policy: PolicyReading, now: number): Decision {
  const draft = new Draft(snapshot, policy.valid ? policy.policy : defaultPolicy, now);
  if (!snapshot.fresh) {
    // Not even the status is written: it too would rest on what may be old.
    return {
      actions: [],
      status: draft.status,
      reasons: [{ reason: "StaleView", message: "what is known of the cluster may be old; nothing is done", warning: true }],
      nextCheckAt: now + 5_000,
    };
  }
  adoptHold(draft);
  const paused = pausedBy(snapshot);
  if (paused !== undefined) {
    standStill(draft, paused);
    return draft.finish();
  }
  resume(draft);
  if (snapshot.machine?.deleting === true && !snapshot.machine.skipsRemediation && snapshot.machine.uid === snapshot.remediation.machineUid)
    draft.act({ type: "skipRemediation" });
  const cause = undoCause(snapshot);
  if (cause !== undefined) {
    undo(draft, cause);
    return draft.finish();
  }
  const gate = policy.valid ? gateOf(snapshot) : ({ as: "Failed", reason: "InvalidSpec", message: policy.problem } as const);
  if (gate !== undefined) {
    draft.progress(false, gate.reason, gate.message);
    if (gate.as === "Failed") draft.phase = "Failed";
    else if (draft.status.attempt === undefined) draft.phase = undefined;
    draft.checkIn(IDLE_CHECK_MS);
    return draft.finish();
  }
  advance(draft);
  return draft.finish();
}

/** Each of these is the whole of what is done now. */
function advance(draft: Draft): void {
  const hold = ownHold(draft.snapshot);
  const { attempt, escalation } = draft.status;
  if (hold?.purpose === "undo") undo(draft, "Resumed");
  else if (escalation !== undefined) escalate(draft);
  else if (hold?.onAskedAt !== undefined) turnOn(draft, hold);
  else if (hold !== undefined) powerOff(draft, hold);
  else if (attempt === undefined) beginFirst(draft);
  else if (attempt.onSeenAt !== undefined) waitForBoot(draft);
  else attemptFailed(draft, "HoldRemoved", "the hold on the host was removed while the host was being power-cycled");
}
