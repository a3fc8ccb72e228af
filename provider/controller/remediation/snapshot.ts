/** Everything a decision may rest on, as it was observed. */
import type { HoldReading } from "../../hosts/power-hold.ts";
import type { BmcErrorKind, PowerReading } from "../../redfish/bmc.ts";
import type { RemediationStatus } from "./status.ts";

export interface Snapshot {
  /** False while any view that this rests on may be old: then nothing is done at all. */
  fresh: boolean;
  own: {
    /** `unknown`: the settings have not been read yet. */
    stop: "on" | "off" | "unknown";
    /** Name of the Node that this process runs on. */
    nodeName: string | undefined;
  };
  remediation: RemediationView;
  /** The Machine of that name, whatever its uid; undefined where there is none. */
  machine: MachineView | undefined;
  cluster: { namespace: string; name: string; paused: boolean };
  /** Where the links Machine → infrastructure machine → host lead, each checked by uid and backwards. */
  chain: ChainView;
  /** The host that carries our hold, else the one at the end of the chain. */
  host: HostView | undefined;
  power: PowerView;
  workload: WorkloadView;
}

export interface RemediationView {
  kind: string;
  namespace: string;
  name: string;
  uid: string;
  generation: number | undefined;
  deleting: boolean;
  paused: boolean;
  finalizer: boolean;
  /** The Machine that it was made for. */
  machineUid: string | undefined;
  status: RemediationStatus;
}

export interface MachineView {
  namespace: string;
  name: string;
  uid: string;
  deleting: boolean;
  paused: boolean;
  skipsRemediation: boolean;
  nodeName: string | undefined;
  providerID: string | undefined;
  /** `OwnerRemediated` is False, whoever wrote it and for whatever reason. */
  offered: boolean;
}

export type ChainView = { ok: true; hostUid: string } | { ok: false; reason: "HostMismatch" | "NoPowerDriver"; message: string };

export interface HostView {
  driver: "redfish";
  namespace: string;
  name: string;
  uid: string;
  deleting: boolean;
  paused: boolean;
  hold: HoldReading;
  /** Whether the remediation that the hold names still exists, by uid. */
  holderExists: boolean;
  unhealthy: boolean;
  /** Uid of the Machine for which a person confirmed that the host is off. */
  confirmedOff: string | undefined;
  /** Whether it names a BMC. */
  bmc: boolean;
}

export interface AskView {
  at: number;
  /** How often it was asked since the intent was written. */
  count: number;
  outcome: "accepted" | "refused" | "unknown";
  /** Whether any asking since the intent was written may have had an effect. */
  mayHaveHappened: boolean;
  error?: { kind: BmcErrorKind | "target"; message: string };
}

/** What this process heard from the BMC since the hold's `askedAt` was written. */
export interface PowerView {
  /** Oldest first. */
  readings: readonly PowerReading[];
  /** Whether this process itself wrote the intent, so that it knows of every asking since. */
  complete: boolean;
  /** Set where the latest reading failed. */
  error?: { kind: BmcErrorKind | "target"; message: string; at: number };
  /** When a reading failed for the first time. */
  firstErrorAt?: number;
  off?: AskView;
  on?: AskView;
}

export interface NodeView {
  name: string;
  uid: string;
  resourceVersion: string;
  deleting: boolean;
  providerID: string | undefined;
  bootID: string | undefined;
  ready: boolean;
  /** Last heartbeat of its kubelet, milliseconds since the epoch. */
  heartbeatAt: number | undefined;
  /** The out-of-service taint with effect NoExecute: ours, another's or none. */
  outOfService: "ours" | "foreign" | "none";
  labels: Readonly<Record<string, string>>;
  annotations: Readonly<Record<string, string>>;
}

export type WorkloadView =
  | { state: "unread" }
  | { state: "error"; reason: "unreachable" | "forbidden" | "noCluster"; message: string }
  | {
      state: "read";
      /** As the workload's API server says it; undefined where it did not. */
      version: string | undefined;
      /** Null: the API server knows no such Node. */
      node: NodeView | null;
      /** Whether writing the Node was refused for lack of permission. */
      writeForbidden: boolean;
      /** Undefined where it was not looked at. */
      drain: DrainView | undefined;
    };

export type DrainView =
  | { state: "failed"; message: string }
  /** `clearSince`: first of an unbroken row of sightings of an empty Node, up to now. */
  | { state: "seen"; clearSince: number | undefined; sightings: number; pods: readonly string[]; attachments: readonly string[] };
