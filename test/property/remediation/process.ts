/** One process of the controller in the model: its caches and memory, a pass of it, and everything that can go wrong in one. */
import type { Action } from "../../../provider/controller/remediation/decision.ts";
import type { Decision } from "../../../provider/controller/remediation/decision.ts";
import {
  forIntent,
  newMemory,
  type RepairMemory,
  withAsk,
  withReadError,
  withReading,
  withoutSighting,
  withSighting,
} from "../../../provider/controller/remediation/memory.ts";
import { nodeNameOf } from "../../../provider/controller/remediation/draft.ts";
import { needsOf } from "../../../provider/controller/remediation/needs.ts";
import { type PolicyReading, readPolicy } from "../../../provider/controller/remediation/policy.ts";
import { undoCause } from "../../../provider/controller/remediation/gates.ts";
import type { DrainView, NodeView, Snapshot, WorkloadView } from "../../../provider/controller/remediation/snapshot.ts";
import { decideOrphan, type OrphanDecision, orphanNeeds, type OrphanSnapshot } from "../../../provider/controller/remediation/sweep.ts";
import { POWER_HOLD_ANNOTATION } from "../../../provider/hosts/names.ts";
import { type HoldReading, type PowerHold, readHold, writeHold } from "../../../provider/hosts/power-hold.ts";
import { type HostObject, type MachineObject, type NodeObject, PASSWORD, policySpec, type RemediationObject, type World } from "./world.ts";

export type Decide = (snapshot: Snapshot, policy: PolicyReading, now: number) => Decision;

/** Where a pass is cut: before or after its n-th action, or with the answer of the n-th lost. */
export interface Fault {
  kind: "crashBefore" | "crashAfter" | "lostAnswer";
  at: number;
}

class Interrupted extends Error {
  readonly crash: boolean;
  constructor(crash: boolean) {
    super("the pass ends here");
    this.crash = crash;
  }
}

interface Cache {
  remediation: RemediationObject | undefined;
  machine: MachineObject | undefined;
  host: HostObject | undefined;
}

const KIND = "HostRemediation";
const NAMESPACE = "cpaas-system";
const policy = readPolicy(policySpec);

/** What neither starts nor advances anything. */
const undoing = new Set<Action["type"]>(["dropHold", "askOn", "untaintNode", "restoreNode", "removeFinalizer", "writeStatus", "skipRemediation"]);

export class ControllerProcess {
  readonly #world: World;
  readonly #decide: Decide;
  #memory: RepairMemory = newMemory();
  #cache: Cache;
  #wrote: string | undefined;
  lastDecision: Decision | undefined;
  lastSnapshot: Snapshot | undefined;

  constructor(world: World, decide: Decide) {
    this.#world = world;
    this.#decide = decide;
    this.#cache = this.#list();
  }

