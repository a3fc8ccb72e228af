/** Whether an inventory may be taken for a new machine, and if not, why: one rule for the controller and for the preview. */
import type { LiveObject } from "../cluster/objects.ts";
import { parseInventory } from "./inventory.ts";

export interface AvailabilityPool {
  name: string;
  /** Names of the inventories that the pool declares. */
  members: readonly string[];
  /** Whether a pool of that name exists in the namespace; an inventory of one that is gone is free for others. */
  poolExists(name: string): boolean;
}

/** `reason` continues the sentence "<inventory> …": "is in use by machine edge-workers-x7k2p". */
export type Availability = { available: true } | { available: false; reason: string };

function not(reason: string): Availability {
  return { available: false, reason };
}

export function availabilityOf(object: LiveObject | undefined, pool: AvailabilityPool): Availability {
  if (object === undefined) return not("is not registered (no MachineInventory of that name)");
  const inventory = parseInventory(object);
  if (!pool.members.includes(inventory.name)) return not(`is not declared in pool ${pool.name}`);
  if (inventory.deleting) return not("is being deleted");
  if (inventory.owner !== undefined) {
    return not(inventory.state === "Preparing" ? `is being given up by machine ${inventory.owner.name}` : `is in use by machine ${inventory.owner.name}`);
  }
  if (inventory.pool !== undefined && inventory.pool !== pool.name && pool.poolExists(inventory.pool)) return not(`belongs to pool ${inventory.pool}`);
  if (inventory.state === "Quarantined") return not(`is quarantined (${inventory.unhealthy?.reason ?? "no reason given"})`);
  if (inventory.unhealthy !== undefined) return not(`is marked unhealthy (${inventory.unhealthy.reason})`);
  if (inventory.held) return not("is held off by a repair");
  if (inventory.state === "Preparing") return not("is being cleaned");
  if (inventory.state === "Allocated") return not("is marked Allocated, but names no machine that uses it");
  if (!inventory.ready) return not(`is not Ready (${inventory.notReadyReason ?? "unknown"})`);
  if (inventory.storage === "notPrepared") return not("declares storage volumes that are not Prepared");
  return { available: true };
}
