/** Does what was decided. Every write names the version that it was decided on; the first that fails ends the pass. */
import { capiAnnotations, machines } from "../../capi/kinds.ts";
import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { ClusterError, isClusterError } from "../../cluster/errors.ts";
import { nodes } from "../../cluster/kinds.ts";
import { keyOf, type LiveObject, type ObjectKey, type ResourceKind } from "../../cluster/objects.ts";
import { machineInventories } from "../../hosts/kinds.ts";
import { CONFIRMED_OFF_ANNOTATION, HISTORY_ANNOTATION, POWER_HOLD_ANNOTATION, UNHEALTHY_ANNOTATION } from "../../hosts/names.ts";
import { writeHold } from "../../hosts/power-hold.ts";
import type { Action, HoldIntent, HostRecord, NodeTarget } from "./decision.ts";
import type { HeldHosts } from "./held-hosts.ts";
import { withRecord } from "./host-history.ts";
import type { LatestObjects } from "./latest.ts";
import type { RepairMemories } from "./memories.ts";
import { offerPatch } from "./offer.ts";
import { isOutOfService, OUT_OF_SERVICE_TAINT, OUT_OF_SERVICE_VALUE, REMEDIATION_FINALIZER, taintsOf } from "./views.ts";
import type { WorkloadClusters } from "./workload.ts";

const NODE_WRITE_TIMEOUT_MS = 10_000;

export interface ActorParts {
  kind: ResourceKind;
  cluster: Cluster;
  latest: LatestObjects;
  held: HeldHosts;
  memories: RepairMemories;
  workloads: WorkloadClusters;
  clock: Clock;
}

/** What the actions of one pass are done to. */
export interface Targets {
  remediation?: LiveObject;
  machine?: LiveObject | undefined;
  host?: LiveObject | undefined;
  node?: LiveObject | undefined;
  cluster: ObjectKey;
}

export class Actor {
  readonly #parts: ActorParts;

  constructor(parts: ActorParts) {
    this.#parts = parts;
  }

  async perform(actions: readonly Action[], targets: Targets, signal: AbortSignal): Promise<void> {
    const pass = new Pass(this.#parts, { ...targets }, signal);
    for (const action of actions) {
      // The lease may be gone since the last one.
      signal.throwIfAborted();
      await pass.do(action);
    }
  }
}

class Pass {
  readonly #parts: ActorParts;
  readonly #targets: Targets;
  readonly #signal: AbortSignal;
  /** The hold that this pass itself wrote: then its power call needs no other look at the host. */
  #wrote: string | undefined;

  constructor(parts: ActorParts, targets: Targets, signal: AbortSignal) {
    this.#parts = parts;
    this.#targets = targets;
    this.#signal = signal;
  }

  async do(action: Action): Promise<void> {
    switch (action.type) {
      case "addFinalizer":
        return this.#finalizers((present) => [...present, REMEDIATION_FINALIZER]);
      case "removeFinalizer":
        return this.#finalizers((present) => present.filter((name) => name !== REMEDIATION_FINALIZER));
      case "skipRemediation":
        return this.#skipRemediation();
      case "writeHold":
        return this.#writeHold(action.hold, action.usesConfirmation === true);
      case "dropHold":
        return this.#annotateHost({ [POWER_HOLD_ANNOTATION]: null, ...this.#history(action.record) });
      case "markUnhealthy":
        return this.#markUnhealthy(action.reason, action.record);
      case "askOff":
        return this.#ask("off", action.hold);
      case "askOn":
        return this.#ask("on", action.hold);
      case "taintNode":
        return this.#taints(action.node, (taints) => [
          ...taints,
          { key: OUT_OF_SERVICE_TAINT, value: OUT_OF_SERVICE_VALUE, effect: "NoExecute", timeAdded: this.#stamp() },
        ]);
      case "untaintNode":
        return this.#taints(action.node, (taints) => taints.filter((taint) => !(isOutOfService(taint) && taint.value === OUT_OF_SERVICE_VALUE)));
      case "deleteNode":
        return this.#deleteNode(action.node);
      case "restoreNode":
        return this.#patchNode(action.node, { metadata: { labels: action.backup.labels, annotations: action.backup.annotations } });
      case "offerMachine":
        return this.#offer(action.message);
      case "writeStatus":
        return this.#writeStatus(action.status);
    }
  }

  #stamp(): string {
    return new Date(this.#parts.clock.now()).toISOString().replace(/\.\d+Z$/, "Z");
  }