  #list(): Cache {
    const { remediation, machine, host } = this.#world;
    return { remediation, machine, host };
  }

  restart(): void {
    this.#memory = newMemory();
    this.#cache = this.#list();
  }

  sync(): void {
    this.#cache = this.#list();
  }

  /** One reconcile. Returns when it wants to be called again. */
  pass(fault?: Fault): number | undefined {
    this.#wrote = undefined;
    try {
      return this.#run(fault);
    } catch (error) {
      if (!(error instanceof Interrupted)) throw error;
      if (error.crash) this.restart();
      return this.#world.now + 1;
    }
  }

  #run(fault: Fault | undefined): number | undefined {
    const world = this.#world;
    const { remediation } = this.#cache;
    let next: number | undefined;
    let mayAdopt = false;
    if (remediation !== undefined) {
      const snapshot = this.#observe(remediation);
      const decision = this.#decide(snapshot, policy, world.now);
      this.lastDecision = decision;
      this.lastSnapshot = snapshot;
      mayAdopt = undoCause(snapshot) === undefined;
      this.#leaks(decision);
      if (decision.nextCheckAt === undefined) world.violate(8, "a remediation is left without a next look at it");
      this.#perform(decision.actions, snapshot, fault);
      next = decision.nextCheckAt;
    }
    const hold = heldBy(this.#cache.host);
    if (
      hold?.by === "remediation" &&
      hold.remediation?.uid !== this.#cache.remediation?.uid &&
      !(mayAdopt && hold.machine.uid === this.#cache.remediation?.machineUid)
    ) {
      const snapshot = this.#observeOrphan(hold);
      const decision: OrphanDecision = decideOrphan(snapshot, world.now);
      this.#perform(decision.actions, undefined, fault);
      next = Math.min(next ?? Infinity, decision.nextCheckAt ?? Infinity);
    }
    return next;
  }

  #leaks(decision: Decision): void {
    if (JSON.stringify([decision.actions, decision.status, decision.reasons]).includes(PASSWORD))
      this.#world.violate(9, "a credential stands in what is written");
  }

  #observe(remediation: RemediationObject): Snapshot {
    const world = this.#world;
    const { machine, host } = this.#cache;
    const hold: HoldReading = host === undefined ? { state: "none" } : readHold(host.hold === undefined ? undefined : { [POWER_HOLD_ANNOTATION]: host.hold });
    const intent = hold.state === "held" ? hold.hold.askedAt : "";
    this.#memory = forIntent(this.#memory, intent);
    const own = hold.state === "held" && hold.hold.remediation?.uid === remediation.uid;
    const linked = host !== undefined && host.machineUid === remediation.machineUid;
    const base: Snapshot = {
      fresh: world.fresh,
      own: { stop: world.stop, nodeName: "another-node" },
      remediation: {
        kind: KIND,
        namespace: NAMESPACE,
        name: "machine-a",
        uid: remediation.uid,
        generation: 1,
        deleting: remediation.deleting,
        paused: remediation.paused,
        finalizer: remediation.finalizer,
        machineUid: remediation.machineUid,
        status: remediation.status,
      },
      machine: machine === undefined ? undefined : { namespace: NAMESPACE, name: "machine-a", providerID: undefined, ...machine },
      cluster: { namespace: NAMESPACE, name: "edge", paused: world.clusterPaused },
      chain: linked ? { ok: true, hostUid: host.uid } : { ok: false, reason: "HostMismatch", message: "not the host of this Machine" },
      host:
        host === undefined || !(linked || own)
          ? undefined
          : {
              driver: "redfish",
              namespace: NAMESPACE,
              name: "rack1-07",
              uid: host.uid,
              deleting: host.deleting,
              paused: host.paused,
              hold,
              holderExists: hold.state !== "held" || hold.hold.remediation?.uid === this.#cache.remediation?.uid || hold.hold.by === "inventory",
              unhealthy: host.unhealthy,
              confirmedOff: host.confirmedOff,
              bmc: host.bmc,
            },
      power: this.#memory.power,
      workload: { state: "unread" },
    };
    if (needsOf(base).power) this.#read();
    const withPower = { ...base, power: this.#memory.power };
    return { ...withPower, workload: this.#workload(withPower, hold) };
  }

  #read(): void {
    const reading = this.#world.read();
    this.#memory =
      reading === null
        ? withReadError(this.#memory, { kind: "unreachable", message: "https://10.0.0.1 does not answer", at: this.#world.now })
        : withReading(this.#memory, reading);
  }

  #workload(snapshot: Snapshot, hold: HoldReading): WorkloadView {
    const world = this.#world;
    const needs = needsOf(snapshot);
    if (needs.workload === "none" || nodeNameOf(snapshot) === undefined) return { state: "unread" };
    if (world.workload !== "reachable") {
      this.#memory = withoutSighting(this.#memory);
      return { state: "error", reason: world.workload, message: "the workload API does not answer" };
    }
    let drain: DrainView | undefined;
    if (needs.workload === "drain") {
      const countPods = hold.state !== "held" || hold.hold.fence?.mode !== "Delete";
      const sighted = withSighting(
        this.#memory,
        world.now,
        Array.from({ length: world.terminatingPods }, (_, index) => `default/pod-${index}`),
        Array.from({ length: world.attachments }, (_, index) => `volume-${index}`),
        countPods,
      );
      this.#memory = sighted.memory;
      drain = sighted.drain;
    }
    return {
      state: "read",
      version: needs.workload === "node" ? undefined : world.version,
      node: world.node === null ? null : nodeView(world.node),
      writeForbidden: false,
      drain,
    };
  }

  #observeOrphan(hold: PowerHold): OrphanSnapshot {
    const world = this.#world;
    const { machine } = this.#cache;
    this.#memory = forIntent(this.#memory, hold.askedAt);
    const exists = machine?.uid === hold.machine.uid;
    const base: OrphanSnapshot = {
      fresh: world.fresh,
      hostName: "rack1-07",
      hold,
      machine: { exists, deleting: exists && machine.deleting },
      clusterExists: true,
      power: this.#memory.power,
      workload: { state: "unread" },
    };
    const needs = orphanNeeds(base);
    if (needs.power) this.#read();
    const workload: WorkloadView =
      needs.workload === "none"
        ? { state: "unread" }
        : world.workload === "reachable"
          ? { state: "read", version: undefined, node: world.node === null ? null : nodeView(world.node), writeForbidden: false, drain: undefined }
          : { state: "error", reason: world.workload, message: "the workload API does not answer" };
    return { ...base, power: this.#memory.power, workload };
  }

  #perform(actions: readonly Action[], snapshot: Snapshot | undefined, fault: Fault | undefined): void {
    for (const [index, action] of actions.entries()) {
      if (fault?.kind === "crashBefore" && fault.at === index) throw new Interrupted(true);
      this.#guard(action, snapshot);
      const before = { cache: { ...this.#cache }, memory: this.#memory };
      this.#apply(action);
      this.#world.check();
      if (fault?.at !== index) continue;
      if (fault.kind === "crashAfter") throw new Interrupted(true);
      if (fault.kind === "lostAnswer") {
        // The write went through; the process only knows that it got no answer. A power call's lost answer is its own outcome.
        if (action.type !== "askOff" && action.type !== "askOn") {
          this.#cache = before.cache;
          this.#memory = before.memory;
          throw new Interrupted(false);
        }
      }
    }
  }

  /** Rules 4 and 10: what may not even be tried, by what this process could know. */
  #guard(action: Action, snapshot: Snapshot | undefined): void {
    const world = this.#world;
    if (!world.fresh) world.violate(10, `${action.type} on a stale view`);
    if (snapshot === undefined) return;
    const { machine, host, remediation } = this.#cache;
    const pause = world.clusterPaused || machine?.paused === true || (snapshot.host !== undefined && host?.paused === true) || remediation?.paused === true;
    if (pause && action.type !== "writeStatus") world.violate(4, `${action.type} under pause`);
    if (undoing.has(action.type) || (action.type === "writeHold" && action.hold.purpose === "undo") || action.type === "addFinalizer") return;
    const foreign =
      machine === undefined ||
      remediation === undefined ||
      machine.uid !== remediation.machineUid ||
      machine.deleting ||
      remediation.deleting ||
      host === undefined ||
      host.deleting ||
      host.machineUid !== machine.uid;
    if (foreign) world.violate(4, `${action.type} on what is not, or not any more, this remediation's`);
    if (world.stop === "on") world.violate(4, `${action.type} although the stop switch is on`);
    const hold = heldBy(host);
    if (hold !== undefined && hold.remediation?.uid !== remediation?.uid && (hold.by !== "remediation" || hold.machine.uid !== machine?.uid))
      world.violate(3, `${action.type} on a host that another holds`);
  }

  #apply(action: Action): void {
    const world = this.#world;
    switch (action.type) {
      case "addFinalizer":
        this.#writeRemediation({ finalizer: true });
        return;
      case "removeFinalizer":
        this.#writeRemediation({ finalizer: false });
        if (world.remediation?.deleting === true) {
          world.remediation = undefined;
          this.#cache.remediation = undefined;
        }
        return;
      case "writeStatus":
        this.#writeRemediation({ status: structuredClone(action.status) });
        return;
      case "skipRemediation":
        this.#writeMachine({ skipsRemediation: true });
        return;
      case "offerMachine":
        if (world.host?.unhealthy !== true) world.violate(7, "a Machine is offered before its host is marked unhealthy");
        this.#writeMachine({ offered: true });
        return;
      case "writeHold": {
        const text = writeHold(action.hold);
        this.#writeHost({ hold: text, ...(action.usesConfirmation === true ? { confirmedOff: undefined } : {}) });
        this.#wrote = text;
        if (this.#memory.intent !== action.hold.askedAt) this.#memory = newMemory(action.hold.askedAt, true);
        return;
      }
      case "dropHold":
        this.#writeHost({ hold: undefined });
        return;
      case "markUnhealthy":
        this.#writeHost({ unhealthy: true });
        return;
      case "askOff":
      case "askOn":
        this.#ask(action.type === "askOn", writeHold(action.hold), action.hold.askedAt);
        return;
      case "taintNode":
      case "deleteNode":
      case "untaintNode":
      case "restoreNode":
        this.#applyToNode(action);
        return;
    }
  }

  #writeRemediation(change: Partial<RemediationObject>): void {
    const world = this.#world;
    if (world.remediation === undefined || this.#cache.remediation?.version !== world.remediation.version) throw new Interrupted(false);
    this.#cache.remediation = world.remediation = { ...world.remediation, ...change, version: world.next() };
  }

  #writeMachine(change: Partial<MachineObject>): void {
    const world = this.#world;
    if (world.machine === undefined || this.#cache.machine?.version !== world.machine.version) throw new Interrupted(false);
    this.#cache.machine = world.machine = { ...world.machine, ...change, version: world.next() };
  }

  #writeHost(change: Partial<HostObject>): void {
    const world = this.#world;
    if (world.host === undefined || this.#cache.host?.version !== world.host.version) throw new Interrupted(false);
    this.#cache.host = world.host = { ...world.host, ...change, version: world.next() };
  }

  #ask(on: boolean, hold: string, intent: string): void {
    const world = this.#world;
    // As the real actor does: what this pass did not write itself is read anew before the call.
    if (this.#wrote !== hold && world.host?.hold !== hold) throw new Interrupted(false);
    const held = world.trueHold();
    if (held === undefined) world.violate(3, "a power action without an intent on the host");
    else if (!on && held.onAskedAt !== undefined) world.violate(3, "power-off asked after power-on of the same attempt");
    const outcome = world.command(on, held === undefined ? undefined : { uid: held.remediation?.uid ?? "", attempt: held.attempt, purpose: held.purpose });
    const error = { kind: "unreachable", message: "https://10.0.0.1 does not answer" } as const;
    this.#memory = withAsk(forIntent(this.#memory, intent), on ? "on" : "off", world.now, outcome ?? "unknown", outcome === "accepted" ? undefined : error);
  }

  #applyToNode(action: Extract<Action, { type: "taintNode" | "deleteNode" | "untaintNode" | "restoreNode" }>): void {
    const world = this.#world;
    const { node } = world;
    if (world.workload !== "reachable" || node === null || node.uid !== action.node.uid || String(node.version) !== action.node.resourceVersion)
      throw new Interrupted(false);
    if (action.type === "taintNode" || action.type === "deleteNode") {
      const hold = world.trueHold();
      if (hold?.remediation?.uid !== world.remediation?.uid) world.violate(1, `${action.type} without our hold in place`);
      if (world.power && hold?.confirmedAt === undefined) world.violate(1, `${action.type} while the host is on`);
    }
    switch (action.type) {
      case "taintNode":
        world.node = { ...node, taint: "ours", version: world.next() };
        return;
      case "deleteNode":
        world.deletedNodeLabels = { ...world.deletedNodeLabels, ...node.labels };
        world.node = null;
        return;
      case "untaintNode":
        if (node.taint === "foreign") world.violate(6, "somebody else's taint is removed");
        if (node.bootedAt <= world.lastOffByUsAt) world.violate(6, "the taint is removed although the Node reports no boot after the power-off");
        world.node = { ...node, taint: "none", version: world.next() };
        return;
      case "restoreNode":
        world.node = { ...node, labels: { ...action.backup.labels, ...node.labels }, version: world.next() };
    }
  }
}

function heldBy(host: HostObject | undefined): PowerHold | undefined {
  const reading = readHold(host?.hold === undefined ? undefined : { [POWER_HOLD_ANNOTATION]: host.hold });
  return reading.state === "held" ? reading.hold : undefined;
}

function nodeView(node: NodeObject): NodeView {
  return {
    name: "node-a",
    uid: node.uid,
    resourceVersion: String(node.version),
    deleting: false,
    providerID: undefined,
    bootID: node.bootID,
    ready: node.ready,
    heartbeatAt: node.heartbeatAt,
    outOfService: node.taint,
    labels: node.labels,
    annotations: {},
  };
}
