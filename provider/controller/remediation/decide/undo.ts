/** Undoing: the host is brought back on, the Node gets back what was taken, and only then the finalizer goes. Nothing is advanced. */
import type { PowerHold } from "../../../hosts/power-hold.ts";
import type { HoldIntent } from "../decision.ts";
import { attemptOwesNode, type Draft, intentOf, IDLE_CHECK_MS, iso, NODE_POLL_MS, nodeNameOf, ownHold, POLL_MS } from "../draft.ts";
import type { UndoCause } from "../gates.ts";
import { lastMaybeAsked, offWasRead, onIsDue, powerProblem, readingsSince } from "../power.ts";
import { attemptOf, holdWith } from "./attempt.ts";
import { clearFence, isNewBoot, onSeen } from "./on.ts";
import { deadline } from "./pause.ts";

/** `Resumed`: what called for undoing is gone, but half undone is no state to go on from. */
export type Cause = UndoCause | "Resumed";

const words: Record<Cause, string> = {
  Deleted: "this remediation is deleted",
  Stopped: "the stop switch is on",
  MachineDeleting: "the Machine is being deleted",
  MachineGone: "the Machine that this remediation was made for is gone",
  HostMismatch: "the host is not the Machine's any more",
  Resumed: "the repair was stopped half-way",
};

export function undo(draft: Draft, cause: Cause): void {
  const hold = ownHold(draft.snapshot);
  const { attempt, escalation } = draft.status;
  const machineGoes = cause === "MachineDeleting" || cause === "MachineGone" || draft.snapshot.machine?.deleting === true;
  // One that was escalated hands its hold over to whoever gives the host up.
  if (machineGoes && (hold?.purpose === "replace" || (hold === undefined && escalation?.offeredAt !== undefined))) {
    leave(draft, cause, true);
    return;
  }
  if (hold !== undefined) {
    if (hold.onAskedAt === undefined) {
      undoOff(draft, hold, cause);
      return;
    }
    undoOn(draft, hold, cause);
    return;
  }
  if (attemptOwesNode(attempt) && nodeNameOf(draft.snapshot) !== undefined) {
    undoFence(draft, cause);
    return;
  }
  leave(draft, cause, false);
}

/** Power-off was asked, perhaps: it has to take effect, or its deadline to pass, before power-on is asked. */
function undoOff(draft: Draft, hold: PowerHold, cause: Cause): void {
  const { snapshot, policy, now } = draft;
  const { power } = snapshot;
  const attempt = draft.attempt();
  const host = snapshot.host?.name ?? "";
  const asked = Date.parse(hold.askedAt);
  const neverAsked = hold.wasOn === true && hold.attempt === 1 && hold.fence === undefined && power.complete && power.off?.mayHaveHappened !== true;
  // Whatever this process believes of itself: a host that was seen other than on is not left without its hold.
  if (neverAsked && readingsSince(power, asked).every(({ power: state }) => state === "on")) {
    draft.step("HoldDropped", `${words[cause]}; host ${host} had not been asked to power off`);
    draft.act({ type: "dropHold" });
    leave(draft, cause, false);
    return;
  }
  const wait = Math.max(
    deadline(attempt, "off", Date.parse(attempt.offAcceptedAt ?? hold.askedAt), policy.offTimeoutMs),
    lastMaybeAsked(power, asked) + policy.offTimeoutMs,
  );
  if (!offWasRead(power, asked) && now < wait) {
    draft.progress(false, "Undoing", `${words[cause]}; waiting for host ${host} to be off, so that it can be powered on`);
    draft.checkIn(POLL_MS);
    return;
  }
  const next: HoldIntent = holdWith(draft, { purpose: "undo", onAskedAt: iso(now) });
  draft.act({ type: "writeHold", hold: next }, { type: "askOn", hold: next });
  if (hold.purpose === "replace") draft.status.attempt = attemptOf(hold);
  draft.attempt().onAskedAt = iso(now);
  draft.step("PowerOnAsked", `${words[cause]}; host ${host} is asked to power on`);
  draft.progress(false, "Undoing", `${words[cause]}; waiting for host ${host} to be on`);
  draft.commitStatus();
  draft.checkIn(POLL_MS);
}

function undoOn(draft: Draft, hold: PowerHold, cause: Cause): void {
  const { snapshot, policy, now } = draft;
  const attempt = draft.attempt();
  const host = snapshot.host?.name ?? "";
  if (snapshot.machine !== undefined && onSeen(draft, hold)) return;
  if (snapshot.machine === undefined && snapshot.power.readings.at(-1)?.power === "on") {
    // Without a Machine there is no Node to wait for.
    draft.act({ type: "dropHold" });
    leave(draft, cause, false);
    return;
  }
  const asked = Date.parse(hold.onAskedAt ?? hold.askedAt);
  if (now >= deadline(attempt, "on", asked, policy.onTimeoutMs)) {
    const owed = `host ${host} was not seen on in time (${powerProblem(snapshot.power, snapshot.power.on)}); it goes on being asked`;
    if (hold.purpose !== "undo") {
      draft.act({ type: "writeHold", hold: holdWith(draft, { purpose: "undo" }) });
      draft.checkIn(1);
      return;
    }
    if (cause === "Deleted") {
      draft.step("PowerOnOwed", owed, true);
      leave(draft, cause, true);
      return;
    }
    draft.progress(false, "PowerOnOwed", owed);
  } else {
    draft.progress(false, "Undoing", `${words[cause]}; waiting for host ${host} to be on`);
  }
  if (onIsDue(snapshot.power, asked, now)) draft.act({ type: "askOn", hold: intentOf(hold) });
  draft.checkIn(POLL_MS);
}

