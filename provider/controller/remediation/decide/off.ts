/** Running: from power-off asked to proven off, fenced and drained. */
import { isCurrent, proveOff } from "../../../hosts/off-proof.ts";
import type { PowerHold } from "../../../hosts/power-hold.ts";
import { type Draft, intentOf, iso, POLL_MS } from "../draft.ts";
import { lastReading, nextAskAt, offIsDue, powerProblem } from "../power.ts";
import { attemptFailed, holdWith } from "./attempt.ts";
import { fenceNode } from "./fence.ts";
import { deadline } from "./pause.ts";

export function powerOff(draft: Draft, hold: PowerHold): void {
  const { snapshot, policy, now } = draft;
  const { machine, host } = draft.parts();
  const attempt = draft.attempt();
  const asked = Date.parse(hold.askedAt);
  if (hold.confirmedAt === undefined && host.confirmedOff === machine.uid) {
    draft.act({ type: "writeHold", hold: holdWith(draft, { confirmedAt: iso(now) }), usesConfirmation: true });
    draft.step("ConfirmedOff", `a person confirmed that host ${host.name} is off`);
    draft.checkIn(1);
    return;
  }
  if (snapshot.power.off?.outcome === "accepted" && attempt.offAcceptedAt === undefined) {
    attempt.offAcceptedAt = iso(snapshot.power.off.at);
    // The wait begins with it: what stood still before does not count.
    if (attempt.resumedAt !== undefined && snapshot.power.off.at >= Date.parse(attempt.resumedAt)) attempt.stoodStillMs = { ...attempt.stoodStillMs, off: 0 };
  }
  const proof = proveOff(snapshot.power.readings, asked, policy.offConfirmationMs);
  const confirmed = hold.confirmedAt !== undefined;
  if (attempt.offProvenAt === undefined) {
    if (!confirmed && !proof.proven) {
      waitForOff(draft, hold, proof.firstOffAt);
      return;
    }
    attempt.offProvenAt = iso(now);
    draft.status.fencing = {
      attempt: attempt.number,
      machine: machine.uid,
      host: host.uid,
      offAskedAt: hold.askedAt,
      readings: proof.proven ? proof.readings.map(({ at, literal, system }) => ({ at: iso(at), literal, system })) : [],
      ...(hold.confirmedAt === undefined ? {} : { confirmedAt: hold.confirmedAt }),
      offProvenAt: attempt.offProvenAt,
    };
    draft.step("OffProven", proof.proven ? `host ${host.name} was read Off twice` : `host ${host.name} counts as off because a person said so`);
  }
  draft.phase = "Running";
  if (!fenceNode(draft, hold, confirmed || isCurrent(proof, now))) return;
  askOn(draft);
}

function waitForOff(draft: Draft, hold: PowerHold, firstOffAt: number | undefined): void {
  const { snapshot, policy, now } = draft;
  const { host } = draft.parts();
  const attempt = draft.attempt();
  const asked = Date.parse(hold.askedAt);
  const last = lastReading(snapshot.power, asked);
  // A proof under way is seen through: its second reading is at most a confirmation and a few polls away.
  const proving = firstOffAt !== undefined && last !== undefined && now - last.at <= policy.offConfirmationMs + 5 * POLL_MS;
  const passed = now >= deadline(attempt, "off", Date.parse(attempt.offAcceptedAt ?? hold.askedAt), policy.offTimeoutMs);
  if (passed && !proving && attempt.offAcceptedAt !== undefined) {
    attemptFailed(draft, "OffTimeout", `host ${host.name} accepted the power-off and was not proven off in time (${powerProblem(snapshot.power, undefined)})`);
    return;
  }
  if (passed && !proving) {
    draft.phase = "Failed";
    draft.progress(
      false,
      "OffNotProven",
      `host ${host.name} did not accept the power-off (${powerProblem(snapshot.power, snapshot.power.off)}); nothing is done to its Node until it does`,
    );
  } else {
    draft.phase = "Running";
    draft.progress(true, "PoweringOff", `waiting for host ${host.name} to be proven off`);
  }
  if (offIsDue(snapshot.power, asked, attempt.offAcceptedAt !== undefined, now)) draft.act({ type: "askOff", hold: intentOf(hold) });
  if (firstOffAt !== undefined) draft.checkAt(Math.max(now + 1, Math.min(now + POLL_MS, firstOffAt + policy.offConfirmationMs)));
  else draft.checkAt(passed ? Math.max(now + POLL_MS, nextAskAt(snapshot.power.off, now)) : now + POLL_MS);
}

/** Leaves Running: the intent to power on is written before the call. */
function askOn(draft: Draft): void {
  const { host } = draft.parts();
  const attempt = draft.attempt();
  const hold = holdWith(draft, { onAskedAt: iso(draft.now), ...(attempt.nodeBefore === undefined ? {} : { node: attempt.nodeBefore }) });
  if (attempt.fenceIntent === undefined) delete hold.fence;
  else hold.fence = attempt.fenceIntent;
  draft.act({ type: "writeHold", hold }, { type: "askOn", hold });
  attempt.onAskedAt = iso(draft.now);
  draft.phase = "Waiting";
  draft.step("PowerOnAsked", `host ${host.name} is asked to power on`);
  draft.progress(true, "PoweringOn", `waiting for host ${host.name} to be on`);
  draft.commitStatus();
  draft.checkIn(Math.min(POLL_MS, Math.max(1, draft.policy.offConfirmationMs)));
}
