/** The Node of a host that is proven off: tainted out-of-service, or backed up and deleted; then drained. */
import type { NodeBackup, PowerHold } from "../../../hosts/power-hold.ts";
import { type Draft, iso, POLL_MS } from "../draft.ts";
import type { NodeView } from "../snapshot.ts";
import { holdWith } from "./attempt.ts";
import { deadline } from "./pause.ts";

/** Kubernetes from which the out-of-service taint is generally available. */
const TAINT_SINCE_MINOR = 28;
/** Labels and annotations of one Node that are kept; more is not backed up. */
const BACKUP_LIMIT_BYTES = 64 * 1024;
/** Written anew by their own controllers, or wrong on a Node that was registered again. */
const notBackedUp = [
  /^csi\.volume\.kubernetes\.io\//,
  /^volumes\.kubernetes\.io\//,
  /^node\.alpha\.kubernetes\.io\//,
  /^cluster\.x-k8s\.io\//,
  /^kubeadm\.alpha\.kubernetes\.io\//,
  /^node\.kubernetes\.io\/exclude-from-external-load-balancers$/,
];

/** `taint` or `delete`, by the leading digits of the workload's version; undefined while that is unknown. */
export function fenceModeOf(version: string | undefined): "Taint" | "Delete" | undefined {
  const match = /^v?(\d+)\.(\d+)/.exec(version ?? "");
  if (match === null) return undefined;
  const major = Number(match[1]);
  return major > 1 || (major === 1 && Number(match[2]) >= TAINT_SINCE_MINOR) ? "Taint" : "Delete";
}