function undoFence(draft: Draft, cause: Cause): void {
  const { snapshot, policy, now } = draft;
  const { workload } = snapshot;
  const attempt = draft.attempt();
  if (workload.state === "unread") {
    draft.checkIn(1);
    return;
  }
  const node = workload.state === "read" ? workload.node : null;
  if (node !== null && isNewBoot(attempt, node)) {
    clearFence(draft, node);
    if (attempt.clearedAt !== undefined) leave(draft, cause, false);
    return;
  }
  const taint = attempt.fenceIntent?.mode === "Taint";
  const machineGone = snapshot.machine?.uid !== snapshot.remediation.machineUid;
  const nothingLeft = node === null ? workload.state === "read" && (taint || machineGone) : taint && node.outOfService !== "ours";
  if (nothingLeft) {
    attempt.clearedAt = iso(now);
    leave(draft, cause, false);
    return;
  }
  const since = Date.parse(attempt.onSeenAt ?? attempt.onAskedAt ?? attempt.offAskedAt);
  if (now >= deadline(attempt, "ready", since, policy.readyTimeoutMs)) {
    const owed = "the Node reported no new boot in time; what was done to it is undone when it does";
    // What is owed can only be left on the host if nobody else's hold is there, or if there is no Node left to owe it to.
    const machineStays = !machineGone && snapshot.machine?.deleting !== true;
    if (cause === "Deleted" && !(machineStays && snapshot.host !== undefined && snapshot.host.hold.state !== "none")) {
      draft.step("NodeOwed", owed, true);
      owe(draft);
      leave(draft, cause, true);
      return;
    }
    draft.progress(false, "NodeOwed", owed);
  } else {
    draft.progress(false, "Undoing", `${words[cause]}; waiting for another boot of the Node`);
  }
  draft.checkIn(NODE_POLL_MS);
}

/** Leaves on the host what the sweep needs to bring the Node back without this object. */
function owe(draft: Draft): void {
  const { remediation, machine, host, cluster } = draft.snapshot;
  const attempt = draft.attempt();
  if (host === undefined || machine === undefined || host.hold.state !== "none") return;
  draft.act({
    type: "writeHold",
    hold: {
      by: "remediation",
      purpose: "undo",
      remediation: { kind: remediation.kind, namespace: remediation.namespace, name: remediation.name, uid: remediation.uid },
      machine: { namespace: machine.namespace, name: machine.name, uid: machine.uid },
      host: host.uid,
      cluster: { namespace: cluster.namespace, name: cluster.name },
      ...(attempt.nodeBefore === undefined ? {} : { node: attempt.nodeBefore }),
      wasOn: null,
      attempt: attempt.number,
      askedAt: attempt.offAskedAt,
      offBy: iso(draft.now),
      ...(attempt.fenceIntent === undefined ? {} : { fence: attempt.fenceIntent }),
      ...(attempt.backup === undefined ? {} : { backup: attempt.backup }),
      onAskedAt: attempt.onAskedAt ?? attempt.offAskedAt,
      onSeenAt: attempt.onSeenAt ?? iso(draft.now),
    },
  });
}

/** The end of it. `keepsHold`: what is still owed stays on the host, for the sweep or for whoever gives it up. */
function leave(draft: Draft, cause: Cause, keepsHold: boolean): void {
  const { status } = draft;
  const { finalizer } = draft.snapshot.remediation;
  if (finalizer) draft.act({ type: "removeFinalizer" });
  draft.checkIn(IDLE_CHECK_MS);
  if (cause === "Deleted") return;
  const escalated = status.escalation?.offeredAt !== undefined;
  // A repair that had succeeded is not begun again once the switch is off.
  const done = cause === "Stopped" && status.attempt?.readyAt !== undefined;
  if (!done && (!keepsHold || cause !== "MachineDeleting")) {
    delete status.attempt;
    if (!escalated) delete status.escalation;
  }
  if (cause === "Stopped" || cause === "Resumed") {
    draft.phase = escalated ? "Deleting machine" : undefined;
    draft.progress(false, cause === "Stopped" ? "Stopped" : "Undone", `${words[cause]}; nothing is under way`);
  } else {
    if (!escalated) draft.phase = "Failed";
    draft.progress(false, cause === "MachineGone" ? "HostMismatch" : cause, words[cause]);
  }
}