  #need(which: "remediation" | "machine" | "host" | "node"): LiveObject {
    const target = this.#targets[which];
    if (target === undefined) throw new TypeError(`an action on a ${which} that was not observed`);
    return target;
  }

  async #patch(kind: ResourceKind, object: LiveObject, body: { metadata?: object; [field: string]: unknown }, subresource?: string): Promise<LiveObject> {
    const { uid, resourceVersion } = object.metadata;
    const written = await this.#parts.cluster.patch(
      kind,
      keyFor(object),
      "merge",
      { ...body, metadata: { ...body.metadata, uid, resourceVersion } },
      { signal: this.#signal, ...(subresource === undefined ? {} : { subresource }) },
    );
    this.#parts.latest.wrote(kind, written);
    return written;
  }

  async #finalizers(change: (present: string[]) => string[]): Promise<void> {
    const object = this.#need("remediation");
    try {
      this.#targets.remediation = await this.#patch(this.#parts.kind, object, { metadata: { finalizers: change(object.metadata.finalizers ?? []) } });
    } catch (error) {
      // One that is gone needs no finalizer any more.
      if (!(isClusterError(error, "notFound") && object.metadata.deletionTimestamp !== undefined)) throw error;
    }
  }

  async #writeStatus(status: object): Promise<void> {
    const { kind, cluster, latest } = this.#parts;
    const object = this.#need("remediation");
    const written = await cluster.replace(kind, { ...object, status }, { signal: this.#signal, subresource: "status" });
    latest.wrote(kind, written);
    this.#targets.remediation = written;
  }

  async #skipRemediation(): Promise<void> {
    this.#targets.machine = await this.#patch(machines, this.#need("machine"), { metadata: { annotations: { [capiAnnotations.skipRemediation]: "" } } });
  }

  async #annotateHost(annotations: Record<string, string | null>): Promise<void> {
    this.#targets.host = await this.#patch(machineInventories, this.#need("host"), { metadata: { annotations } });
  }

  async #writeHold(hold: HoldIntent, usesConfirmation: boolean): Promise<void> {
    const text = writeHold(hold);
    await this.#annotateHost({ [POWER_HOLD_ANNOTATION]: text, ...(usesConfirmation ? { [CONFIRMED_OFF_ANNOTATION]: null } : {}) });
    const host = this.#need("host");
    this.#wrote = text;
    this.#parts.held.note(host);
    this.#parts.memories.begin(host, hold.askedAt);
  }

  async #markUnhealthy(reason: string, record: HostRecord | undefined): Promise<void> {
    const mark = JSON.stringify({ reason, at: this.#stamp(), by: "remediation" });
    await this.#annotateHost({ [UNHEALTHY_ANNOTATION]: mark, ...this.#history(record) });
  }

  #history(record: HostRecord | undefined): Record<string, string> {
    return record === undefined ? {} : { [HISTORY_ANNOTATION]: withRecord(this.#need("host").metadata.annotations?.[HISTORY_ANNOTATION], record) };
  }

  async #ask(which: "off" | "on", hold: HoldIntent): Promise<void> {
    const host = this.#need("host");
    const text = writeHold(hold);
    if (this.#wrote !== text) {
      // The watch may be behind: what is asked must be what the host's hold asks for at this moment.
      const now = await this.#parts.cluster.get(machineInventories, keyFor(host), { signal: this.#signal });
      if (now.metadata.uid !== host.metadata.uid || now.metadata.annotations?.[POWER_HOLD_ANNOTATION] !== text) {
        throw new ClusterError("conflict", `power ${which} of ${host.metadata.name}`, "the hold on the host is not the one that was decided on");
      }
      this.#signal.throwIfAborted();
    }
    await this.#parts.memories.ask(host, hold.askedAt, which, this.#signal);
  }

  async #taints(node: NodeTarget, change: (taints: ReturnType<typeof taintsOf>) => unknown[]): Promise<void> {
    await this.#patchNode(node, { spec: { taints: change(taintsOf(this.#need("node"))) } });
  }

  async #patchNode(node: NodeTarget, body: { metadata?: object; spec?: object }): Promise<void> {
    const { name, uid, resourceVersion } = node;
    await this.#onNode(async (cluster) => {
      const metadata = { ...body.metadata, uid, resourceVersion };
      this.#targets.node = await cluster.patch(nodes, { name }, "merge", { ...body, metadata }, { signal: this.#signal, timeoutMs: NODE_WRITE_TIMEOUT_MS });
    });
  }

  async #deleteNode(node: NodeTarget): Promise<void> {
    const { name, uid, resourceVersion } = node;
    await this.#onNode(async (cluster) => cluster.delete(nodes, { name }, { uid, resourceVersion, signal: this.#signal, timeoutMs: NODE_WRITE_TIMEOUT_MS }));
  }

  /** A Node that may not be written is no failure of the pass, but something that the next decision has to know. */
  async #onNode(write: (cluster: Cluster) => Promise<void>): Promise<void> {
    const { workloads, memories } = this.#parts;
    try {
      await write(await workloads.open(this.#targets.cluster, this.#signal));
    } catch (error) {
      const host = this.#targets.host;
      if (isClusterError(error, "forbidden") && host !== undefined) memories.nodeWriteForbidden(host);
      throw error;
    }
  }

  async #offer(message: string): Promise<void> {
    const seen = this.#need("machine");
    const machine = await this.#parts.cluster.get(machines, keyFor(seen), { signal: this.#signal });
    if (machine.metadata.uid !== seen.metadata.uid) throw new ClusterError("conflict", `offer ${keyOf(seen)}`, "the Machine is another one");
    const patch = offerPatch(machine, message, this.#stamp());
    if (patch !== undefined) this.#targets.machine = await this.#patch(machines, machine, { status: patch }, "status");
  }
}

function keyFor(object: LiveObject): ObjectKey {
  const { namespace, name } = object.metadata;
  return namespace === undefined ? { name } : { namespace, name };
}
