/** A MachineInventoryPool as the project sees it: which inventories may be taken, in which order, under which host names. */
import { z } from "zod";

import type { LiveObject } from "../cluster/objects.ts";

export interface PoolEntry {
  name: string;
  /** The inventory's name where absent. */
  hostname?: string | undefined;
}

export interface Pool {
  name: string;
  namespace: string;
  deleting: boolean;
  /** In the order in which they are taken. */
  entries: readonly PoolEntry[];
  status: { total?: number | undefined; available?: number | undefined };
}

const schema = z.object({
  metadata: z.object({ name: z.string(), namespace: z.string(), deletionTimestamp: z.string().optional() }),
  spec: z.object({ machineInventories: z.array(z.object({ name: z.string(), hostname: z.string().optional() })).optional() }).optional(),
  status: z.object({ total: z.number().optional(), available: z.number().optional() }).optional(),
});

export function parsePool(object: LiveObject): Pool {
  const { metadata, spec, status } = schema.parse(object);
  return {
    name: metadata.name,
    namespace: metadata.namespace,
    deleting: metadata.deletionTimestamp !== undefined,
    entries: spec?.machineInventories ?? [],
    status: status ?? {},
  };
}

/** The host name of an inventory of the pool. */
export function hostnameOf(pool: Pick<Pool, "entries">, inventory: string): string {
  return pool.entries.find(({ name }) => name === inventory)?.hostname ?? inventory;
}
