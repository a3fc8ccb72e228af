/** The memories of all hosts under repair, and how their BMCs are reached. */
import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { LiveObject } from "../../cluster/objects.ts";
import { BmcTargetError, bmcTargetOf } from "../../hosts/bmc-target.ts";
import { bmcAnnotations } from "../../hosts/names.ts";
import { type Bmc, type BmcAccess, BmcError, isBmcError } from "../../redfish/bmc.ts";
import { forIntent, newMemory, type RepairMemory, withAsk, withReadError, withReading } from "./memory.ts";
import type { AskView } from "./snapshot.ts";

/** A changed Secret is seen after that long at the latest, or at once when its credentials are refused. */
const TARGET_LIFETIME_MS = 60_000;

type AskError = NonNullable<AskView["error"]>;

export class RepairMemories {
  readonly #cluster: Cluster;
  readonly #bmcs: BmcAccess;
  readonly #clock: Clock;
  readonly #memories = new Map<string, RepairMemory>();
  readonly #targets = new Map<string, { bmc: Bmc; annotations: string; at: number }>();

  constructor(parts: { cluster: Cluster; bmcs: BmcAccess; clock: Clock }) {
    this.#cluster = parts.cluster;
    this.#bmcs = parts.bmcs;
    this.#clock = parts.clock;
  }

  /** Another process may have led, and asked for what it liked, since all this was heard. */
  reset(): void {
    this.#memories.clear();
    this.#targets.clear();
  }

  /** The memory that belongs to the intent on the host; an earlier one's is gone. */
  of(host: LiveObject, intent: string): RepairMemory {
    const memory = forIntent(this.#memories.get(host.metadata.uid) ?? newMemory(), intent);
    this.#memories.set(host.metadata.uid, memory);
    return memory;
  }

  set(host: LiveObject, memory: RepairMemory): void {
    this.#memories.set(host.metadata.uid, memory);
  }

  /** This process wrote an intent: nothing that was heard before counts any more. */
  begin(host: LiveObject, intent: string): void {
    if (this.#memories.get(host.metadata.uid)?.intent !== intent) this.#memories.set(host.metadata.uid, newMemory(intent, true));
  }

  /** The credentials of the workload cluster may not write Nodes. */
  nodeWriteForbidden(host: LiveObject): void {
    const memory = this.#memories.get(host.metadata.uid);
    if (memory !== undefined) this.#memories.set(host.metadata.uid, { ...memory, nodeWriteForbidden: true });
  }

  forget(host: LiveObject): void {
    this.#memories.delete(host.metadata.uid);
    this.#targets.delete(host.metadata.uid);
  }

  /** Reads the host's power once and remembers what came of it. */
  async read(host: LiveObject, intent: string, signal: AbortSignal): Promise<RepairMemory> {
    const before = this.of(host, intent);
    let memory: RepairMemory;
    try {
      memory = withReading(before, await (await this.#bmc(host, signal)).readPower(signal));
    } catch (error) {
      signal.throwIfAborted();
      memory = withReadError(before, { ...this.#describe(host, error), at: this.#clock.now() });
    }
    this.set(host, memory);
    return memory;
  }

  /** Asks for a power action and remembers what came of it; a BMC that refuses is no failure of the pass. */
  async ask(host: LiveObject, intent: string, which: "off" | "on", signal: AbortSignal): Promise<AskView["outcome"]> {
    const at = this.#clock.now();
    let outcome: AskView["outcome"] = "accepted";
    let problem: AskError | undefined;
    try {
      const bmc = await this.#bmc(host, signal);
      await (which === "off" ? bmc.forceOff(signal) : bmc.on(signal));
    } catch (error) {
      problem = this.#describe(host, error);
      outcome = isBmcError(error, "unreachable", "timeout", "server", "invalid") ? "unknown" : "refused";
    }
    this.set(host, withAsk(this.of(host, intent), which, at, outcome, problem));
    return outcome;
  }

  async #bmc(host: LiveObject, signal: AbortSignal): Promise<Bmc> {
    const { uid, annotations = {} } = host.metadata;
    const named = JSON.stringify(Object.values(bmcAnnotations).map((name) => annotations[name]));
    const known = this.#targets.get(uid);
    if (known !== undefined && known.annotations === named && this.#clock.now() - known.at < TARGET_LIFETIME_MS) return known.bmc;
    const target = await bmcTargetOf(host, this.#cluster, { signal });
    if (target === undefined) throw new BmcTargetError(`host ${host.metadata.name} names no BMC`);
    const bmc = this.#bmcs.bmc(target);
    this.#targets.set(uid, { bmc, annotations: named, at: this.#clock.now() });
    return bmc;
  }

  #describe(host: LiveObject, error: unknown): AskError {
    if (error instanceof BmcError) {
      if (error.kind === "unauthorized" || error.kind === "untrusted" || error.kind === "forbidden") this.#targets.delete(host.metadata.uid);
      return { kind: error.kind, message: error.message };
    }
    this.#targets.delete(host.metadata.uid);
    if (error instanceof BmcTargetError) return { kind: "target", message: error.message };
    throw error;
  }
}
