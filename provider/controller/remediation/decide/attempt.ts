/** How attempts begin, fail and follow each other. The hold is written first, the status after it: the status never runs ahead. */
import type { PowerHold } from "../../../hosts/power-hold.ts";
import { intentOf, type Draft, iso, orphanHold, ownHold, POLL_MS } from "../draft.ts";
import type { HoldIntent } from "../decision.ts";
import { lastReading } from "../power.ts";
import type { AttemptRecord } from "../status.ts";

/** Takes over from the host's hold what a crash kept out of the status. */
export function adoptHold(draft: Draft): void {
  const hold = ownHold(draft.snapshot);
  if (hold === undefined) return;
  const { status } = draft;
  countAttempt(draft, hold.attempt);
  const replace = hold.purpose === "replace";
  if (replace) status.escalation ??= { since: hold.askedAt, reason: "Resumed" };
  const same = status.attempt !== undefined && status.attempt.number === hold.attempt && (replace || status.attempt.offAskedAt === hold.askedAt);
  const fromHold = attemptOf(hold);
  if (!same || status.attempt === undefined) {
    status.attempt = fromHold;
    return;
  }
  // The hold is written first: where both say something, the hold is the newer one.
  const { nodeBefore, fenceIntent, backup, onAskedAt } = fromHold;
  if (nodeBefore !== undefined && !replace) status.attempt.nodeBefore = nodeBefore;
  if (fenceIntent !== undefined) status.attempt.fenceIntent ??= fenceIntent;
  if (backup !== undefined) status.attempt.backup = backup;
  if (onAskedAt !== undefined) status.attempt.onAskedAt ??= onAskedAt;
}

/** The attempt as far as its hold tells it. */
export function attemptOf(hold: PowerHold): AttemptRecord {
  return {
    number: Math.max(1, hold.attempt),
    offAskedAt: hold.askedAt,
    ...(hold.node === undefined ? {} : { nodeBefore: hold.node }),
    ...(hold.fence === undefined ? {} : { fenceIntent: hold.fence }),
    ...(hold.backup === undefined ? {} : { backup: hold.backup }),
    ...(hold.onAskedAt === undefined ? {} : { onAskedAt: hold.onAskedAt }),
    ...(hold.onSeenAt === undefined ? {} : { onSeenAt: hold.onSeenAt }),
  };
}

function countAttempt(draft: Draft, attempts: number): void {
  const { status } = draft;
  if (attempts <= (status.attempts ?? 0)) return;
  status.attempts = attempts;
  if (attempts > 1) status.retryCount = attempts - 1;
}

function mayTryAgain(draft: Draft): boolean {
  return (draft.status.attempts ?? 0) < 1 + draft.policy.retryLimit;
}

export function beginFirst(draft: Draft): void {
  if (mayTryAgain(draft)) begin(draft);
  else beginEscalation(draft, "RetriesExhausted", "all attempts were used before the repair was stopped");
}

export function attemptFailed(draft: Draft, reason: string, message: string): void {
  draft.step(reason, `attempt ${draft.attempt().number} failed: ${message}`, true);
  if (mayTryAgain(draft)) begin(draft);
  else beginEscalation(draft, reason, message);
}

/** What an attempt inherits: the Node as it was, and what is still owed to it. */
function carried(draft: Draft): Pick<HoldIntent, "node" | "fence" | "backup"> {
  const { attempt } = draft.status;
  const orphan = orphanHold(draft.snapshot);
  const { workload, machine } = draft.snapshot;
  const owes = attempt?.fenceIntent !== undefined && attempt.clearedAt === undefined;
  const fence = owes ? attempt.fenceIntent : orphan?.fence;
  const backup = owes ? attempt.backup : orphan?.backup;
  const before = attempt?.nodeBefore ?? orphan?.node;
  const name = machine?.nodeName;
  const node =
    name === undefined
      ? undefined
      : workload.state === "read" && workload.node !== null
        ? { name, uid: workload.node.uid, ...(workload.node.bootID === undefined ? {} : { bootID: workload.node.bootID }) }
        : (before ?? { name });
  return {
    ...(node === undefined ? {} : { node: fence === undefined ? node : (before ?? node) }),
    ...(fence === undefined ? {} : { fence }),
    ...(backup === undefined ? {} : { backup }),
  };
}

