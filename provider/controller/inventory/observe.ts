/** Gathers what a decision about a BaremetalMachine rests on: the rest from views, the bound inventory and its Secrets read anew. */
import { z } from "zod";

import { capiAnnotations, clusters, machines } from "../../capi/kinds.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { secrets } from "../../cluster/kinds.ts";
import type { LiveObject, ObjectKey } from "../../cluster/objects.ts";
import { parseInventory } from "../../hosts/inventory.ts";
import { machineInventories, machineInventoryPools } from "../../hosts/kinds.ts";
import { bmcAnnotations, providerIdOf } from "../../hosts/names.ts";
import { hostnameOf, parsePool, type Pool } from "../../hosts/pool.ts";
import { readHold } from "../../hosts/power-hold.ts";
import type { Stores } from "../runtime/reconciler.ts";
import type { BoundInventory, Observed, OwnerMachine } from "./decide.ts";
import { machineUidOf } from "./decide.ts";
import type { BaremetalMachine } from "./machine.ts";
import { type PlanReading, readPlan } from "./plans.ts";
import { normaliseUserData, UserDataError } from "./user-data.ts";

const machineSchema = z.object({
  metadata: z.object({ name: z.string(), uid: z.string(), deletionTimestamp: z.string().optional() }),
  spec: z.object({ clusterName: z.string(), bootstrap: z.object({ dataSecretName: z.string().optional() }).optional() }),
});
const clusterSchema = z.object({ spec: z.object({ paused: z.boolean().optional() }).optional() });
const bootstrapSchema = z.object({ data: z.record(z.string(), z.string()).optional() });

export interface Owner extends OwnerMachine {
  clusterName: string;
  object: LiveObject;
}

export function ownerOf(stores: Stores, machine: BaremetalMachine): Owner | undefined {
  if (machine.machine === undefined) return undefined;
  const object = stores.of(machines).get(`${machine.namespace}/${machine.machine.name}`);
  if (object === undefined || object.metadata.uid !== machine.machine.uid) return undefined;
  const { metadata, spec } = machineSchema.parse(object);
  const dataSecretName = spec.bootstrap?.dataSecretName;
  return {
    name: metadata.name,
    uid: metadata.uid,
    deleting: metadata.deletionTimestamp !== undefined,
    dataSecretName: dataSecretName === "" ? undefined : dataSecretName,
    clusterName: spec.clusterName,
    object,
  };
}

/** What is paused, in words. */
export function pausedReason(stores: Stores, machine: BaremetalMachine, owner: Owner | undefined): string | undefined {
  if (machine.paused) return `the annotation ${capiAnnotations.paused} is set`;
  const name = owner?.clusterName ?? machine.clusterName;
  if (name === undefined) return undefined;
  const cluster = stores.of(clusters).get(`${machine.namespace}/${name}`);
  return cluster !== undefined && clusterSchema.parse(cluster).spec?.paused === true ? `Cluster ${name} is paused` : undefined;
}

export function poolOf(stores: Stores, namespace: string, name: string): Pool | undefined {
  const object = stores.of(machineInventoryPools).get(`${namespace}/${name}`);
  return object === undefined ? undefined : parsePool(object);
}

async function optional(read: Promise<LiveObject>): Promise<LiveObject | undefined> {
  try {
    return await read;
  } catch (error) {
    if (isClusterError(error, "notFound")) return undefined;
    throw error;
  }
}

export async function readBound(cluster: Cluster, machine: BaremetalMachine, signal: AbortSignal): Promise<BoundInventory | undefined> {
  if (machine.inventory === undefined) return undefined;
  const { name, uid } = machine.inventory;
  const object = await optional(cluster.get(machineInventories, { namespace: machine.namespace, name }, { signal }));
  if (object === undefined || object.metadata.uid !== uid) return { found: false };
  return {
    found: true,
    object,
    inventory: parseInventory(object),
    hold: readHold(object.metadata.annotations),
    bmc: (object.metadata.annotations?.[bmcAnnotations.address] ?? "") !== "",
  };
}

export async function readPlanOf(cluster: Cluster, key: ObjectKey, signal: AbortSignal): Promise<PlanReading | { problem: string }> {
  const secret = await optional(cluster.get(secrets, key, { signal }));
  return secret === undefined ? { problem: `the plan Secret ${key.namespace ?? ""}/${key.name} does not exist` } : readPlan(secret);
}

export async function readBootstrap(
  cluster: Cluster,
  machine: BaremetalMachine,
  secretName: string,
  pool: Pool,
  inventory: string,
  signal: AbortSignal,
): Promise<Observed["bootstrap"]> {
  const secret = await optional(cluster.get(secrets, { namespace: machine.namespace, name: secretName }, { signal }));
  if (secret === undefined) return { problem: `the bootstrap Secret ${secretName} does not exist` };
  const value = bootstrapSchema.parse(secret).data?.["value"];
  if (value === undefined) return { problem: `the bootstrap Secret ${secretName} has no key value` };
  try {
    const identity = { hostname: hostnameOf(pool, inventory), providerId: providerIdOf(inventory) };
    return { userData: normaliseUserData(Buffer.from(value, "base64").toString("utf8"), identity) };
  } catch (error) {
    if (error instanceof UserDataError) return { problem: `the bootstrap data of Secret ${secretName} cannot be used: ${error.message}` };
    throw error;
  }
}

/** Whether the decision will ask for the plan, and then whether for the bootstrap data. */
export function needsPlan(machine: BaremetalMachine, bound: BoundInventory | undefined): bound is BoundInventory & { found: true } {
  return bound?.found === true && bound.inventory.owner?.uid === machine.uid && (machine.deleting || machine.phase !== "Running");
}

export function needsBootstrap(machine: BaremetalMachine, plan: PlanReading | { problem: string } | undefined): boolean {
  return !machine.deleting && plan !== undefined && !("problem" in plan) && !(plan.type === "reprovision" && plan.id === machineUidOf(machine));
}
