/**
 * What to do next for a BaremetalMachine: a pure function of what was observed and the time. The status is written before the step is
 * done, so that no step is taken that the status does not tell of.
 */
import { availabilityOf } from "../../hosts/availability.ts";
import type { Inventory } from "../../hosts/inventory.ts";
import { providerIdOf } from "../../hosts/names.ts";
import { hostnameOf, type Pool } from "../../hosts/pool.ts";
import type { HoldReading } from "../../hosts/power-hold.ts";
import type { LiveObject } from "../../cluster/objects.ts";
import type { Allocation } from "./allocation.ts";
import { giveUp } from "./give-up.ts";
import { type BaremetalMachine, type ConditionIntent, MACHINE_FINALIZER, type Phase, type Report, wasProvisioned } from "./machine.ts";
import type { PlanReading } from "./plans.ts";
import type { PowerMemory } from "./power-off.ts";

/** The inventory that the machine chose, read anew. */
export type BoundInventory =
  | { found: true; object: LiveObject; inventory: Inventory; hold: HoldReading; bmc: boolean }
  /** No inventory of that name any more, or another one under the same name. */
  | { found: false };

export interface OwnerMachine {
  name: string;
  uid: string;
  deleting: boolean;
  dataSecretName: string | undefined;
}

export interface Observed {
  now: number;
  machine: BaremetalMachine;
  /** The Cluster API Machine; undefined while there is none. */
  owner: OwnerMachine | undefined;
  /** What is paused, in words; undefined where nothing is. */
  paused: string | undefined;
  /** The stop switch is on: no host is powered off that is not held already. */
  stopped: boolean;
  pool: Pool | undefined;
  poolExists(name: string): boolean;
  /** Only looked for while the machine has chosen none. */
  allocation: Allocation | undefined;
  /** An inventory that names this machine as its owner although the status names none: the status was lost. */
  claimed: { name: string; uid: string } | undefined;
  bound: BoundInventory | undefined;
  /** Only read while a plan of this machine matters. */
  plan: PlanReading | { problem: string } | undefined;
  /** Only read when a reprovision plan is due. */
  bootstrap: { userData: string } | { problem: string } | undefined;
  power: PowerMemory | undefined;
  cleanTimeoutMs: number;
  offConfirmationMs: number;
}

export type Step =
  | { type: "wait"; afterMs?: number }
  | { type: "addFinalizer" }
  | { type: "claim"; pool: string }
  | { type: "writeReprovisionPlan"; hostname: string }
  | { type: "setProviderId"; providerId: string }
  | { type: "markPreparing" }
  | { type: "writeCleanPlan" }
  | { type: "offerInventory" }
  | { type: "takeHold" }
  | { type: "askOff" }
  | { type: "readPower" }
  /** Not done any more after `validUntil`, milliseconds since the epoch: a proof grows old. */
  | { type: "quarantine"; reason: string; validUntil?: number }
  | { type: "removeFinalizer" };

export interface Decision {
  report?: Report;
  step: Step;
}

export function ready(status: "True" | "False", reason: string, message = ""): ConditionIntent {
  return { type: "Ready", status, reason, message };
}

const notPaused: ConditionIntent = { type: "Paused", status: "False", reason: "NotPaused", message: "" };

/** Uid by which plans, holds and confirmations name the machine: that of the Cluster API Machine. */
export function machineUidOf(machine: BaremetalMachine): string {
  return machine.machine?.uid ?? machine.uid;
}

function pending(reason: string, message: string, afterMs?: number): Decision {
  return { report: { phase: "Pending", conditions: [ready("False", reason, message), notPaused] }, step: wait(afterMs) };
}

function wait(afterMs?: number): Step {
  return afterMs === undefined ? { type: "wait" } : { type: "wait", afterMs };
}

export function decide(observed: Observed): Decision {
  const { machine, paused } = observed;
  if (machine.deleting && !machine.finalizers.includes(MACHINE_FINALIZER)) return { step: wait() };
  if (paused !== undefined) return { report: { conditions: [{ type: "Paused", status: "True", reason: "Paused", message: paused }] }, step: wait() };
  if (machine.inventory === undefined && observed.claimed !== undefined) return recall(observed.claimed);
  if (machine.deleting) return giveUp(observed);
  if (!machine.finalizers.includes(MACHINE_FINALIZER)) return { step: { type: "addFinalizer" } };
  if (machine.inventory === undefined) return choose(observed);
  return provision(observed);
}

