/** Brings BaremetalMachines to life and gives their hosts up: observes, decides, and does the one thing decided, until nothing is left to do. */
import { z } from "zod";

import { capiLabels, clusters, machines } from "../../capi/kinds.ts";
import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { keyOf, type LiveObject } from "../../cluster/objects.ts";
import { baremetalMachines, machineInventories, machineInventoryPools } from "../../hosts/kinds.ts";
import { allocationAnnotations } from "../../hosts/names.ts";
import type { BmcAccess } from "../../redfish/bmc.ts";
import type { EventRecorder, Log, ReconcileResult, Reconciler, Stores, WatchedKind } from "../runtime/reconciler.ts";
import type { Settings } from "../runtime/settings.ts";
import { MachineActor } from "./act.ts";
import { chooseInventory } from "./allocation.ts";
import { decide, type Observed, type Step } from "./decide.ts";
import { type BaremetalMachine, conditionOf, parseMachine, type Report, statusPatch } from "./machine.ts";
import { needsBootstrap, needsPlan, ownerOf, pausedReason, poolOf, readBootstrap, readBound, readPlanOf } from "./observe.ts";
import { Promises } from "./promises.ts";

/** How long a host may take to apply its clean plan before it is powered off; settings key, seconds. */
export const CLEAN_TIMEOUT_KEY = "cleanTimeoutSeconds";
export const DEFAULT_CLEAN_TIMEOUT_SECONDS = 600;
/** Between the two Off readings that prove a host off. */
const OFF_CONFIRMATION_MS = 2_000;

const NOT_FRESH_MS = 5_000;
const MOST_STEPS = 20;
/** Steps that write the machine itself. */
const machineSteps: ReadonlySet<Step["type"]> = new Set(["addFinalizer", "setProviderId", "removeFinalizer"]);

export interface InventoryParts {
  cluster: Cluster;
  stores: Stores;
  bmcs: BmcAccess;
  clock: Clock;
  log: Log;
  events: EventRecorder;
  settings: Settings;
  random?: () => number;
}

const infrastructureRef = z.object({ spec: z.object({ infrastructureRef: z.object({ kind: z.string(), name: z.string() }) }) });

export class BaremetalMachineReconciler implements Reconciler {
  readonly name = "baremetal-machine";
  readonly watches: readonly WatchedKind[];
  readonly #parts: InventoryParts;
  readonly #actor: MachineActor;
  readonly #promises: Promises;
  readonly #views = new WeakMap<LiveObject, BaremetalMachine>();

