/** The remediation controller as the runtime sees it: observe, decide, act, tell. One for each kind of remediation. */
import { clusters, machines } from "../../capi/kinds.ts";
import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { keyOf, type LiveObject, type ResourceKind } from "../../cluster/objects.ts";
import { baremetalMachines, machineInventories } from "../../hosts/kinds.ts";
import { type PowerHold, readHold } from "../../hosts/power-hold.ts";
import { allocationAnnotations } from "../../hosts/names.ts";
import type { BmcAccess } from "../../redfish/bmc.ts";
import type { EventRecorder, Log, Reconciler, ReconcileResult, Stores, WatchedKind } from "../runtime/reconciler.ts";
import type { Settings } from "../runtime/settings.ts";
import { Actor } from "./act.ts";
import { decide } from "./decide.ts";
import type { Reason } from "./decision.ts";
import { undoCause } from "./gates.ts";
import { HeldHosts } from "./held-hosts.ts";
import { LatestObjects } from "./latest.ts";
import { RepairMemories } from "./memories.ts";
import { Observer } from "./observe.ts";
import { readPolicy } from "./policy.ts";
import { decideOrphan } from "./sweep.ts";
import { clusterNameOf, ownerMachine } from "./views.ts";
import { type OpenKubeconfig, WorkloadClusters } from "./workload.ts";

/** When a hold is looked at again whose remediation exists and is not in view. */
const NOT_SEEN_YET_MS = 5_000;

export interface RemediationParts {
  /** `metal3Remediations` or `hostRemediations`. */
  kind: ResourceKind;
  cluster: Cluster;
  stores: Stores;
  bmcs: BmcAccess;
  clock: Clock;
  log: Log;
  events: EventRecorder;
  settings: Settings;
  /** Name of the Node that this process runs on; its own host is never powered off. */
  nodeName: string | undefined;
  /** How a kubeconfig becomes a client; the real one by default. */
  openKubeconfig?: OpenKubeconfig;
}

export class RemediationReconciler implements Reconciler {
  readonly name: string;
  readonly watches: readonly WatchedKind[];
  readonly #parts: RemediationParts;
  readonly #latest: LatestObjects;
  readonly #held: HeldHosts;
  readonly #memories: RepairMemories;
  readonly #workloads: WorkloadClusters;
  readonly #observer: Observer;
  readonly #actor: Actor;

