/** What a change of a pool means for its hosts: a pure function of what was declared and observed, and the wording of it. */
import type { Inventory } from "../../hosts/inventory.ts";
import type { CheckFailure } from "../lifecycle.ts";
import { propertyPath } from "../inputs.ts";
import type { PoolMember } from "./inputs.ts";

export interface OtherPool {
  name: string;
  owner: string | undefined;
  clusterName: string | undefined;
  members: readonly Pick<PoolMember, "name" | "hostname">[];
}

export interface PoolChange {
  poolName: string;
  clusterName: string;
  owner: string;
  /** Members of the last run; empty for a pool that does not exist yet. */
  before: readonly PoolMember[];
  after: readonly PoolMember[];
}

export interface PoolWorld {
  /** Pools of the namespace, this one left out. */
  others: readonly OtherPool[];
  /** Registered inventories by name. */
  inventories: ReadonlyMap<string, Inventory>;
}

export interface PoolPlan {
  refusals: CheckFailure[];
  added: PoolMember[];
  dropped: PoolMember[];
  reordered: boolean;
  /** Declared, but not registered. */
  pending: string[];
}

function hostnameOf(member: Pick<PoolMember, "name" | "hostname">): string {
  return member.hostname ?? member.name;
}

function at(index: number, field: string): string {
  return propertyPath(["machineInventories", index, field]);
}

/** Complaints that need nothing but the declaration. */
export function contradictions(members: readonly Pick<PoolMember, "name" | "hostname">[]): CheckFailure[] {
  const failures: CheckFailure[] = [];
  const names = new Map<string, number>();
  const hostnames = new Map<string, number>();
  for (const [index, member] of members.entries()) {
    const twice = names.get(member.name);
    if (twice !== undefined) {
      failures.push({ property: at(index, "name"), reason: `inventory ${member.name} is listed twice, first as machineInventories[${twice}]; list it once` });
      continue;
    }
    names.set(member.name, index);
    const clash = hostnames.get(hostnameOf(member));
    if (clash === undefined) hostnames.set(hostnameOf(member), index);
    else
      failures.push({
        property: at(index, "hostname"),
        reason: `host name ${hostnameOf(member)} is also that of ${members[clash]?.name ?? ""} (machineInventories[${clash}]); each host needs its own`,
      });
  }
  return failures;
}

function clashes(change: PoolChange, others: readonly OtherPool[]): CheckFailure[] {
  const failures: CheckFailure[] = [];
  // A pool of the same resource under an older name goes before this one comes.
  const rivals = others.filter(({ owner }) => owner !== change.owner);
  for (const [index, member] of change.after.entries()) {
    for (const rival of rivals) {
      if (rival.members.some(({ name }) => name === member.name)) {
        failures.push({
          property: at(index, "name"),
          reason: `inventory ${member.name} belongs to pool ${rival.name}${rival.owner === undefined ? "" : ` (${rival.owner})`}, and an inventory belongs to one pool; drop it there first`,
        });
      }
      const twin =
        rival.clusterName === change.clusterName
          ? rival.members.find((other) => other.name !== member.name && hostnameOf(other) === hostnameOf(member))
          : undefined;
      if (twin !== undefined) {
        failures.push({
          property: at(index, "hostname"),
          reason: `host name ${hostnameOf(member)} is also that of ${twin.name} in pool ${rival.name} of the same cluster; each host of a cluster needs its own`,
        });
      }
    }
  }
  return failures;
}

/** The machine that has the host, where there is one. */
export function userOf(inventory: Inventory | undefined): string | undefined {
  return inventory?.owner?.name;
}

export function planPool(change: PoolChange, world: PoolWorld): PoolPlan {
  const wanted = new Set(change.after.map(({ name }) => name));
  const had = new Set(change.before.map(({ name }) => name));
  const dropped = change.before.filter(({ name }) => !wanted.has(name));
  const kept = (members: readonly PoolMember[]): string => members.flatMap(({ name }) => (wanted.has(name) && had.has(name) ? [name] : [])).join(" ");
  const inUse = dropped.flatMap(({ name }): CheckFailure[] => {
    const machine = userOf(world.inventories.get(name));
    return machine === undefined
      ? []
      : [
          {
            property: "machineInventories",
            reason: `inventory ${name} is in use by machine ${machine} and cannot be dropped; remove that machine first (removeMachines of its WorkerGroup), or keep the inventory`,
          },
        ];
  });
  return {
    refusals: [...contradictions(change.after), ...clashes(change, world.others), ...inUse],
    added: change.after.filter(({ name }) => !had.has(name)),
    dropped,
    reordered: kept(change.before) !== kept(change.after),
    pending: change.after.flatMap(({ name }) => (world.inventories.has(name) ? [] : [name])),
  };
}

function list(members: readonly PoolMember[]): string {
  return members.map((member) => (member.hostname === undefined ? member.name : `${member.name} (${member.hostname})`)).join(", ");
}

/** The plan in words, one line each. */
export function poolLines(plan: PoolPlan, poolName: string): string[] {
  return [
    ...(plan.added.length === 0 ? [] : [`pool ${poolName} gets ${list(plan.added)}`]),
    ...(plan.dropped.length === 0 ? [] : [`pool ${poolName} gives up ${list(plan.dropped)}`]),
    ...(plan.reordered ? [`pool ${poolName} hands its hosts out in another order; machines that exist stay where they are`] : []),
    ...(plan.pending.length === 0
      ? []
      : [
          `not registered yet: ${plan.pending.join(", ")}; they can be taken once they are, and their BMCs are made known by the next \`pulumi up\` after that`,
        ]),
  ];
}
