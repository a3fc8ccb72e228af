/** What a decision consists of. Every action is small, may be repeated, and fails where the object is not as the snapshot saw it. */
import type { NodeBackup, PowerHold } from "../../hosts/power-hold.ts";
import type { RemediationStatus } from "./status.ts";

/** A hold as it is to be written; what is owed follows from it. */
export type HoldIntent = Omit<PowerHold, "owed">;

export type Action =
  | { type: "addFinalizer" }
  | { type: "removeFinalizer" }
  /** `cluster.x-k8s.io/skip-remediation`, so that MachineHealthCheck leaves a Machine in deletion alone. */
  | { type: "skipRemediation" }
  /** `usesConfirmation`: removes the person's confirmation in the same write. */
  | { type: "writeHold"; hold: HoldIntent; usesConfirmation?: boolean }
  /** `failure` is remembered on the host. */
  | { type: "dropHold"; record?: HostRecord }
  /** Both power actions go ahead only while the host's hold, read anew, is `hold`. */
  | { type: "askOff"; hold: HoldIntent }
  | { type: "askOn"; hold: HoldIntent }
  | { type: "taintNode"; node: NodeTarget }
  | { type: "untaintNode"; node: NodeTarget }
  | { type: "deleteNode"; node: NodeTarget }
  /** Adds the labels and annotations that the Node lacks; its own win. */
  | { type: "restoreNode"; node: NodeTarget; backup: NodeBackup }
  | { type: "markUnhealthy"; reason: string; record?: HostRecord }
  /** `OwnerRemediated=False` on the Machine, as both API versions read it. Left alone where it is False already. */
  | { type: "offerMachine"; message: string }
  | { type: "writeStatus"; status: RemediationStatus };

export interface NodeTarget {
  name: string;
  uid: string;
  resourceVersion: string;
}

/** What stays on the host after an attempt. */
export interface HostRecord {
  at: string;
  machine: string;
  attempt: number;
  outcome: string;
  offAskedAt: string;
  offProvenAt?: string;
  bootBefore?: string;
  bootAfter?: string;
}

/** Why something was done or left: recorded as Event, step and metric. */
export interface Reason {
  reason: string;
  message: string;
  warning: boolean;
}

export interface Decision {
  /** In order; a failed one ends the pass. */
  actions: Action[];
  /** The status that the object has once all actions are done. */
  status: RemediationStatus;
  reasons: Reason[];
  /** When to look again if nothing else happens; milliseconds since the epoch. */
  nextCheckAt?: number;
}
