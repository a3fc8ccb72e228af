/** What a pool has to know of its namespace. */
import type { Cluster } from "../../cluster/cluster.ts";
import { capiLabels } from "../../capi/kinds.ts";
import { parseInventory } from "../../hosts/inventory.ts";
import { machineInventories, machineInventoryPools } from "../../hosts/kinds.ts";
import { parsePool } from "../../hosts/pool.ts";
import { missingKind } from "../failures.ts";
import { listServed } from "../lookup.ts";
import { ownerOf } from "../ownership.ts";
import type { PoolWorld } from "./plan.ts";

export interface ObservedPool {
  world: PoolWorld;
  /** Kinds that are missing, in words. */
  notes: string[];
}

export async function observePool(cluster: Cluster, namespace: string, poolName: string): Promise<ObservedPool> {
  const pools = await listServed(cluster, machineInventoryPools, namespace);
  const inventories = await listServed(cluster, machineInventories, namespace);
  return {
    world: {
      others: (pools ?? [])
        .filter(({ metadata }) => metadata.name !== poolName && metadata.deletionTimestamp === undefined)
        .map((pool) => ({
          name: pool.metadata.name,
          owner: ownerOf(pool),
          clusterName: pool.metadata.labels?.[capiLabels.clusterName],
          members: parsePool(pool).entries,
        })),
      inventories: new Map((inventories ?? []).map((inventory) => [inventory.metadata.name, parseInventory(inventory)])),
    },
    notes: [...(pools === undefined ? [missingKind(machineInventoryPools)] : []), ...(inventories === undefined ? [missingKind(machineInventories)] : [])],
  };
}
