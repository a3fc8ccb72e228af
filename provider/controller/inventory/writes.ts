/** The writes on an inventory, each one merge patch that holds only for the version that was read. */
import type { Cluster } from "../../cluster/cluster.ts";
import type { LiveObject } from "../../cluster/objects.ts";
import type { Inventory } from "../../hosts/inventory.ts";
import { machineInventories } from "../../hosts/kinds.ts";
import {
  allocationAnnotations,
  CONFIRMED_OFF_ANNOTATION,
  POWER_HOLD_ANNOTATION,
  RELEASE_ANNOTATION,
  RELEASING_ANNOTATION,
  UNHEALTHY_ANNOTATION,
} from "../../hosts/names.ts";
import type { HoldReading } from "../../hosts/power-hold.ts";
import { noOwner } from "./allocation.ts";

export type Annotations = Readonly<Record<string, string | null>>;

/** Fails with kind `conflict` where the inventory has changed since it was read. */
export async function annotate(
  cluster: Cluster,
  inventory: Pick<Inventory, "namespace" | "name" | "resourceVersion">,
  annotations: Annotations,
  signal: AbortSignal,
): Promise<LiveObject> {
  const { namespace, name, resourceVersion } = inventory;
  return cluster.patch(machineInventories, { namespace, name }, "merge", { metadata: { resourceVersion, annotations } }, { signal });
}

const MARK_AUTHOR = "pulumi-baremetal inventory controller";

function markValue(reason: string, now: number): string {
  return JSON.stringify({ reason, at: new Date(now).toISOString(), by: MARK_AUTHOR });
}

/** A confirmation goes in the write that uses it, or that makes it pointless; one for another machine stays. */
function confirmationOf(inventory: Inventory, machineUid: string): Annotations {
  return inventory.confirmedOff === machineUid ? { [CONFIRMED_OFF_ANNOTATION]: null } : {};
}

/** Offers a cleaned inventory to the next machine. */
export function offered(inventory: Inventory, machineUid: string): Annotations {
  return { [allocationAnnotations.state]: "Available", ...noOwner, ...confirmationOf(inventory, machineUid) };
}

/**
 * Sets a host aside whose machine goes: off or not to be trusted, with a clean owed before it is ever offered again. A mark that is
 * there already says more than ours would.
 */
export function quarantined(inventory: Inventory, hold: HoldReading, machineUid: string, reason: string, now: number): Annotations {
  return {
    [allocationAnnotations.state]: "Quarantined",
    ...noOwner,
    ...(inventory.unhealthy === undefined ? { [UNHEALTHY_ANNOTATION]: markValue(reason, now) } : {}),
    ...(hold.state === "held" ? { [POWER_HOLD_ANNOTATION]: null } : {}),
    ...confirmationOf(inventory, machineUid),
  };
}

/** Starts the one attempt to bring an inventory without a machine back: it is cleaned and then offered, or set aside again. */
export function releasing(now: number): Annotations {
  return {
    [allocationAnnotations.state]: "Preparing",
    ...noOwner,
    [RELEASE_ANNOTATION]: null,
    [UNHEALTHY_ANNOTATION]: null,
    [RELEASING_ANNOTATION]: new Date(now).toISOString(),
  };
}

export function released(): Annotations {
  return { [allocationAnnotations.state]: "Available", [RELEASING_ANNOTATION]: null };
}

/** Ends an attempt, or the stay of a host whose machine has vanished, without offering it. */
export function setAside(inventory: Inventory, reason: string, now: number): Annotations {
  return {
    [allocationAnnotations.state]: "Quarantined",
    ...noOwner,
    [RELEASING_ANNOTATION]: null,
    ...(inventory.unhealthy === undefined ? { [UNHEALTHY_ANNOTATION]: markValue(reason, now) } : {}),
  };
}
