/** Whether a Node has booted since, and what brings it back to work. */
import type { NodeBackup } from "../../hosts/power-hold.ts";
import type { Action } from "./decision.ts";
import type { NodeView } from "./snapshot.ts";

/** Whether the Node reports another boot than the one before. None known before: any kubelet status after power-on was asked. */
export function isNewBootOf(bootBefore: string | undefined, onAskedAt: string | undefined, node: NodeView): boolean {
  if (bootBefore !== undefined) return node.bootID !== undefined && node.bootID !== bootBefore;
  return onAskedAt !== undefined && node.heartbeatAt !== undefined && node.heartbeatAt > Date.parse(onAskedAt);
}

/** What of a backup the Node lacks; undefined where it lacks nothing or is the Node that the backup was made of. */
export function missingFrom(node: NodeView, backup: NodeBackup | undefined): NodeBackup | undefined {
  if (backup === undefined || node.uid === backup.uid) return undefined;
  const lacking = (kept: Readonly<Record<string, string>>, own: Readonly<Record<string, string>>): Record<string, string> =>
    Object.fromEntries(Object.entries(kept).filter(([key]) => !(key in own)));
  const labels = lacking(backup.labels, node.labels);
  const annotations = lacking(backup.annotations, node.annotations);
  return Object.keys(labels).length + Object.keys(annotations).length === 0 ? undefined : { uid: backup.uid, labels, annotations };
}

/** The writes that a newly booted Node still needs, in order. Each changes the Node: only the first may be done on one reading of it. */
export function returnToWork(node: NodeView, backup: NodeBackup | undefined): Action[] {
  const target = { name: node.name, uid: node.uid, resourceVersion: node.resourceVersion };
  const missing = missingFrom(node, backup);
  return [
    ...(missing === undefined ? [] : [{ type: "restoreNode", node: target, backup: missing } as const]),
    ...(node.outOfService === "ours" ? [{ type: "untaintNode", node: target } as const] : []),
  ];
}