  constructor(parts: RemediationParts) {
    const { kind, cluster, stores, bmcs, clock, settings, nodeName } = parts;
    this.#parts = parts;
    this.name = `remediation-${kind.plural}`;
    const latest = (this.#latest = new LatestObjects(stores));
    const held = (this.#held = new HeldHosts(kind.kind, latest));
    const memories = (this.#memories = new RepairMemories({ cluster, bmcs, clock }));
    const workloads = (this.#workloads =
      parts.openKubeconfig === undefined ? new WorkloadClusters(cluster, clock) : new WorkloadClusters(cluster, clock, parts.openKubeconfig));
    this.#observer = new Observer({ kind, stores, latest, held, memories, workloads, settings, nodeName, clock });
    this.#actor = new Actor({ kind, cluster, latest, held, memories, workloads, clock });
    this.watches = [
      { kind, keys: (object) => [keyOf(object)] },
      { kind: machines, keys: (object) => this.#known([keyOf(object)]) },
      { kind: clusters, keys: (object) => this.#ofCluster(object) },
      { kind: baremetalMachines, keys: (object) => this.#known(this.#ofMachineOwner(object)) },
      { kind: machineInventories, keys: (object) => this.#ofHost(object) },
    ];
  }

  /** Every key that a hold names: those whose remediation is gone are undone. */
  sweep(): readonly string[] {
    return this.#held.keys();
  }

  /** To be called at the start of each leadership: what was remembered in an earlier one does not count any more. */
  leads(): void {
    this.#memories.reset();
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const remediation = this.#latest.get(this.#parts.kind, key);
    const delays: number[] = [];
    const repair = remediation === undefined ? undefined : await this.#repair(remediation, signal);
    delays.push(...(repair?.delays ?? []));
    for (const host of this.#held.of(key)) delays.push(...(await this.#undoOrphan(host, remediation, repair?.undoing === true, signal)));
    return delays.length === 0 ? {} : { againAfterMs: Math.max(1, Math.min(...delays)) };
  }

  /** Ends the connections to workload clusters. */
  async close(): Promise<void> {
    await this.#workloads.close();
  }

  async #repair(remediation: LiveObject, signal: AbortSignal): Promise<{ delays: number[]; undoing: boolean }> {
    const { clock } = this.#parts;
    const observed = await this.#observer.observe(remediation, signal);
    const { snapshot, machine, host, node } = observed;
    const now = clock.now();
    const decision = decide(snapshot, readPolicy(remediation["spec"]), now);
    const { namespace, name } = snapshot.cluster;
    await this.#actor.perform(decision.actions, { remediation, machine, host, node, cluster: { namespace, name } }, signal);
    this.#tell(decision.reasons, [remediation, machine, host], { remediation: keyOf(remediation), uid: remediation.metadata.uid });
    if (host !== undefined && decision.actions.some(({ type }) => type === "removeFinalizer") && readHold(host.metadata.annotations).state === "none")
      this.#memories.forget(host);
    return { delays: decision.nextCheckAt === undefined ? [] : [decision.nextCheckAt - clock.now()], undoing: undoCause(snapshot) !== undefined };
  }

  /** A hold whose remediation is gone. `undoing`: the one that followed under the same name may not take it over. */
  async #undoOrphan(host: LiveObject, remediation: LiveObject | undefined, undoing: boolean, signal: AbortSignal): Promise<number[]> {
    const { clock } = this.#parts;
    const reading = readHold(host.metadata.annotations);
    if (reading.state !== "held" || reading.hold.by !== "remediation") return [];
    const { hold } = reading;
    if (hold.remediation?.uid === remediation?.metadata.uid) return [];
    // The next remediation of the same Machine takes the hold over, with all that is owed.
    if (!undoing && remediation !== undefined && ownerMachine(remediation)?.uid === hold.machine.uid) return [];
    const { snapshot, node } = await this.#observer.observeOrphan(host, hold, signal);
    const decision = decideOrphan(snapshot, clock.now());
    // The watch of the hosts may be ahead of that of the remediations.
    if (decision.actions.length > 0 && !(await this.#isGone(hold, signal))) return [NOT_SEEN_YET_MS];
    await this.#actor.perform(decision.actions, { host, node, cluster: hold.cluster }, signal);
    this.#tell(decision.reasons, [host], { remediation: `${hold.remediation?.namespace ?? ""}/${hold.remediation?.name ?? ""}`, uid: hold.remediation?.uid });
    return decision.nextCheckAt === undefined ? [] : [decision.nextCheckAt - clock.now()];
  }

  /** Whether the API server itself says so of the remediation that wrote the hold; where it cannot say, this throws. */
  async #isGone({ remediation }: PowerHold, signal: AbortSignal): Promise<boolean> {
    if (remediation === undefined) return true;
    const { cluster, kind } = this.#parts;
    const { namespace, name, uid } = remediation;
    try {
      return (await cluster.get(kind, { namespace, name }, { signal })).metadata.uid !== uid;
    } catch (error) {
      if (isClusterError(error, "notFound")) return true;
      throw error;
    }
  }

  #tell(reasons: readonly Reason[], objects: readonly (LiveObject | undefined)[], fields: Record<string, unknown>): void {
    const { events, log } = this.#parts;
    for (const { reason, message, warning } of reasons) {
      log[warning ? "warn" : "info"](message, { ...fields, reason });
      for (const object of objects) if (object !== undefined) events.record(object, { type: warning ? "Warning" : "Normal", reason, message });
    }
  }

  /** Without a remediation there is nothing to look at, however often the Machine changes. */
  #known(keys: readonly string[]): string[] {
    return keys.filter((key) => this.#parts.stores.of(this.#parts.kind).get(key) !== undefined);
  }

  #ofCluster(cluster: LiveObject): string[] {
    const { stores, kind } = this.#parts;
    return stores
      .of(kind)
      .list()
      .filter((remediation) => remediation.metadata.namespace === cluster.metadata.namespace && clusterNameOf(remediation) === cluster.metadata.name)
      .map(keyOf);
  }

  #ofMachineOwner(object: LiveObject): string[] {
    const machine = ownerMachine(object);
    return machine === undefined ? [] : [`${object.metadata.namespace ?? ""}/${machine.name}`];
  }

  #ofHost(host: LiveObject): string[] {
    const holder = this.#held.note(host);
    const { namespace = "", annotations = {} } = host.metadata;
    const owner = annotations[allocationAnnotations.ownerName];
    const infrastructure =
      owner === undefined
        ? undefined
        : this.#parts.stores.of(baremetalMachines).get(`${annotations[allocationAnnotations.ownerNamespace] ?? namespace}/${owner}`);
    const users = infrastructure === undefined ? [] : this.#known(this.#ofMachineOwner(infrastructure));
    return holder === undefined || users.includes(holder) ? users : [holder, ...users];
  }
}
