/** What a change of a group means for its machines and hosts: a pure function of what was, what is wanted and what is there. */
import type { CountOrPercent } from "../../capi/machine-deployment.ts";
import type { CheckFailure } from "../lifecycle.ts";
import type { GroupMachine, GroupView, Host, PoolView } from "./observe.ts";

/** What is wanted, as far as it is known. */
export interface WantedGroup {
  replicas: number | undefined;
  removeMachines: readonly string[];
  maxSurge: CountOrPercent;
  maxUnavailable: CountOrPercent;
  /** Whether the hosts come from another pool than before. */
  otherPool: boolean;
  /** Why every machine is replaced, in words; empty where none is. */
  rolloutCauses: readonly string[];
  /** Inputs that change without a machine being replaced. */
  inPlace: readonly string[];
}

export interface GroupPlan {
  refusals: CheckFailure[];
  warnings: string[];
  before: number;
  after: number | undefined;
  /** Hosts that will be taken, in pool order. */
  takes: Host[];
  /** Machines that are named and go. */
  removes: GroupMachine[];
  /** Machines that go and are chosen by Cluster API. */
  removesAny: number;
  /** Machines that are replaced one by one. */
  replaces: GroupMachine[];
  rolloutCauses: readonly string[];
  inPlace: readonly string[];
}

function surgeOf(count: CountOrPercent, replicas: number): number {
  return typeof count === "number" ? count : Math.ceil((Number.parseInt(count, 10) * replicas) / 100);
}

