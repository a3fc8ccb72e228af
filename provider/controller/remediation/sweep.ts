/** Holds whose remediation is gone are undone from what they themselves hold: On until on, then the Node, then the hold goes. */
import type { PowerHold } from "../../hosts/power-hold.ts";
import { isNewBootOf, returnToWork } from "./boot.ts";
import type { Action, HoldIntent, Reason } from "./decision.ts";
import { intentOf, iso, nodeOwed, POLL_MS } from "./draft.ts";
import { lastMaybeAsked, lastReading, nextAskAt, offWasRead, onIsDue, powerProblem } from "./power.ts";
import type { PowerView, WorkloadView } from "./snapshot.ts";

const NODE_CHECK_MS = 10_000;

export interface OrphanSnapshot {
  fresh: boolean;
  hostName: string;
  hold: PowerHold;
  /** The Machine of the hold, by uid. */
  machine: { exists: boolean; deleting: boolean };
  /** Whether the Cluster object of the hold still exists. */
  clusterExists: boolean;
  power: PowerView;
  workload: WorkloadView;
}

export interface OrphanDecision {
  actions: Action[];
  reasons: Reason[];
  nextCheckAt?: number;
}

export function orphanNeeds(snapshot: OrphanSnapshot): { power: boolean; workload: "none" | "node" } {
  if (!snapshot.fresh || handedOver(snapshot)) return { power: false, workload: "none" };
  if (snapshot.hold.onSeenAt === undefined) return { power: true, workload: "none" };
  return { power: false, workload: nodeOwed(snapshot.hold) && snapshot.hold.node !== undefined ? "node" : "none" };
}

/** An escalated repair's host stays off for whoever gives its Machine up. */
function handedOver({ hold, machine }: OrphanSnapshot): boolean {
  return hold.purpose === "replace" && (!machine.exists || machine.deleting);
}

export function decideOrphan(snapshot: OrphanSnapshot, now: number): OrphanDecision {
  const { hold, power, hostName } = snapshot;
  if (!snapshot.fresh) return { actions: [], reasons: [], nextCheckAt: now + 5_000 };
  if (handedOver(snapshot)) return { actions: [], reasons: [] };
  if (hold.onAskedAt === undefined) {
    const asked = Date.parse(hold.askedAt);
    const offTimeoutMs = Date.parse(hold.offBy) - asked;
    if (!offWasRead(power, asked) && now < lastMaybeAsked(power, asked) + offTimeoutMs) return { actions: [], reasons: [], nextCheckAt: now + POLL_MS };
    const next: HoldIntent = { ...intentOf(hold), purpose: "undo", onAskedAt: iso(now) };
    const reason = { reason: "PowerOnAsked", message: `the remediation that held host ${hostName} is gone; the host is asked to power on`, warning: false };
    return {
      actions: [
        { type: "writeHold", hold: next },
        { type: "askOn", hold: next },
      ],
      reasons: [reason],
      nextCheckAt: now + POLL_MS,
    };
  }
  if (hold.onSeenAt === undefined) return waitForOn(snapshot, Date.parse(hold.onAskedAt), now);
  return nodeOwed(hold) ? clearNode(snapshot, now) : drop(`host ${hostName} is on; the hold on it goes`);
}

function drop(message: string): OrphanDecision {
  return { actions: [{ type: "dropHold" }], reasons: [{ reason: "HoldDropped", message, warning: false }] };
}

function waitForOn(snapshot: OrphanSnapshot, asked: number, now: number): OrphanDecision {
  const { hold, power, hostName } = snapshot;
  if (lastReading(power, asked)?.power === "on") {
    if (!nodeOwed(hold)) return drop(`host ${hostName} is on; the hold on it goes`);
    return { actions: [{ type: "writeHold", hold: { ...intentOf(hold), purpose: "undo", onSeenAt: iso(now) } }], reasons: [], nextCheckAt: now + 1 };
  }
  const due = onIsDue(power, asked, now);
  const reasons =
    power.on?.outcome === "refused"
      ? [{ reason: "PowerOnOwed", message: `host ${hostName} does not power on (${powerProblem(power, power.on)}); it goes on being asked`, warning: true }]
      : [];
  return {
    actions: due ? [{ type: "askOn", hold: intentOf(hold) }] : [],
    reasons,
    nextCheckAt: power.error === undefined ? now + POLL_MS : Math.max(now + POLL_MS, nextAskAt(power.on, now)),
  };
}

function clearNode(snapshot: OrphanSnapshot, now: number): OrphanDecision {
  const { hold, workload, machine, clusterExists, hostName } = snapshot;
  if (hold.node === undefined || !clusterExists) return drop(`nothing is left of the Node of host ${hostName}; the hold on it goes`);
  if (workload.state !== "read") return { actions: [], reasons: [], nextCheckAt: now + (workload.state === "unread" ? 1 : NODE_CHECK_MS) };
  const { node } = workload;
  if (node === null) {
    // A deleted Node may still be registered again, as long as there is a Machine that it belongs to.
    return hold.fence?.mode === "Taint" || !machine.exists
      ? drop(`Node ${hold.node.name} is gone; the hold on host ${hostName} goes`)
      : { actions: [], reasons: [], nextCheckAt: now + NODE_CHECK_MS };
  }
  if (!isNewBootOf(hold.node.bootID, hold.onAskedAt, node)) return { actions: [], reasons: [], nextCheckAt: now + NODE_CHECK_MS };
  const actions = returnToWork(node, hold.backup);
  // Both change the Node, and each goes by what was read: one a pass, and the hold goes when nothing is left to do.
  const first = actions[0];
  return first === undefined
    ? drop(`Node ${node.name} has all that is its own; the hold on host ${hostName} goes`)
    : { actions: [first], reasons: [], nextCheckAt: now + 1 };
}