function newHold(draft: Draft, purpose: HoldIntent["purpose"], number: number): HoldIntent {
  const { remediation, cluster, power } = draft.snapshot;
  const { machine, host } = draft.parts();
  const earlier = ownHold(draft.snapshot) ?? orphanHold(draft.snapshot);
  const last = lastReading(power, 0)?.power;
  const wasOn = last === "on" ? true : last === "off" ? false : null;
  return {
    by: "remediation",
    purpose,
    remediation: { kind: remediation.kind, namespace: remediation.namespace, name: remediation.name, uid: remediation.uid },
    machine: { namespace: machine.namespace, name: machine.name, uid: machine.uid },
    host: host.uid,
    cluster: { namespace: cluster.namespace, name: cluster.name },
    // One taken over says nothing of now: the host may be off because of the hold that it follows.
    wasOn: earlier === undefined && number === 1 ? wasOn : null,
    attempt: number,
    askedAt: iso(draft.now),
    offBy: iso(draft.now + draft.policy.offTimeoutMs),
    ...carried(draft),
  };
}

function begin(draft: Draft): void {
  const { remediation } = draft.snapshot;
  const { host } = draft.parts();
  const number = (draft.status.attempts ?? 0) + 1;
  const hold = newHold(draft, "reboot", number);
  if (!remediation.finalizer) draft.act({ type: "addFinalizer" });
  draft.act({ type: "writeHold", hold });
  countAttempt(draft, number);
  draft.status.lastRemediated = hold.askedAt;
  draft.status.host = { name: host.name, uid: host.uid };
  draft.status.attempt = {
    number,
    offAskedAt: hold.askedAt,
    ...(hold.node === undefined ? {} : { nodeBefore: hold.node }),
    ...(hold.fence === undefined ? {} : { fenceIntent: hold.fence }),
    ...(hold.backup === undefined ? {} : { backup: hold.backup }),
  };
  draft.phase = "Running";
  draft.condition("Succeeded", "False", "Repairing", `attempt ${number} is under way`);
  draft.step("PowerOffAsked", `attempt ${number}: host ${host.name} is held and asked to power off`);
  draft.progress(true, "PoweringOff", `waiting for host ${host.name} to be proven off`);
  // The count of attempts stands on two objects before the call: one of them may be lost to a person.
  draft.commitStatus();
  draft.act({ type: "askOff", hold });
  draft.checkIn(Math.min(POLL_MS, Math.max(1, draft.policy.offConfirmationMs)));
}

/** No further attempt: the host is proven off once more, which is no attempt, and the Machine is given up. */
export function beginEscalation(draft: Draft, reason: string, message: string): void {
  const { host } = draft.parts();
  const number = Math.max(1, draft.status.attempts ?? 1);
  const hold = newHold(draft, "replace", number);
  if (!draft.snapshot.remediation.finalizer) draft.act({ type: "addFinalizer" });
  draft.act({ type: "writeHold", hold }, { type: "askOff", hold });
  draft.status.attempt ??= { number, offAskedAt: hold.askedAt };
  draft.status.host = { name: host.name, uid: host.uid };
  draft.status.escalation = { since: iso(draft.now), reason };
  draft.phase = "Running";
  draft.condition("Succeeded", "False", reason, message);
  draft.step("Escalating", `the Machine will be offered for replacement once host ${host.name} is proven off (${reason})`, true);
  draft.progress(true, "Escalating", `waiting for host ${host.name} to be proven off`);
  draft.commitStatus();
  draft.checkIn(POLL_MS);
}

/** The current hold with other fields. */
export function holdWith(draft: Draft, changes: Partial<HoldIntent>): HoldIntent {
  const hold = ownHold(draft.snapshot);
  if (hold === undefined) throw new TypeError(`remediation ${draft.snapshot.remediation.name}: its host carries no hold of it`);
  return { ...intentOf(hold), ...changes };
}