  constructor(parts: InventoryParts) {
    this.#parts = parts;
    this.#actor = new MachineActor(parts);
    this.#promises = new Promises(parts.clock);
    this.watches = [
      { kind: baremetalMachines, keys: (object) => [keyOf(object)] },
      { kind: machineInventories, keys: (object) => this.#concerned(object) },
      {
        kind: machineInventoryPools,
        keys: (object) => this.#machinesWhere(object.metadata.namespace, (machine) => machine.poolName === object.metadata.name && machine.phase !== "Running"),
      },
      {
        kind: machines,
        keys: (object) => {
          const reference = infrastructureRef.safeParse(object).data?.spec.infrastructureRef;
          return reference?.kind === baremetalMachines.kind ? [`${object.metadata.namespace ?? ""}/${reference.name}`] : [];
        },
      },
      { kind: clusters, keys: (object) => this.#labelled(object.metadata.namespace, object.metadata.name) },
    ];
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { stores, clock, cluster } = this.#parts;
    let live = stores.of(baremetalMachines).get(key);
    if (live === undefined) return {};
    if (![baremetalMachines, machines, clusters].every((kind) => stores.of(kind).fresh())) return { againAfterMs: NOT_FRESH_MS };
    // A machine whose status names its inventory can be given up without the views.
    const needsViews = live.metadata.deletionTimestamp === undefined || parseMachine(live).inventory === undefined;
    if (
      needsViews &&
      ![machineInventories, ...(live.metadata.deletionTimestamp === undefined ? [machineInventoryPools] : [])].every((kind) => stores.of(kind).fresh())
    ) {
      return { againAfterMs: NOT_FRESH_MS };
    }
    for (let count = 0; count < MOST_STEPS; count++) {
      signal.throwIfAborted();
      const machine = parseMachine(live);
      const observed = await this.#observe(machine, signal);
      const { report, step } = decide(observed);
      if (report !== undefined && "inventory" in report) this.#promises.set(machine, report.inventory?.name);
      const patch = report === undefined ? undefined : statusPatch(machine, report, clock.now());
      if (report !== undefined && patch !== undefined) {
        live = await cluster.patch(baremetalMachines, { namespace: machine.namespace, name: machine.name }, "merge", patch, { subresource: "status", signal });
        this.#tell(machine, live, report, observed);
      }
      if (step.type === "wait" && step.afterMs !== 0) return step.afterMs === undefined ? {} : { againAfterMs: step.afterMs };
      try {
        live = (await this.#actor.perform(step, observed, live, signal)) ?? live;
      } catch (error) {
        // Somebody wrote the inventory or its Secret meanwhile; they are read anew. The machine itself comes anew from its watch.
        if (!isClusterError(error, "conflict") || machineSteps.has(step.type)) throw error;
      }
      if (step.type === "removeFinalizer") {
        this.#promises.set(machine, undefined);
        return {};
      }
    }
    return { againAfterMs: 1_000 };
  }

  async #observe(machine: BaremetalMachine, signal: AbortSignal): Promise<Observed> {
    const { stores, cluster, clock, settings } = this.#parts;
    const owner = ownerOf(stores, machine);
    const pool = poolOf(stores, machine.namespace, machine.poolName);
    const poolExists = (name: string): boolean => stores.of(machineInventoryPools).get(`${machine.namespace}/${name}`) !== undefined;
    const bound = await readBound(cluster, machine, signal);
    const plan = needsPlan(machine, bound) ? await readPlanOf(cluster, bound.inventory.planSecret, signal) : undefined;
    const bootstrap =
      bound?.found === true && pool !== undefined && owner?.dataSecretName !== undefined && needsBootstrap(machine, plan)
        ? await readBootstrap(cluster, machine, owner.dataSecretName, pool, bound.inventory.name, signal)
        : undefined;
    const allocation =
      machine.deleting || machine.inventory !== undefined || pool === undefined
        ? undefined
        : chooseInventory(pool, {
            inventory: (name) => stores.of(machineInventories).get(`${machine.namespace}/${name}`),
            poolExists,
            isPromised: this.#promises.toOthers(machine, this.#machines()),
          });
    return {
      now: clock.now(),
      machine,
      owner,
      paused: pausedReason(stores, machine, owner),
      stopped: settings.stopped(),
      pool,
      poolExists,
      allocation,
      claimed: machine.inventory === undefined ? this.#claimedBy(machine) : undefined,
      bound,
      plan,
      bootstrap,
      power: this.#actor.powerOf(machine, bound),
      cleanTimeoutMs: settings.number(CLEAN_TIMEOUT_KEY, DEFAULT_CLEAN_TIMEOUT_SECONDS, 1) * 1000,
      offConfirmationMs: OFF_CONFIRMATION_MS,
    };
  }

  #claimedBy(machine: BaremetalMachine): { name: string; uid: string } | undefined {
    const object = this.#parts.stores
      .of(machineInventories)
      .list()
      .find(({ metadata }) => metadata.namespace === machine.namespace && metadata.annotations?.[allocationAnnotations.ownerUid] === machine.uid);
    return object === undefined ? undefined : { name: object.metadata.name, uid: object.metadata.uid };
  }

  /** An Event for each change of phase or reason. */
  #tell(before: BaremetalMachine, live: LiveObject, report: Report, observed: Observed): void {
    const now = report.conditions.find(({ type }) => type === "Ready") ?? report.conditions[0];
    if (now === undefined) return;
    const phase = report.phase ?? before.phase ?? "Pending";
    if (phase === before.phase && conditionOf(before, now.type)?.reason === now.reason) return;
    const event = {
      type: phase === "Failed" || now.reason === "NoInventoryAvailable" ? ("Warning" as const) : ("Normal" as const),
      reason: now.reason,
      message: now.message || phase,
    };
    this.#parts.log.info("machine", { machine: keyOf(live), phase, reason: event.reason, detail: now.message });
    this.#parts.events.record(live, event);
    if (observed.bound?.found === true) this.#parts.events.record(observed.bound.object, event);
  }

  /** The owner of the inventory, and every machine that waits for one. */
  #concerned(inventory: LiveObject): string[] {
    const annotations = inventory.metadata.annotations ?? {};
    const name = annotations[allocationAnnotations.ownerName];
    const namespace = annotations[allocationAnnotations.ownerNamespace] ?? inventory.metadata.namespace ?? "";
    const waiting = this.#machinesWhere(
      inventory.metadata.namespace,
      (machine) => machine.inventory?.name === inventory.metadata.name || machine.phase === "Pending",
    );
    return name === undefined ? waiting : [`${namespace}/${name}`, ...waiting];
  }

  #machinesWhere(namespace: string | undefined, wanted: (machine: BaremetalMachine) => boolean): string[] {
    return this.#machines()
      .filter((machine) => machine.namespace === namespace && wanted(machine))
      .map((machine) => `${machine.namespace}/${machine.name}`);
  }

  #machines(): BaremetalMachine[] {
    return this.#parts.stores
      .of(baremetalMachines)
      .list()
      .map((object) => this.#parsed(object))
      .filter((machine) => machine !== undefined);
  }

  /** Undefined for an object that its CRD should not have let in: its own reconcile says so. */
  #parsed(object: LiveObject): BaremetalMachine | undefined {
    const known = this.#views.get(object);
    if (known !== undefined) return known;
    try {
      const machine = parseMachine(object);
      this.#views.set(object, machine);
      return machine;
    } catch (error) {
      if (error instanceof z.ZodError) return undefined;
      throw error;
    }
  }

  #labelled(namespace: string | undefined, cluster: string): string[] {
    return this.#parts.stores
      .of(baremetalMachines)
      .list()
      .filter(({ metadata }) => metadata.namespace === namespace && metadata.labels?.[capiLabels.clusterName] === cluster)
      .map(keyOf);
  }
}
