/** What is there of a group: its machines, the hosts they have, and the hosts of its pool. */
import { z } from "zod";

import type { Condition } from "../../capi/conditions.ts";
import { conditionsOf } from "../../capi/conditions.ts";
import { capiLabels, inVersion, machineDeployments, machines, machineSets } from "../../capi/kinds.ts";
import type { CapiVersion } from "../../capi/kinds.ts";
import type { MachineView } from "../../capi/machine.ts";
import { readMachine } from "../../capi/machine.ts";
import type { MachineDeploymentView, MachineSetView } from "../../capi/machine-deployment.ts";
import { readMachineDeployment, readMachineSet } from "../../capi/machine-deployment.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { LiveObject } from "../../cluster/objects.ts";
import { availabilityOf } from "../../hosts/availability.ts";
import { baremetalMachines, machineInventories, machineInventoryPools } from "../../hosts/kinds.ts";
import { parsePool } from "../../hosts/pool.ts";
import { findObject, listServed } from "../lookup.ts";

/** A BaremetalMachine as far as a person who waits for it has to know. */
export interface HostMachine {
  name: string;
  phase: string | undefined;
  /** Inventory that it runs on. */
  host: string | undefined;
  deleting: boolean;
  /** Whether any controller has taken it up. */
  takenUp: boolean;
  conditions: Condition[];
}

export interface GroupMachine extends MachineView {
  /** Undefined for another infrastructure provider, and until it exists. */
  on: HostMachine | undefined;
}

export interface GroupView {
  deployment: MachineDeploymentView | undefined;
  sets: MachineSetView[];
  machines: GroupMachine[];
  /** BaremetalMachines of the group whose Machine is gone already. */
  leftovers: HostMachine[];
}

export interface Host {
  name: string;
  hostname: string | undefined;
  /** Why it cannot be taken, as the end of a sentence that begins with its name. */
  unavailable: string | undefined;
}

export interface PoolView {
  name: string;
  /** In the order in which they are taken. */
  hosts: Host[];
}

const hostMachineModel = z.object({
  status: z
    .object({ phase: z.string().optional(), machineInventoryRef: z.object({ name: z.string() }).optional().catch(undefined) })
    .optional()
    .catch(undefined),
});

function readHostMachine(live: LiveObject): HostMachine {
  const { status } = hostMachineModel.parse(live);
  return {
    name: live.metadata.name,
    phase: status?.phase,
    host: status?.machineInventoryRef?.name,
    deleting: live.metadata.deletionTimestamp !== undefined,
    takenUp: status?.phase !== undefined || (live.metadata.finalizers ?? []).length > 0,
    conditions: conditionsOf(live["status"]),
  };
}

export async function observeGroup(cluster: Cluster, version: CapiVersion, namespace: string, name: string): Promise<GroupView> {
  const labelSelector = `${capiLabels.deploymentName}=${name}`;
  const deployment = await findObject(cluster, inVersion(machineDeployments, version), { namespace, name });
  const sets = await cluster.list(inVersion(machineSets, version), { namespace, labelSelector });
  const members = (await cluster.list(inVersion(machines, version), { namespace, labelSelector })).items.map(readMachine);
  const hostMachines = (await listServed(cluster, baremetalMachines, namespace)) ?? [];
  const byName = new Map(hostMachines.map((live) => [live.metadata.name, readHostMachine(live)]));
  const used = new Set<string>();
  const groupMachines = members.map((machine): GroupMachine => {
    const on = machine.infrastructure.kind === baremetalMachines.kind ? byName.get(machine.infrastructure.name) : undefined;
    if (on !== undefined) used.add(on.name);
    return { ...machine, on };
  });
  const ofGroup = hostMachines.filter(({ metadata }) => metadata.labels?.[capiLabels.deploymentName] === name && !used.has(metadata.name));
  return {
    deployment: deployment === undefined ? undefined : readMachineDeployment(deployment),
    sets: sets.items.map(readMachineSet),
    machines: groupMachines.sort((a, b) => (a.name < b.name ? -1 : 1)),
    leftovers: ofGroup.map(readHostMachine),
  };
}

export interface DeclaredPool {
  name: string;
  /** The list that the program declares, or where it is to be found while the pool is only named. */
  members: readonly { name: string; hostname?: string | undefined }[] | "of the cluster" | "not known yet";
}

/** The pool, or why nothing can be said of its hosts: it is not known yet, or no pool of that name exists beside the `known` ones. */
export async function observePool(
  cluster: Cluster,
  namespace: string,
  declared: DeclaredPool,
): Promise<{ pool: PoolView | "missing" | "not known yet"; known: string[] }> {
  const pools = ((await listServed(cluster, machineInventoryPools, namespace)) ?? []).map(parsePool);
  const known = pools.map(({ name }) => name).sort();
  if (declared.members === "not known yet") return { pool: declared.members, known };
  const members = declared.members === "of the cluster" ? pools.find(({ name }) => name === declared.name)?.entries : declared.members;
  if (members === undefined) return { pool: "missing", known };
  const inventories = new Map(((await listServed(cluster, machineInventories, namespace)) ?? []).map((live) => [live.metadata.name, live]));
  const rule = { name: declared.name, members: members.map(({ name }) => name), poolExists: (name: string) => known.includes(name) };
  const hosts = members.map(({ name, hostname }): Host => {
    const availability = availabilityOf(inventories.get(name), rule);
    return { name, hostname, unavailable: availability.available ? undefined : availability.reason };
  });
  return { pool: { name: declared.name, hosts }, known };
}
