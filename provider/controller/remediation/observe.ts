/** Builds snapshots: from the watched objects, and from what has to be read for the state that they show. */
import { clusters, machines } from "../../capi/kinds.ts";
import type { Clock } from "../../clock.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { keyOf, type LiveObject, type ResourceKind } from "../../cluster/objects.ts";
import { parseInventory } from "../../hosts/inventory.ts";
import { baremetalMachines, machineInventories } from "../../hosts/kinds.ts";
import { bmcAnnotations } from "../../hosts/names.ts";
import { type PowerHold, readHold } from "../../hosts/power-hold.ts";
import type { Store, Stores } from "../runtime/reconciler.ts";
import { STOP_KEY, type Settings } from "../runtime/settings.ts";
import { nodeNameOf, ownHold } from "./draft.ts";
import type { HeldHosts } from "./held-hosts.ts";
import type { LatestObjects } from "./latest.ts";
import type { RepairMemories } from "./memories.ts";
import { withoutSighting, withSighting } from "./memory.ts";
import { needsOf, type Needs } from "./needs.ts";
import type { ChainView, DrainView, HostView, Snapshot, WorkloadView } from "./snapshot.ts";
import { orphanNeeds, type OrphanSnapshot } from "./sweep.ts";
import {
  clusterNameOf,
  clusterPaused,
  inventoryRefOf,
  isPaused,
  ownerMachine,
  parseMachine,
  parseNode,
  parseStatus,
  type ParsedMachine,
  REMEDIATION_FINALIZER,
} from "./views.ts";
import type { WorkloadClusters } from "./workload.ts";

/** A snapshot with the objects that its actions will be done to. */
export interface Observation {
  snapshot: Snapshot;
  remediation: LiveObject;
  machine: LiveObject | undefined;
  host: LiveObject | undefined;
  node: LiveObject | undefined;
}

export interface OrphanObservation {
  snapshot: OrphanSnapshot;
  host: LiveObject;
  node: LiveObject | undefined;
}

export interface ObserverParts {
  kind: ResourceKind;
  stores: Stores;
  latest: LatestObjects;
  held: HeldHosts;
  memories: RepairMemories;
  workloads: WorkloadClusters;
  settings: Settings;
  nodeName: string | undefined;
  clock: Clock;
}

interface Chain {
  view: ChainView;
  host: LiveObject | undefined;
  paused: boolean;
}

export class Observer {
  readonly #parts: ObserverParts;

  constructor(parts: ObserverParts) {
    this.#parts = parts;
  }

  watchedStores(): Store[] {
    const { kind, stores } = this.#parts;
    return [kind, machines, clusters, baremetalMachines, machineInventories].map((watched) => stores.of(watched));
  }

  async observe(remediation: LiveObject, signal: AbortSignal): Promise<Observation> {
    const { latest, memories, settings, nodeName, kind } = this.#parts;
    const { metadata } = remediation;
    const namespace = metadata.namespace ?? "";
    const owner = ownerMachine(remediation);
    const machineObject = owner === undefined ? undefined : latest.get(machines, `${namespace}/${owner.name}`);
    const machine = machineObject === undefined ? undefined : parseMachine(machineObject);
    const clusterName = machine?.clusterName ?? clusterNameOf(remediation) ?? "";
    const chain = this.#chain(machine, namespace);
    const held = this.#heldBy(remediation);
    const host = held ?? chain.host;
    const intent = host === undefined ? "" : intentOn(host);
    const base: Snapshot = {
      fresh: this.watchedStores().every((store) => store.fresh()),
      own: { stop: settings.value(STOP_KEY) === "true" ? "on" : settings.stopped() ? "unknown" : "off", nodeName },
      remediation: {
        kind: kind.kind,
        namespace,
        name: metadata.name,
        uid: metadata.uid,
        generation: metadata.generation,
        deleting: metadata.deletionTimestamp !== undefined,
        paused: isPaused(remediation),
        finalizer: metadata.finalizers?.includes(REMEDIATION_FINALIZER) ?? false,
        machineUid: owner?.uid,
        status: parseStatus(remediation),
      },
      machine,
      cluster: { namespace, name: clusterName, paused: clusterPaused(latest.get(clusters, `${namespace}/${clusterName}`)) },
      chain: chain.view,
      host: host === undefined ? undefined : this.#hostView(host, chain.paused),
      power: host === undefined ? { readings: [], complete: false } : memories.of(host, intent).power,
      workload: { state: "unread" },
    };
    const needs = needsOf(base);
    const power = needs.power && host !== undefined ? (await memories.read(host, intent, signal)).power : base.power;
    // The reading may be the one that makes the Node worth a look.
    const read = await this.#workload({ ...base, power }, needsOf({ ...base, power }), host, intent, signal);
    return { snapshot: { ...base, power, workload: read.view }, remediation, machine: machineObject, host, node: read.node };
  }

  async observeOrphan(host: LiveObject, hold: PowerHold, signal: AbortSignal): Promise<OrphanObservation> {
    const { latest, memories, workloads } = this.#parts;
    const machine = latest.get(machines, `${hold.machine.namespace}/${hold.machine.name}`);
    const exists = machine?.metadata.uid === hold.machine.uid;
    const base: OrphanSnapshot = {
      fresh: this.watchedStores().every((store) => store.fresh()),
      hostName: host.metadata.name,
      hold,
      machine: { exists, deleting: exists && machine.metadata.deletionTimestamp !== undefined },
      clusterExists: latest.get(clusters, `${hold.cluster.namespace}/${hold.cluster.name}`) !== undefined,
      power: memories.of(host, hold.askedAt).power,
      workload: { state: "unread" },
    };
    const needs = orphanNeeds(base);
    const power = needs.power ? (await memories.read(host, hold.askedAt, signal)).power : base.power;
    if (needs.workload === "none" || hold.node === undefined) return { snapshot: { ...base, power }, host, node: undefined };
    const read = await workloads.readNode(hold.cluster, hold.node.name, false, signal);
    if (read.state === "error") return { snapshot: { ...base, power, workload: read }, host, node: undefined };
    const view: WorkloadView = {
      state: "read",
      version: read.version,
      node: read.node === null ? null : parseNode(read.node),
      writeForbidden: false,
      drain: undefined,
    };
    return { snapshot: { ...base, power, workload: view }, host, node: read.node ?? undefined };
  }