function recall({ name, uid }: { name: string; uid: string }): Decision {
  const condition = ready("False", "Allocated", `inventory ${name} names this machine as its owner`);
  return { report: { phase: "Allocated", inventory: { name, uid }, conditions: [condition, notPaused] }, step: wait(0) };
}

/** Why no inventory may be chosen yet. */
function notYet({ owner, pool, machine }: Observed): Decision | undefined {
  if (owner === undefined) return pending("WaitingForMachine", "no Cluster API Machine owns this object yet");
  if (owner.deleting) return pending("MachineDeleting", `Machine ${owner.name} is being deleted`);
  if (owner.dataSecretName === undefined) return pending("WaitingForBootstrapData", `Machine ${owner.name} has no bootstrap data yet`);
  if (pool === undefined) return pending("PoolNotFound", `MachineInventoryPool ${machine.poolName} does not exist in namespace ${machine.namespace}`);
  if (pool.deleting) return pending("PoolDeleting", `MachineInventoryPool ${pool.name} is being deleted`);
  return undefined;
}

const MOST_REASONS = 10;

function choose(observed: Observed): Decision {
  const { allocation, machine } = observed;
  if (wasProvisioned(machine))
    return failed(
      "InventoryUnknown",
      `it was provisioned as ${machine.providerId ?? "a Node"}, but no inventory names it; delete the Machine to have it replaced`,
    );
  const held = notYet(observed);
  if (held !== undefined) return held;
  if (allocation?.chosen === undefined) {
    const others = allocation?.others ?? [];
    const more = others.length > MOST_REASONS ? `; and ${others.length - MOST_REASONS} more` : "";
    const why = others.length === 0 ? "it declares none" : others.slice(0, MOST_REASONS).join("; ") + more;
    return pending("NoInventoryAvailable", `pool ${machine.poolName} has no available inventory: ${why}`, 30_000);
  }
  const { name, uid } = allocation.chosen;
  // The choice is written before the claim: whatever happens in between, one machine claims one inventory at most.
  return {
    report: { phase: "Pending", inventory: { name, uid }, conditions: [ready("False", "Claiming", `claiming inventory ${name}`), notPaused] },
    step: wait(0),
  };
}

function forget(name: string): Decision {
  return {
    report: {
      phase: "Pending",
      inventory: undefined,
      conditions: [ready("False", "Claiming", `inventory ${name} went to another machine; choosing again`), notPaused],
    },
    step: wait(0),
  };
}

function failed(reason: string, message: string, afterMs?: number): Decision {
  return { report: { phase: "Failed", conditions: [ready("False", reason, message), notPaused] }, step: wait(afterMs) };
}

function provision(observed: Observed): Decision {
  const { machine, bound, pool } = observed;
  const name = machine.inventory?.name ?? "";
  const unclaimed = (machine.phase === undefined || machine.phase === "Pending") && !wasProvisioned(machine);
  if (bound === undefined) return { step: wait(0) };
  if (!bound.found) {
    return unclaimed ? forget(name) : failed("InventoryGone", `MachineInventory ${name} does not exist any more; delete the Machine to have it replaced`);
  }
  const { inventory, object } = bound;
  if (inventory.owner?.uid !== machine.uid) {
    if (!unclaimed)
      return failed("OwnerLost", `MachineInventory ${name} does not name this machine as its owner any more; delete the Machine to have it replaced`);
    const held = notYet(observed);
    if (held !== undefined) return held;
    const members = (pool?.entries ?? []).map((entry) => entry.name);
    const free = availabilityOf(object, { name: machine.poolName, members, poolExists: (other) => observed.poolExists(other) });
    return free.available ? { step: { type: "claim", pool: machine.poolName } } : forget(name);
  }
  if (machine.phase === "Running") return { report: { conditions: [ready("True", "Provisioned"), notPaused] }, step: wait() };
  // A live Node may be on it, whatever became of the plan since: never provisioned a second time.
  if (wasProvisioned(machine)) return { report: runningAgain(observed, inventory), step: wait() };
  return reprovision(observed, bound);
}

