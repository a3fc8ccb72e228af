/** What a controller is to the runtime, and the runtime to a controller. */
import type { LiveObject, ResourceKind } from "../../cluster/objects.ts";

/** The watched objects of one kind in the namespaces of this process, by key (`namespace/name`). Never written to. */
export interface Store {
  get(key: string): LiveObject | undefined;
  list(): readonly LiveObject[];
  /**
   * Whether the view may be acted upon: the kind is served, listed once, and its watch has given a sign of life
   * (event or bookmark) within the staleness limit. Nothing destructive is done on a store that is not fresh.
   */
  fresh(): boolean;
}

export interface WatchedKind {
  kind: ResourceKind;
  /** The keys to reconcile when this object appears, changes or goes. */
  keys(object: LiveObject): readonly string[];
}

export interface ReconcileResult {
  /** Reconcile the key again after that many milliseconds, if nothing else causes it earlier. */
  againAfterMs?: number;
}

/**
 * One control loop. The runtime calls `reconcile` for a key never twice at once, with backoff after a throw, and only
 * while this process holds the Lease; `signal` is aborted as soon as it does not.
 */
export interface Reconciler {
  readonly name: string;
  readonly watches: readonly WatchedKind[];
  /** Keys to reconcile at start and every minute beside those that events name: for a sweep of what is owed. */
  sweep?(): readonly string[];
  reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult>;
}

export interface Stores {
  /** The store of a kind that some reconciler watches. */
  of(kind: ResourceKind): Store;
}

/** Kubernetes Events on the objects that a decision touches. Never throws; repeated ones are folded. */
export interface EventRecorder {
  record(object: LiveObject, event: { type: "Normal" | "Warning"; reason: string; message: string }): void;
}

/** Structured log lines; `fields` never hold a credential. */
export interface Log {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}
