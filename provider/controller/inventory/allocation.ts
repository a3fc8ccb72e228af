/** Which inventory a machine gets: the first Available one in the order that the pool declares. */
import type { LiveObject } from "../../cluster/objects.ts";
import { availabilityOf } from "../../hosts/availability.ts";
import { type Inventory, parseInventory } from "../../hosts/inventory.ts";
import { allocationAnnotations } from "../../hosts/names.ts";
import type { Pool } from "../../hosts/pool.ts";

export interface AllocationView {
  /** The registered inventory of that name in the pool's namespace. */
  inventory(name: string): LiveObject | undefined;
  /** Whether a pool of that name exists in the namespace. */
  poolExists(name: string): boolean;
  /** Whether another machine has chosen the inventory and is about to claim it. */
  isPromised(name: string): boolean;
}

/** `others`: why each entry before the chosen one, or every entry, does not count: "rack1-07 is in use by machine …". */
export type Allocation = { chosen: Inventory; others: string[] } | { chosen: undefined; others: string[] };

export function chooseInventory(pool: Pool, view: AllocationView): Allocation {
  const members = pool.entries.map(({ name }) => name);
  const others: string[] = [];
  for (const name of members) {
    const object = view.inventory(name);
    const availability = availabilityOf(object, { name: pool.name, members, poolExists: (other) => view.poolExists(other) });
    if (!availability.available) others.push(`${name} ${availability.reason}`);
    else if (view.isPromised(name)) others.push(`${name} is being claimed by another machine`);
    else if (object !== undefined) return { chosen: parseInventory(object), others };
  }
  return { chosen: undefined, others };
}

/** How many of the pool's entries are registered, and how many of these could be taken now. */
export function countInventories(pool: Pool, view: Omit<AllocationView, "isPromised">): { total: number; available: number } {
  const members = pool.entries.map(({ name }) => name);
  const registered = members.map((name) => view.inventory(name)).filter((object) => object !== undefined);
  const free = registered.filter((object) => availabilityOf(object, { name: pool.name, members, poolExists: (other) => view.poolExists(other) }).available);
  return { total: registered.length, available: free.length };
}

export interface ClaimOwner {
  namespace: string;
  name: string;
  uid: string;
}

/** The annotations of the one write that takes the inventory for a machine. */
export function claimAnnotations(owner: ClaimOwner, pool: string): Record<string, string> {
  return {
    [allocationAnnotations.state]: "Allocated",
    [allocationAnnotations.ownerKind]: "BaremetalMachine",
    [allocationAnnotations.ownerNamespace]: owner.namespace,
    [allocationAnnotations.ownerName]: owner.name,
    [allocationAnnotations.ownerUid]: owner.uid,
    [allocationAnnotations.pool]: pool,
  };
}

/** What takes the owner off; the pool's annotation stays. */
export const noOwner: Readonly<Record<string, null>> = {
  [allocationAnnotations.ownerKind]: null,
  [allocationAnnotations.ownerNamespace]: null,
  [allocationAnnotations.ownerName]: null,
  [allocationAnnotations.ownerUid]: null,
};