  /** The host that carries a hold of this remediation, wherever the links lead. */
  #heldBy(remediation: LiveObject): LiveObject | undefined {
    for (const host of this.#parts.held.of(keyOf(remediation))) {
      const reading = readHold(host.metadata.annotations);
      if (reading.state === "held" && reading.hold.by === "remediation" && reading.hold.remediation?.uid === remediation.metadata.uid) return host;
    }
    return undefined;
  }

  #chain(machine: ParsedMachine | undefined, namespace: string): Chain {
    const { latest } = this.#parts;
    const broken = (reason: "HostMismatch" | "NoPowerDriver", message: string, paused = false): Chain => ({
      view: { ok: false, reason, message },
      host: undefined,
      paused,
    });
    if (machine?.infrastructure === undefined) return broken("HostMismatch", "the Machine has no infrastructure machine yet");
    const { kind, name } = machine.infrastructure;
    if (kind !== baremetalMachines.kind) return broken("NoPowerDriver", `the Machine's infrastructure is a ${kind}, for which there is no power driver`);
    const infrastructure = latest.get(baremetalMachines, `${namespace}/${name}`);
    if (infrastructure === undefined) return broken("HostMismatch", `BaremetalMachine ${name} does not exist`);
    const paused = isPaused(infrastructure);
    if (ownerMachine(infrastructure)?.uid !== machine.uid) return broken("HostMismatch", `BaremetalMachine ${name} belongs to another Machine`, paused);
    const reference = inventoryRefOf(infrastructure);
    if (reference === undefined) return broken("HostMismatch", `BaremetalMachine ${name} has no host yet`, paused);
    const host = latest.get(machineInventories, `${namespace}/${reference.name}`);
    if (host === undefined) return broken("HostMismatch", `MachineInventory ${reference.name} does not exist`, paused);
    const owner = parseInventory(host).owner;
    if ((reference.uid !== undefined && reference.uid !== host.metadata.uid) || owner?.uid !== infrastructure.metadata.uid) {
      return broken("HostMismatch", `MachineInventory ${reference.name} is not, or not any more, the host of BaremetalMachine ${name}`, paused);
    }
    return { view: { ok: true, hostUid: host.metadata.uid }, host, paused };
  }

  #hostView(host: LiveObject, infrastructurePaused: boolean): HostView {
    const { kind, stores } = this.#parts;
    const inventory = parseInventory(host);
    const hold = readHold(host.metadata.annotations);
    const holder = hold.state === "held" ? hold.hold.remediation : undefined;
    // What another kind's remediation holds is that kind's to judge.
    const holderExists = holder?.kind !== kind.kind || stores.of(kind).get(`${holder.namespace}/${holder.name}`)?.metadata.uid === holder.uid;
    return {
      driver: "redfish",
      namespace: inventory.namespace,
      name: inventory.name,
      uid: inventory.uid,
      deleting: inventory.deleting,
      paused: infrastructurePaused || isPaused(host),
      hold,
      holderExists,
      unhealthy: inventory.unhealthy !== undefined,
      confirmedOff: inventory.confirmedOff,
      bmc: (inventory.annotations[bmcAnnotations.address] ?? "") !== "",
    };
  }

  async #workload(
    snapshot: Snapshot,
    needs: Needs,
    host: LiveObject | undefined,
    intent: string,
    signal: AbortSignal,
  ): Promise<{ view: WorkloadView; node: LiveObject | undefined }> {
    const { workloads, memories, clock } = this.#parts;
    const name = nodeNameOf(snapshot);
    if (needs.workload === "none" || name === undefined || host === undefined) return { view: { state: "unread" }, node: undefined };
    const key = { namespace: snapshot.cluster.namespace, name: snapshot.cluster.name };
    const read = await workloads.readNode(key, name, needs.workload !== "node", signal);
    const memory = memories.of(host, intent);
    if (read.state === "error") {
      memories.set(host, withoutSighting(memory));
      return { view: read, node: undefined };
    }
    let drain: DrainView | undefined;
    if (needs.workload === "drain") {
      try {
        const remains = await workloads.readRemains(key, name, signal);
        const countPods = ownHold(snapshot)?.fence?.mode !== "Delete";
        const sighted = withSighting(memory, clock.now(), remains.pods, remains.attachments, countPods);
        memories.set(host, sighted.memory);
        drain = sighted.drain;
      } catch (error) {
        signal.throwIfAborted();
        if (!isClusterError(error)) throw error;
        memories.set(host, withoutSighting(memory));
        drain = { state: "failed", message: `what is left on Node ${name} cannot be listed (${error.kind}: ${error.message})` };
      }
    }
    return {
      view: { state: "read", version: read.version, node: read.node === null ? null : parseNode(read.node), writeForbidden: memory.nodeWriteForbidden, drain },
      node: read.node ?? undefined,
    };
  }
}

/** What identifies the intent on a host: everything heard from its BMC belongs to one. */
export function intentOn(host: LiveObject): string {
  const reading = readHold(host.metadata.annotations);
  return reading.state === "held" ? reading.hold.askedAt : "";
}
