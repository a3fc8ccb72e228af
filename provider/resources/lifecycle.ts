/** What a resource is to a front (the dynamic provider, later a plugin), and what a front gives to each verb. */
import type { Clock } from "../clock.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { BmcAccess } from "../redfish/bmc.ts";

/** Where lines for the person who runs Pulumi go. The sink folds repetitions and may drop status lines. */
export interface Reporter {
  /** What is being waited for right now, machine by machine. */
  status(line: string): void;
  /** A consequence worth reading in a preview. */
  info(line: string): void;
  warn(line: string): void;
}

export interface VerbContext {
  /** Opens the management cluster on first use; throws `ClusterError` where the kubeconfig is unusable. */
  cluster(): Promise<Cluster>;
  readonly bmcs: BmcAccess;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly report: Reporter;
  /** From stack configuration; used where a resource has no `namespace` of its own. */
  readonly defaultNamespace: string;
}

export interface CheckFailure {
  /** Path of the input, as the user wrote it: `infrastructure.machineInventory.pool`. */
  property: string;
  /** What is wrong and what to do. */
  reason: string;
}

export interface CheckResult<Inputs> {
  inputs: Inputs;
  failures: CheckFailure[];
}

export interface DiffResult {
  /** Whether an update or a replacement is due at all. */
  changed: boolean;
  /** Input paths that force replacement, top-level names. */
  replaces: string[];
  deleteBeforeReplace: boolean;
}

export interface CreateResult<State> {
  id: string;
  state: State;
}

/**
 * The verbs of one resource. `inputs` that are not known yet in a preview arrive as `UNKNOWN`.
 * A verb that fails after it has created something throws `PartialFailure`, so that nothing real is lost from the state.
 */
export interface Lifecycle<Inputs, State> {
  /** `olds` are the inputs of the last run, absent for a resource that does not exist yet. Reports the consequences of a create. */
  check(context: VerbContext, olds: unknown, news: unknown): Promise<CheckResult<Inputs>>;
  /** Reports the consequences of an update. */
  diff(context: VerbContext, id: string, state: State, news: Inputs): Promise<DiffResult>;
  create(context: VerbContext, inputs: Inputs): Promise<CreateResult<State>>;
  /** Undefined only where the object is gone while its kind is served. */
  read(context: VerbContext, id: string, state: State): Promise<{ id: string; state: State } | undefined>;
  update(context: VerbContext, id: string, state: State, news: Inputs): Promise<State>;
  delete(context: VerbContext, id: string, state: State): Promise<void>;
}

/** What the engine puts in place of a value that is not known in a preview, whatever its type (pulumi/pulumi#6310). */
export const UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9";

/** Something exists, but the verb did not end well: the state is kept and the next run goes on from it. */
export class PartialFailure<State> extends Error {
  override readonly name = "PartialFailure";
  readonly id: string;
  readonly state: State;
  readonly reasons: readonly string[];

  constructor(id: string, state: State, reasons: readonly string[]) {
    super(reasons.join("; "));
    this.id = id;
    this.state = state;
    this.reasons = reasons;
  }
}
