/** Keeps a pool's counts, and takes the pool's name off free inventories that it does not declare any more. */
import type { Cluster } from "../../cluster/cluster.ts";
import { keyOf, type LiveObject, parseKey } from "../../cluster/objects.ts";
import { type Inventory, parseInventory } from "../../hosts/inventory.ts";
import { machineInventories, machineInventoryPools } from "../../hosts/kinds.ts";
import { allocationAnnotations } from "../../hosts/names.ts";
import { parsePool } from "../../hosts/pool.ts";
import type { ReconcileResult, Reconciler, Stores, WatchedKind } from "../runtime/reconciler.ts";
import { type AllocationView, countInventories } from "./allocation.ts";
import { annotate } from "./writes.ts";

const NOT_FRESH_MS = 5_000;

export class PoolReconciler implements Reconciler {
  readonly name = "machine-inventory-pool";
  readonly watches: readonly WatchedKind[];
  readonly #cluster: Cluster;
  readonly #stores: Stores;

  constructor(parts: { cluster: Cluster; stores: Stores }) {
    this.#cluster = parts.cluster;
    this.#stores = parts.stores;
    this.watches = [
      { kind: machineInventoryPools, keys: (object) => [keyOf(object)] },
      { kind: machineInventories, keys: (object) => this.#poolsOf(object) },
    ];
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const pools = this.#stores.of(machineInventoryPools);
    const inventories = this.#stores.of(machineInventories);
    if (!pools.fresh() || !inventories.fresh()) return { againAfterMs: NOT_FRESH_MS };
    const { namespace = "", name } = parseKey(key);
    const object = pools.get(key);
    const pool = object === undefined ? undefined : parsePool(object);
    const declared = new Set((pool?.entries ?? []).map((entry) => entry.name));
    for (const live of inventories.list()) {
      if (live.metadata.namespace !== namespace) continue;
      const inventory = parseInventory(live);
      if (inventory.pool === name && !declared.has(inventory.name) && isFree(inventory))
        await annotate(this.#cluster, inventory, { [allocationAnnotations.pool]: null }, signal);
    }
    if (object === undefined || pool === undefined) return {};
    const view: Omit<AllocationView, "isPromised"> = {
      inventory: (member) => inventories.get(`${namespace}/${member}`),
      poolExists: (other) => pools.get(`${namespace}/${other}`) !== undefined,
    };
    const status = countInventories(pool, view);
    if (status.total !== pool.status.total || status.available !== pool.status.available) {
      await this.#cluster.patch(
        machineInventoryPools,
        { namespace, name },
        "merge",
        { metadata: { resourceVersion: object.metadata.resourceVersion }, status },
        { subresource: "status", signal },
      );
    }
    return {};
  }

  /** The pools that declare the inventory, and the one whose name it carries. */
  #poolsOf(inventory: LiveObject): string[] {
    const { namespace, name, annotations } = inventory.metadata;
    const keys = new Set<string>();
    for (const object of this.#stores.of(machineInventoryPools).list()) {
      if (object.metadata.namespace === namespace && parsePool(object).entries.some((entry) => entry.name === name)) keys.add(keyOf(object));
    }
    const named = annotations?.[allocationAnnotations.pool];
    if (named !== undefined) keys.add(`${namespace ?? ""}/${named}`);
    return [...keys];
  }
}

function isFree(inventory: Inventory): boolean {
  return inventory.owner === undefined && inventory.state === "Available";
}
