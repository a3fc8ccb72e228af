/** All attempts used: proven off once more, marked unhealthy, offered for replacement. In that order. */
import { isCurrent, proveOff } from "../../../hosts/off-proof.ts";
import { type Draft, hostRecord, IDLE_CHECK_MS, intentOf, iso, ownHold, POLL_MS } from "../draft.ts";
import { nextAskAt, offForProofIsDue, powerProblem } from "../power.ts";
import { beginEscalation, holdWith } from "./attempt.ts";

export function escalate(draft: Draft): void {
  const { snapshot, policy, now } = draft;
  const { machine, host } = draft.parts();
  const { escalation } = draft.status;
  if (escalation === undefined) throw new TypeError("not escalated");
  if (escalation.offeredAt !== undefined) {
    draft.phase = "Deleting machine";
    draft.progress(false, "Offered", "the Machine is offered for replacement; its owner deletes it");
    draft.checkIn(IDLE_CHECK_MS);
    return;
  }
  const hold = ownHold(snapshot);
  if (hold?.purpose !== "replace") {
    beginEscalation(draft, escalation.reason, "the hold for replacement has to be written (again)");
    return;
  }
  if (hold.confirmedAt === undefined && host.confirmedOff === machine.uid) {
    draft.act({ type: "writeHold", hold: holdWith(draft, { confirmedAt: iso(now) }), usesConfirmation: true });
    draft.step("ConfirmedOff", `a person confirmed that host ${host.name} is off`);
    draft.checkIn(1);
    return;
  }
  const asked = Date.parse(hold.askedAt);
  if (snapshot.power.off?.outcome === "accepted") escalation.offAcceptedAt ??= iso(snapshot.power.off.at);
  const proof = proveOff(snapshot.power.readings, asked, policy.offConfirmationMs);
  if (hold.confirmedAt !== undefined || isCurrent(proof, now)) {
    offer(draft);
    return;
  }

  if (now >= Date.parse(hold.askedAt) + policy.offTimeoutMs) {
    draft.phase = "Failed";
    draft.progress(
      false,
      "OffNotProven",
      `host ${host.name} cannot be proven off (${powerProblem(snapshot.power, snapshot.power.off)}); its Machine is not given up until it is`,
    );
  } else {
    draft.phase = "Running";
    draft.progress(true, "Escalating", `waiting for host ${host.name} to be proven off`);
  }
  if (offForProofIsDue(snapshot.power, asked, now)) draft.act({ type: "askOff", hold: intentOf(hold) });
  const dead = snapshot.power.error !== undefined && draft.status.phase === "Failed";
  draft.checkAt(dead ? Math.max(now + POLL_MS, nextAskAt(snapshot.power.off, now)) : now + POLL_MS);
}

function offer(draft: Draft): void {
  const { escalation } = draft.status;
  const { host, machine } = draft.parts();
  if (escalation === undefined) throw new TypeError("not escalated");
  escalation.offProvenAt = iso(draft.now);
  escalation.offeredAt = iso(draft.now);
  const failures = `${draft.status.attempts ?? 1} power cycles did not help (${escalation.reason})`;
  if (!host.unhealthy) draft.act({ type: "markUnhealthy", reason: failures, record: hostRecord(draft, escalation.reason) });
  draft.act({ type: "offerMachine", message: failures });
  draft.phase = "Deleting machine";
  draft.step("Offered", `host ${host.name} is marked unhealthy and Machine ${machine.name} offered for replacement: ${failures}`, true);
  draft.progress(false, "Offered", "the Machine is offered for replacement; its owner deletes it");
  draft.commitStatus();
  draft.checkIn(IDLE_CHECK_MS);
}
