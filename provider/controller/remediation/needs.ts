/** What has to be read now, beside the watched objects: nothing that the next decision does not need. */
import { attemptOwesNode, nodeNameOf, ownHold } from "./draft.ts";
import { gateOf, pausedBy, undoCause } from "./gates.ts";
import { offWasRead } from "./power.ts";
import type { Snapshot } from "./snapshot.ts";

export interface Needs {
  /** One reading of the host's power. */
  power: boolean;
  /** `node`: the Node; `fence`: the version of the workload cluster too; `drain`: and what is left on the Node. */
  workload: "none" | "node" | "fence" | "drain";
}

const nothing: Needs = { power: false, workload: "none" };

/** `snapshot`: as far as it is known without reading; its power holds what was read before. */
export function needsOf(snapshot: Snapshot): Needs {
  if (!snapshot.fresh || pausedBy(snapshot) !== undefined) return nothing;
  const hold = ownHold(snapshot);
  const { attempt, escalation } = snapshot.remediation.status;
  const power = hold !== undefined && !(hold.purpose === "replace" && escalation?.offeredAt !== undefined && undoCause(snapshot) === undefined);
  const node = nodeNameOf(snapshot) !== undefined;
  if (undoCause(snapshot) !== undefined) return { power, workload: node && hold === undefined && attemptOwesNode(attempt) ? "node" : "none" };
  if (gateOf(snapshot) !== undefined) return nothing;
  if (hold === undefined) {
    if (attempt === undefined) return { power: true, workload: node ? "node" : "none" };
    return { power: false, workload: escalation === undefined && node ? "node" : "none" };
  }
  if (hold.purpose !== "reboot" || hold.onAskedAt !== undefined || !node) return { power, workload: "none" };
  const current = attempt?.offAskedAt === hold.askedAt ? attempt : undefined;
  if (current?.fence !== undefined && current.fence.mode !== "None" && current.drainedAt === undefined) return { power, workload: "drain" };
  const off = hold.confirmedAt !== undefined || current?.offProvenAt !== undefined || offWasRead(snapshot.power, Date.parse(hold.askedAt));
  return { power, workload: off ? "fence" : "none" };
}
