/** Brings inventories without a machine back to being offered, as `release.ts` decides. */
import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { secrets } from "../../cluster/kinds.ts";
import { keyOf, type LiveObject } from "../../cluster/objects.ts";
import { BmcTargetError, bmcTargetOf } from "../../hosts/bmc-target.ts";
import { type Inventory, parseInventory } from "../../hosts/inventory.ts";
import { baremetalMachines, machineInventories } from "../../hosts/kinds.ts";
import { bmcAnnotations, RELEASE_ANNOTATION } from "../../hosts/names.ts";
import { isBmcError } from "../../redfish/bmc.ts";
import { backoffAfter } from "../runtime/backoff.ts";
import type { ReconcileResult, Reconciler, WatchedKind } from "../runtime/reconciler.ts";
import { parseMachine } from "./machine.ts";
import { readPlanOf } from "./observe.ts";
import { cleanPlan, planPatch, type PlanReading } from "./plans.ts";
import { CLEAN_TIMEOUT_KEY, DEFAULT_CLEAN_TIMEOUT_SECONDS, type InventoryParts } from "./reconciler.ts";
import { ASK_ON_AGAIN_MS, attemptOf, decideRelease, type PowerOnMemory, type ReleaseStep } from "./release.ts";
import { annotate, quarantined, released, releasing, setAside } from "./writes.ts";

const NOT_FRESH_MS = 5_000;
const MOST_STEPS = 10;
const READ_INTERVAL_MS = 1_000;
const BACKOFF = { first: 1_000, most: 30_000 };

export class ReleaseReconciler implements Reconciler {
  readonly name = "machine-inventory-release";
  readonly watches: readonly WatchedKind[];
  readonly #parts: InventoryParts;
  readonly #cluster: Cluster;
  readonly #clock: Clock;
  readonly #power = new Map<string, PowerOnMemory>();