function plural(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

function showHost({ name, hostname }: Host): string {
  return hostname === undefined ? name : `${name} (${hostname})`;
}

function planRemoval(wanted: WantedGroup, view: GroupView, before: number): { removes: GroupMachine[]; removesAny: number; refusals: CheckFailure[] } {
  const staying = view.machines.filter(({ deleting }) => !deleting);
  const removes: GroupMachine[] = [];
  const unmatched: string[] = [];
  for (const name of wanted.removeMachines) {
    const machine = staying.find((candidate) => candidate.name === name || candidate.nodeName === name);
    if (machine === undefined) unmatched.push(name);
    else if (!removes.includes(machine)) removes.push(machine);
  }
  if (wanted.replicas === undefined) return { removes, removesAny: 0, refusals: [] };
  const lowered = Math.max(0, before - wanted.replicas);
  const mismatch = wanted.removeMachines.length > 0 && removes.length !== lowered && (lowered > 0 || removes.length > 0);
  if (!mismatch) return { removes, removesAny: lowered - removes.length, refusals: [] };
  const missing = unmatched.length === 0 ? "" : `; ${unmatched.join(", ")} ${unmatched.length === 1 ? "is" : "are"} no machine or node of this group`;
  const reason = `names ${plural(removes.length, "machine")} of this group, but replicas goes from ${before} to ${wanted.replicas}, which is ${lowered} fewer${missing}; set replicas to ${before - removes.length}, or ${lowered === 0 ? "remove removeMachines" : `name exactly ${lowered}`}`;
  return { removes, removesAny: 0, refusals: [{ property: "removeMachines", reason }] };
}

/** Why the hosts that are not free do not count, and how many are missing. */
function shortage(needed: number, free: readonly Host[], pool: PoolView, wanted: number): string {
  const missing = needed - free.length;
  const others = pool.hosts.flatMap((host) => (host.unavailable === undefined ? [] : [`${host.name} ${host.unavailable}`]));
  const which = free.length === 0 ? "none" : `${free.length} (${free.map(showHost).join(", ")})`;
  return [
    `${plural(wanted, "machine")} need ${plural(needed, "more host")}, but pool ${pool.name} has ${which} to give: ${missing} ${missing === 1 ? "is" : "are"} missing.`,
    ...(others.length === 0 ? [] : [`The others cannot be taken: ${others.join("; ")}.`]),
    `Lower replicas to ${wanted - missing}, or add hosts to the pool`,
  ].join(" ");
}

/** `pool` is absent where hosts come from elsewhere, or where it is not known. `demandBefore` is the number of machines that the last run asked for. */
export function planGroup(wanted: WantedGroup, view: GroupView, pool: PoolView | undefined, demandBefore: number): GroupPlan {
  const before = view.deployment?.replicas ?? demandBefore;
  const removal = planRemoval(wanted, view, before);
  const plan: GroupPlan = {
    refusals: removal.refusals,
    warnings: [],
    before,
    after: wanted.replicas,
    takes: [],
    removes: removal.removes,
    removesAny: removal.removesAny,
    replaces: [],
    rolloutCauses: wanted.rolloutCauses,
    inPlace: wanted.inPlace,
  };
  if (wanted.rolloutCauses.length > 0) plan.replaces = view.machines.filter((machine) => !machine.deleting && !removal.removes.includes(machine));
  if (wanted.replicas === undefined || pool === undefined) return plan;

  const free = pool.hosts.filter(({ unavailable }) => unavailable === undefined);
  const declared = new Set(pool.hosts.map(({ name }) => name));
  // A machine that is there already has its host, or will bring it back when it is replaced.
  const held = view.machines.filter(({ deleting, on }) => !deleting && on?.host !== undefined && declared.has(on.host)).length;
  const needed = Math.max(0, wanted.replicas - held);
  plan.takes = free.slice(0, needed);
  const raised = wanted.replicas > demandBefore || wanted.otherPool;
  if (needed > free.length) {
    if (raised) plan.refusals.push({ property: "replicas", reason: shortage(needed, free, pool, wanted.replicas) });
    else plan.warnings.push(`pool ${pool.name} has too few free hosts for all machines: ${plural(needed - free.length, "machine")} will wait for one`);
    return plan;
  }
  const surge = wanted.rolloutCauses.length === 0 ? 0 : surgeOf(wanted.maxSurge, wanted.replicas);
  if (surge > free.length - needed) {
    const text = `asks for ${plural(surge, "host")} more than there are machines, but pool ${pool.name} has ${free.length - needed} to spare`;
    if (surgeOf(wanted.maxUnavailable, wanted.replicas) === 0)
      plan.refusals.push({
        property: "rollout.maxSurge",
        reason: `${text}, and with maxUnavailable 0 the rollout could never begin; use maxSurge 0 and maxUnavailable 1`,
      });
    else plan.warnings.push(`rollout.maxSurge ${text}; machines will wait for hosts that are given back`);
  }
  return plan;
}

function showMachine(machine: GroupMachine): string {
  const details = [
    ...(machine.nodeName === undefined || machine.nodeName === machine.name ? [] : [`node ${machine.nodeName}`]),
    ...(machine.on?.host === undefined ? [] : [`host ${machine.on.host}`]),
  ];
  return details.length === 0 ? machine.name : `${machine.name} (${details.join(", ")})`;
}

/** The plan in words, one line each. */
export function groupLines(plan: GroupPlan): string[] {
  const lines: string[] = [];
  const { before, after, takes, removes, removesAny, replaces } = plan;
  if (after === undefined) lines.push("replicas are not known yet, and so neither which hosts are taken nor which machines go");
  else if (after !== before) lines.push(`machines: ${before} → ${after}`);
  if (takes.length > 0) lines.push(`takes ${takes.map(showHost).join(", ")}, in pool order`);
  if (removes.length > 0)
    lines.push(`removes ${removes.map(showMachine).join(", ")}; ${removes.length === 1 ? "its host is" : "their hosts are"} cleaned and free again`);
  if (removesAny > 0) lines.push(`removes ${plural(removesAny, "machine")} that Cluster API chooses; name them in removeMachines to decide which`);
  if (plan.rolloutCauses.length > 0) {
    const which = replaces.length === 0 ? "no machine exists yet" : replaces.map(showMachine).join(", ");
    lines.push(`re-provisions one by one, because ${plan.rolloutCauses.join(" and ")}: ${which}`);
  }
  if (plan.inPlace.length > 0) lines.push(`changes in place, no machine is replaced: ${plan.inPlace.join(", ")}`);
  return lines;
}
