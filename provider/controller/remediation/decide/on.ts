/** Waiting: from power-on asked to on seen, to another boot of the Node, to Ready. */
import type { PowerHold } from "../../../hosts/power-hold.ts";
import { attemptOwesNode, type Draft, hostRecord, intentOf, iso, NODE_POLL_MS, POLL_MS } from "../draft.ts";
import { lastReading, onIsDue, powerProblem } from "../power.ts";
import type { NodeView } from "../snapshot.ts";
import type { AttemptRecord } from "../status.ts";
import { isNewBootOf, returnToWork } from "../boot.ts";
import { attemptFailed } from "./attempt.ts";
import { deadline } from "./pause.ts";

/** How long a Node that was Ready after the repair may be un-Ready before that is the next attempt. */
const UNREADY_AGAIN_MS = 60_000;
const READY_POLL_MS = 5_000;

export function turnOn(draft: Draft, hold: PowerHold): void {
  const { snapshot, policy, now } = draft;
  const { host } = draft.parts();
  const attempt = draft.attempt();
  const asked = Date.parse(hold.onAskedAt ?? hold.askedAt);
  draft.phase = "Waiting";
  if (onSeen(draft, hold)) return;
  if (now >= deadline(attempt, "on", asked, policy.onTimeoutMs)) {
    attemptFailed(
      draft,
      "OnTimeout",
      `host ${host.name} was asked to power on and was not seen on in time (${powerProblem(snapshot.power, snapshot.power.on)})`,
    );
    return;
  }
  if (onIsDue(snapshot.power, asked, now)) draft.act({ type: "askOn", hold: intentOf(hold) });
  draft.progress(true, "PoweringOn", `waiting for host ${host.name} to be on`);
  draft.checkIn(POLL_MS);
}

/** Whether the host is on. Then the hold goes, but only after the status holds what the hold held. */
export function onSeen(draft: Draft, hold: PowerHold): boolean {
  const { snapshot, now } = draft;
  const { host } = draft.parts();
  const attempt = draft.attempt();
  const last = lastReading(snapshot.power, Date.parse(hold.onAskedAt ?? hold.askedAt));
  if (attempt.onSeenAt === undefined) {
    if (last?.power !== "on") return false;
    attempt.onSeenAt = iso(now);
    draft.step("PoweredOn", `host ${host.name} is on; the hold on it goes`);
  }
  draft.progress(true, "Booting", "waiting for another boot of the Node");
  draft.commitStatus();
  draft.act({ type: "dropHold", record: hostRecord(draft, "PowerCycled") });
  draft.checkIn(NODE_POLL_MS);
  return true;
}

export function isNewBoot(attempt: AttemptRecord, node: NodeView): boolean {
  return isNewBootOf(attempt.nodeBefore?.bootID, attempt.onAskedAt, node);
}

/** Brings back what the fence took, once a new boot allows it. */
export function clearFence(draft: Draft, node: NodeView): void {
  const attempt = draft.attempt();
  if (attempt.newBootAt === undefined) {
    attempt.newBootAt = iso(draft.now);
    draft.step("NewBoot", `Node ${node.name} reports a new boot`);
    if (draft.status.fencing !== undefined && node.bootID !== undefined) draft.status.fencing.bootAfter = node.bootID;
  }
  const owes = attemptOwesNode(attempt);
  const [first, ...more] = returnToWork(node, owes ? attempt.backup : undefined);
  if (first !== undefined) draft.act(first);
  if (more.length > 0) {
    draft.checkIn(1);
    return;
  }
  if (!owes) return;
  attempt.clearedAt = iso(draft.now);
  if (draft.status.fencing !== undefined) draft.status.fencing.clearedAt = attempt.clearedAt;
  draft.step("FenceRemoved", `Node ${node.name} takes work again`);
}

export function waitForBoot(draft: Draft): void {
  const { snapshot, policy, now } = draft;
  const { workload, machine } = snapshot;
  const attempt = draft.attempt();
  draft.phase = "Waiting";
  const node = workload.state === "read" ? workload.node : null;
  if (node !== null && isNewBoot(attempt, node)) {
    clearFence(draft, node);
    if (node.ready) {
      succeeded(draft, node);
      return;
    }
  }
  if (attempt.readyAt !== undefined) {
    unready(draft);
    return;
  }
  const unreachable = workload.state === "error" && workload.reason !== "forbidden";
  if (now >= deadline(attempt, "ready", Date.parse(attempt.onSeenAt ?? iso(now)), policy.readyTimeoutMs) && workload.state !== "unread") {
    // What cannot be looked at cannot be judged: no healthy host is cycled because its API server is away.
    if (!unreachable) {
      attemptFailed(draft, "NotReadyInTime", notReady(draft, node, machine?.nodeName));
      return;
    }
    draft.progress(false, "WorkloadUnreachable", `whether the Node is Ready cannot be seen: ${workload.message}`);
  } else if (workload.state === "error") {
    draft.progress(true, "WorkloadUnreachable", `waiting for the Node; it cannot be read: ${workload.message}`);
  } else {
    draft.progress(
      true,
      attempt.newBootAt === undefined ? "Booting" : "WaitingForReady",
      attempt.newBootAt === undefined ? "waiting for another boot of the Node" : "waiting for the Node to be Ready",
    );
  }
  draft.checkIn(workload.state === "unread" ? 1 : NODE_POLL_MS);
}

function notReady(draft: Draft, node: NodeView | null, name: string | undefined): string {
  const { workload } = draft.snapshot;
  if (workload.state === "error") return `the Node cannot be read: ${workload.message}`;
  if (name === undefined) return "the host has not joined the cluster";
  if (node === null) return `the workload cluster has no Node ${name}`;
  return isNewBoot(draft.attempt(), node) ? `Node ${name} did not get Ready` : `Node ${name} reports no new boot`;
}

function succeeded(draft: Draft, node: NodeView): void {
  const attempt = draft.attempt();
  if (attempt.readyAt === undefined) {
    attempt.readyAt = iso(draft.now);
    draft.step("Succeeded", `Node ${node.name} is Ready after attempt ${attempt.number}`);
  }
  delete attempt.unreadySince;
  draft.condition("Succeeded", "True", "NodeReady", `Node ${node.name} is Ready after attempt ${attempt.number}`);
  draft.progress(false, "Succeeded", "the MachineHealthCheck removes this object once it sees the Node healthy");
  draft.checkIn(READY_POLL_MS);
}

function unready(draft: Draft): void {
  const { workload } = draft.snapshot;
  const attempt = draft.attempt();
  draft.checkIn(READY_POLL_MS);
  if (workload.state !== "read") return;
  attempt.unreadySince ??= iso(draft.now);
  if (draft.now >= Date.parse(attempt.unreadySince) + UNREADY_AGAIN_MS) {
    attemptFailed(draft, "NotReadyAgain", `the Node was Ready after attempt ${attempt.number} and is not any more`);
    return;
  }
  draft.condition("Succeeded", "False", "NotReadyAgain", "the Node was Ready and is not any more");
}