/** What an earlier backup holds and this Node lacks is kept too: it has not been restored yet. */
export function backupOf(node: NodeView, earlier?: NodeBackup): NodeBackup {
  let left = BACKUP_LIMIT_BYTES;
  const kept = (values: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(
      Object.entries(values)
        .filter(([key]) => !notBackedUp.some((pattern) => pattern.test(key)))
        .filter(([key, value]) => (left -= Buffer.byteLength(key) + Buffer.byteLength(value) + 6) >= 0),
    );
  return { uid: node.uid, labels: kept({ ...earlier?.labels, ...node.labels }), annotations: kept({ ...earlier?.annotations, ...node.annotations }) };
}

/** True once the Node is fenced and drained, or there is nothing to wait for any more. `proven`: the host is off right now. */
export function fenceNode(draft: Draft, hold: PowerHold, proven: boolean): boolean {
  const attempt = draft.attempt();
  if (attempt.fence === undefined && !fence(draft, hold, proven)) return false;
  return attempt.drainedAt !== undefined || drained(draft);
}

function passed(draft: Draft): boolean {
  const attempt = draft.attempt();
  return draft.now >= deadline(attempt, "drain", Date.parse(attempt.offProvenAt ?? iso(draft.now)), draft.policy.drainTimeoutMs);
}

function fence(draft: Draft, hold: PowerHold, proven: boolean): boolean {
  const { workload, machine } = draft.snapshot;
  if (machine?.nodeName === undefined) return settle(draft, "None", "the Machine has no Node");
  if (workload.state === "unread") {
    draft.checkIn(1);
    return wait(draft, "Fencing", "looking at the Node");
  }
  if (workload.state === "error") {
    if (workload.reason === "forbidden") return giveUp(draft, `reading the Node is forbidden: ${workload.message}`);
    return passed(draft) ? giveUp(draft, workload.message) : wait(draft, "WorkloadUnreachable", `the Node cannot be fenced: ${workload.message}`);
  }
  const { node, version } = workload;
  if (node === null)
    return attempted(draft) === "Delete" ? settle(draft, "Delete") : settle(draft, "None", `the workload cluster has no Node ${machine.nodeName}`);
  if (proven && hold.node?.bootID !== node.bootID) return noteBoot(draft, node);
  if (node.outOfService !== "none" && proven) return settle(draft, node.outOfService === "ours" ? "Taint" : "Foreign");
  if (workload.writeForbidden) {
    // Refused for good, and the Node is as it was: nothing of ours has to be taken back.
    delete draft.attempt().fenceIntent;
    return giveUp(draft, "writing the Node is forbidden");
  }
  const mode = fenceModeOf(version);
  if (passed(draft))
    return giveUp(
      draft,
      mode === undefined ? "the version of the workload cluster is unknown" : "the host was not proven off any more when the Node could be reached",
    );
  if (mode === undefined) return wait(draft, "WorkloadVersionUnknown", "the version of the workload cluster is unknown");
  if (!proven) return wait(draft, "Fencing", "the host has to be read Off anew before its Node is fenced");
  write(draft, hold, node, mode);
  return false;
}

function attempted(draft: Draft): "Taint" | "Delete" | undefined {
  return draft.attempt().fenceIntent?.mode;
}

function write(draft: Draft, hold: PowerHold, node: NodeView, mode: "Taint" | "Delete"): void {
  const attempt = draft.attempt();
  const target = { name: node.name, uid: node.uid, resourceVersion: node.resourceVersion };
  const backup = mode === "Delete" && hold.backup?.uid !== node.uid ? backupOf(node, hold.backup) : undefined;
  if (hold.fence?.mode !== mode || backup !== undefined) {
    attempt.fenceIntent = { mode, at: iso(draft.now) };
    if (backup !== undefined) attempt.backup = backup;
    draft.act({ type: "writeHold", hold: holdWith(draft, { fence: attempt.fenceIntent, ...(backup === undefined ? {} : { backup }) }) });
  }
  draft.act(mode === "Taint" ? { type: "taintNode", node: target } : { type: "deleteNode", node: target });
  draft.progress(true, "Fencing", mode === "Taint" ? `Node ${node.name} is tainted out-of-service` : `Node ${node.name} is deleted`);
  draft.checkIn(1);
}

/** The boot that the Node reports while its host is off is the one before our power-on: only another one lifts the fence. */
function noteBoot(draft: Draft, node: NodeView): false {
  const attempt = draft.attempt();
  attempt.nodeBefore = { name: node.name, uid: node.uid, ...(node.bootID === undefined ? {} : { bootID: node.bootID }) };
  draft.act({ type: "writeHold", hold: holdWith(draft, { node: attempt.nodeBefore }) });
  draft.checkIn(1);
  return false;
}

function settle(draft: Draft, mode: "Taint" | "Delete" | "Foreign" | "None", why?: string): true {
  const { now } = draft;
  const attempt = draft.attempt();
  const fencedAt = iso(now);
  attempt.fence = { mode, at: fencedAt, ...(why === undefined ? {} : { reason: why }) };
  const words = {
    Taint: "the Node is tainted out-of-service",
    Delete: "the Node is deleted",
    Foreign: "the Node has an out-of-service taint of somebody else",
    None: why ?? "no Node",
  };
  const { fencing } = draft.status;
  if (fencing !== undefined) {
    fencing.mode = mode;
    fencing.fencedAt = fencedAt;
    if (attempt.nodeBefore !== undefined) fencing.node = attempt.nodeBefore.name;
    if (attempt.nodeBefore?.bootID !== undefined) fencing.bootBefore = attempt.nodeBefore.bootID;
  }
  draft.condition("Fenced", mode === "None" ? "Unknown" : "True", mode === "None" ? "NoNode" : `Fenced${mode}`, words[mode]);
  draft.step(mode === "None" ? "NoNode" : "Fenced", words[mode]);
  return true;
}

function giveUp(draft: Draft, why: string): true {
  const attempt = draft.attempt();
  attempt.fence = { mode: "None", at: iso(draft.now), reason: why };
  // Which boot the Node was in could not be seen while the host was off: then only a status after power-on tells of a new one.
  if (attempt.nodeBefore !== undefined) attempt.nodeBefore = { name: attempt.nodeBefore.name };
  draft.condition("Fenced", "False", "NotFenced", why);
  draft.step("NotFenced", why, true);
  return true;
}

function wait(draft: Draft, reason: string, message: string): false {
  draft.progress(true, reason, message);
  draft.checkIn(POLL_MS);
  return false;
}

function drained(draft: Draft): boolean {
  const { workload } = draft.snapshot;
  const { drainConfirmationMs } = draft.policy;
  const attempt = draft.attempt();
  const { fence: done } = attempt;
  if (done === undefined || done.mode === "None") {
    attempt.drainedAt = iso(draft.now);
    return true;
  }
  const drain = workload.state === "read" ? workload.drain : undefined;
  if (
    drain?.state === "seen" &&
    drain.clearSince !== undefined &&
    drain.sightings >= 2 &&
    draft.now - drain.clearSince >= drainConfirmationMs &&
    drain.clearSince >= Date.parse(done.at)
  ) {
    attempt.drainedAt = iso(draft.now);
    draft.condition("Drained", "True", "Drained", "no Pod is ending on the Node and no volume is attached to it");
    draft.step("Drained", "no Pod is ending on the Node and no volume is attached to it");
    return true;
  }
  const left =
    drain?.state === "seen" ? [...drain.pods.map((pod) => `Pod ${pod}`), ...drain.attachments.map((name) => `VolumeAttachment ${name}`)].slice(0, 10) : [];
  const problem =
    drain?.state === "failed"
      ? drain.message
      : workload.state === "error"
        ? workload.message
        : left.length === 0
          ? "not seen empty for long enough"
          : left.join(", ");
  if (passed(draft)) {
    attempt.drainedAt = iso(draft.now);
    draft.condition("Drained", "False", "DrainIncomplete", problem);
    draft.step("DrainIncomplete", problem, true);
    return true;
  }
  draft.condition("Drained", "False", "Draining", problem);
  draft.progress(true, "Draining", "waiting until nothing of the Node is left");
  const clearSince = drain?.state === "seen" ? drain.clearSince : undefined;
  draft.checkAt(
    clearSince === undefined
      ? draft.now + (drain === undefined ? 1 : POLL_MS)
      : Math.max(draft.now + 1, Math.min(draft.now + POLL_MS, clearSince + drainConfirmationMs)),
  );
  return false;
}
