/** A Machine, as both Cluster API versions store it. */
import { z } from "zod";

import type { LiveObject } from "../cluster/objects.ts";
import type { Condition } from "./conditions.ts";
import { conditionOf, conditionsOf } from "./conditions.ts";
import { capiLabels } from "./kinds.ts";
import type { Reference } from "./references.ts";
import { referenceModel } from "./references.ts";

const model = z.object({
  spec: z.object({ version: z.string().optional(), infrastructureRef: referenceModel }),
  status: z.object({ phase: z.string().optional(), nodeRef: z.object({ name: z.string() }).optional() }).optional(),
});

export interface MachineView {
  name: string;
  uid: string;
  /** MachineSet that it belongs to. */
  setName: string | undefined;
  deleting: boolean;
  phase: string | undefined;
  version: string | undefined;
  nodeName: string | undefined;
  infrastructure: Reference;
  conditions: Condition[];
  /** Joined, with a healthy Node and everything that Cluster API sums up as ready. */
  ready: boolean;
}

export function readMachine(live: LiveObject): MachineView {
  const { spec, status } = model.parse(live);
  const conditions = conditionsOf(live["status"]);
  const deleting = live.metadata.deletionTimestamp !== undefined;
  // Cluster API before 1.11 leaves the Node's health out of `Ready` and has a condition of its own for it.
  const healthy = ["Ready", "NodeHealthy"].every((type) => {
    const condition = conditionOf(conditions, type);
    return condition === undefined ? type !== "Ready" : condition.status === "True";
  });
  return {
    name: live.metadata.name,
    uid: live.metadata.uid,
    setName: live.metadata.labels?.[capiLabels.setName],
    deleting,
    phase: status?.phase,
    version: spec.version,
    nodeName: status?.nodeRef?.name,
    infrastructure: spec.infrastructureRef,
    conditions,
    ready: !deleting && status?.nodeRef !== undefined && healthy,
  };
}