  constructor(parts: InventoryParts) {
    this.#parts = parts;
    this.#cluster = parts.cluster;
    this.#clock = parts.clock;
    this.watches = [
      { kind: machineInventories, keys: (object) => [keyOf(object)] },
      { kind: baremetalMachines, keys: (object) => this.#inventoriesOf(object) },
    ];
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { stores, settings } = this.#parts;
    const inventories = stores.of(machineInventories);
    if (!inventories.fresh() || !stores.of(baremetalMachines).fresh()) return { againAfterMs: NOT_FRESH_MS };
    let live = inventories.get(key);
    for (let count = 0; live !== undefined && count < MOST_STEPS; count++) {
      const inventory = parseInventory(live);
      const attempt = attemptOf(inventory);
      if (attempt === undefined) this.#power.delete(key);
      if (inventory.state === "Quarantined" && inventory.release !== undefined && inventory.release !== inventory.uid) {
        this.#tell(live, "Warning", "ReleaseRefused", `the annotation ${RELEASE_ANNOTATION} names another uid; this inventory's is ${inventory.uid}`);
      }
      const power = this.#power.get(key);
      const plan = attempt === undefined ? undefined : await readPlanOf(this.#cluster, inventory.planSecret, signal);
      const step = decideRelease({
        now: this.#clock.now(),
        inventory,
        orphaned: await this.#isOrphaned(inventory, signal),
        stopped: settings.stopped(),
        plan,
        bmc: (inventory.annotations[bmcAnnotations.address] ?? "") !== "",
        power: power?.attempt === attempt ? power : undefined,
        cleanTimeoutMs: settings.number(CLEAN_TIMEOUT_KEY, DEFAULT_CLEAN_TIMEOUT_SECONDS, 1) * 1000,
      });
      if (step.type === "none") return step.afterMs === undefined ? {} : { againAfterMs: step.afterMs };
      try {
        live = await this.#act(step, live, inventory, { attempt, plan }, signal);
      } catch (error) {
        // The agent wrote the plan Secret meanwhile; the inventory itself comes anew from its watch.
        if (!isClusterError(error, "conflict") || step.type !== "writeCleanPlan") throw error;
      }
    }
    return live === undefined ? {} : { againAfterMs: READ_INTERVAL_MS };
  }

  /** Whether the machine that the inventory names is gone, or has chosen another one: asked anew where the view says so. */
  async #isOrphaned(inventory: Inventory, signal: AbortSignal): Promise<boolean> {
    const { owner } = inventory;
    if (owner?.kind !== baremetalMachines.kind) return false;
    const abandoned = (object: LiveObject | undefined): boolean => {
      if (object === undefined || object.metadata.uid !== owner.uid) return true;
      const { inventory: chosen } = parseMachine(object);
      return chosen !== undefined && chosen.uid !== inventory.uid;
    };
    if (!abandoned(this.#parts.stores.of(baremetalMachines).get(`${owner.namespace}/${owner.name}`))) return false;
    try {
      return abandoned(await this.#cluster.get(baremetalMachines, { namespace: owner.namespace, name: owner.name }, { signal }));
    } catch (error) {
      if (isClusterError(error, "notFound")) return true;
      throw error;
    }
  }

  async #act(
    step: Exclude<ReleaseStep, { type: "none" }>,
    live: LiveObject,
    inventory: Inventory,
    { attempt, plan }: { attempt: string | undefined; plan: PlanReading | { problem: string } | undefined },
    signal: AbortSignal,
  ): Promise<LiveObject> {
    const now = this.#clock.now();
    switch (step.type) {
      case "begin":
        this.#tell(live, "Normal", "Releasing", "the inventory is being cleaned to be offered again");
        return annotate(this.#cluster, inventory, releasing(now), signal);
      case "writeCleanPlan": {
        if (plan === undefined || "problem" in plan) throw new TypeError("a plan is written only over one that was read");
        await this.#cluster.patch(secrets, inventory.planSecret, "merge", planPatch(plan.resourceVersion, cleanPlan(step.id)), { signal });
        return live;
      }
      case "powerOn":
        await this.#powerOn(live, attempt ?? "", signal);
        return live;
      case "offer":
        this.#tell(live, "Normal", "Released", "the inventory is clean and available");
        return annotate(this.#cluster, inventory, released(), signal);
      case "setAside":
        this.#tell(live, "Warning", "SetAside", step.reason);
        return annotate(this.#cluster, inventory, setAside(inventory, step.reason, now), signal);
      case "setAsideHeld": {
        this.#tell(live, "Warning", "SetAside", step.reason);
        const hold = { state: "held", hold: step.hold } as const;
        return annotate(this.#cluster, inventory, quarantined(inventory, hold, step.hold.machine.uid, step.reason, now), signal);
      }
    }
  }

  async #powerOn(live: LiveObject, attempt: string, signal: AbortSignal): Promise<void> {
    const key = keyOf(live);
    const known = this.#power.get(key);
    const memory: PowerOnMemory =
      known?.attempt === attempt ? known : { attempt, askedAt: undefined, on: false, failures: 0, notBefore: 0, problem: undefined };
    const now = this.#clock.now();
    try {
      const target = await bmcTargetOf(live, this.#cluster, { signal });
      if (target === undefined) return;
      const bmc = this.#parts.bmcs.bmc(target);
      const { power } = await bmc.readPower(signal);
      let { askedAt } = memory;
      if (power === "off" && (askedAt === undefined || now - askedAt >= ASK_ON_AGAIN_MS)) {
        await bmc.on(signal);
        askedAt = now;
        this.#parts.log.info("power-on asked", { inventory: key });
      }
      this.#power.set(key, { ...memory, askedAt, on: power === "on", failures: 0, notBefore: now + READ_INTERVAL_MS, problem: undefined });
    } catch (error) {
      if (!isBmcError(error) && !(error instanceof BmcTargetError) && !isClusterError(error, "forbidden")) throw error;
      const failures = memory.failures + 1;
      this.#power.set(key, {
        ...memory,
        failures,
        problem: error.message,
        notBefore: now + backoffAfter(failures, BACKOFF, (this.#parts.random ?? Math.random)()),
      });
    }
  }

  #tell(live: LiveObject, type: "Normal" | "Warning", reason: string, message: string): void {
    this.#parts.log.info("inventory", { inventory: keyOf(live), reason, detail: message });
    this.#parts.events.record(live, { type, reason, message });
  }

  /** The inventory that a machine chose, and those that name it as their owner. */
  #inventoriesOf(machine: LiveObject): string[] {
    const keys: string[] = [];
    for (const object of this.#parts.stores.of(machineInventories).list()) {
      if (parseInventory(object).owner?.uid === machine.metadata.uid) keys.push(keyOf(object));
    }
    return keys;
  }
}