/** The rest of a start that was cut short after the provider id was set, or the end of a failure that is over. */
function runningAgain({ machine, plan, pool }: Observed, inventory: Inventory): Report {
  const report: Report = { phase: "Running", conditions: [ready("True", "Provisioned"), notPaused] };
  if (machine.provisioned) return report;
  const planned = plan !== undefined && isReprovisionOf(machine, plan) ? plan.hostname : undefined;
  const declared = pool === undefined ? inventory.name : hostnameOf(pool, inventory.name);
  return { ...report, provisioned: { hostname: planned ?? declared } };
}

function isReprovisionOf(machine: BaremetalMachine, plan: PlanReading | { problem: string }): plan is PlanReading {
  return !("problem" in plan) && plan.type === "reprovision" && plan.id === machineUidOf(machine);
}

function reprovision(observed: Observed, bound: BoundInventory & { found: true }): Decision {
  const { machine, plan, owner, pool, bootstrap } = observed;
  const { inventory } = bound;
  const allocated = (reason: string, message: string, afterMs?: number): Decision => ({
    report: { phase: "Allocated", conditions: [ready("False", reason, message), notPaused] },
    step: wait(afterMs),
  });
  if (plan === undefined) return allocated("Allocated", `inventory ${inventory.name} is this machine's`, 0);
  if ("problem" in plan) return allocated("PlanSecretMissing", plan.problem, 10_000);
  if (isReprovisionOf(machine, plan)) return progress(observed, inventory, plan);
  if (owner?.deleting === true) return allocated("MachineDeleting", `Machine ${owner.name} is being deleted`);
  if (bound.hold.state !== "none") return allocated("HostHeld", `inventory ${inventory.name} is held off; nothing is done to it until the hold goes`, 5_000);
  if (inventory.unhealthy !== undefined)
    return allocated(
      "HostUnhealthy",
      `inventory ${inventory.name} is marked unhealthy (${inventory.unhealthy.reason}); delete the Machine to have it replaced`,
    );
  if (inventory.deleting) return allocated("InventoryDeleting", `MachineInventory ${inventory.name} is being deleted`);
  if (owner?.dataSecretName === undefined) return allocated("WaitingForBootstrapData", "the Machine has no bootstrap data");
  if (pool === undefined)
    return allocated(
      "PoolNotFound",
      `MachineInventoryPool ${machine.poolName} does not exist in namespace ${machine.namespace}; the host name of ${inventory.name} is not known`,
    );
  if (bootstrap === undefined) return allocated("Allocated", `inventory ${inventory.name} is this machine's`, 0);
  if ("problem" in bootstrap) return failed("BootstrapDataInvalid", bootstrap.problem, 30_000);
  return {
    report: { phase: "Allocated", conditions: [ready("False", "Allocated", `inventory ${inventory.name} is this machine's`), notPaused] },
    step: { type: "writeReprovisionPlan", hostname: hostnameOf(pool, inventory.name) },
  };
}

/** How the reprovision plan stands. */
function progress({ machine }: Observed, inventory: Inventory, plan: PlanReading): Decision {
  const at = (phase: Phase, condition: ConditionIntent, step: Step): Decision => ({ report: { phase, conditions: [condition, notPaused] }, step });
  switch (plan.state) {
    case "pending":
      return at("Reprovisioning", ready("False", "Reprovisioning", `waiting for inventory ${inventory.name} to apply its reprovision plan`), wait(2_000));
    case "failed":
      // The agent may try again by itself, and then its success counts.
      return at(
        "Failed",
        ready("False", "PlanFailed", `the reprovision plan failed on inventory ${inventory.name}: ${plan.failedOutput || "no output"}`),
        wait(10_000),
      );
    case "applied": {
      const providerId = providerIdOf(inventory.name);
      if (machine.providerId !== providerId) return { step: { type: "setProviderId", providerId } };
      return {
        report: { phase: "Running", provisioned: { hostname: plan.hostname ?? inventory.name }, conditions: [ready("True", "Provisioned"), notPaused] },
        step: wait(),
      };
    }
  }
}
