/**
 * Giving a host up. The Machine's Node goes about a second after the finalizer, so the finalizer goes only when the host has applied its
 * clean plan, or is proven off and quarantined, or a person has confirmed for this very Machine that it is off.
 */
import { PROOF_LIFETIME_MS } from "../../hosts/off-proof.ts";
import { mayBeTakenOver } from "../../hosts/power-hold.ts";
import type { BoundInventory, Decision, Observed, Step } from "./decide.ts";
import { machineUidOf } from "./decide.ts";
import { conditionOf, type ConditionIntent, type Phase, wasProvisioned } from "./machine.ts";
import type { PlanReading } from "./plans.ts";
import { decidePowerOff } from "./power-off.ts";

const PLAN_POLL_MS = 2_000;
const LOOK_AGAIN_MS = 15_000;

function at(phase: Phase, givenUp: "True" | "False", reason: string, message: string, step: Step): Decision {
  const conditions: ConditionIntent[] = [
    { type: "HostGivenUp", status: givenUp, reason, message },
    { type: "Ready", status: "False", reason, message },
    { type: "Paused", status: "False", reason: "NotPaused", message: "" },
  ];
  return { report: { phase, conditions }, step };
}

function stuck(reason: string, message: string, afterMs: number): Decision {
  return at("Failed", "False", reason, message, { type: "wait", afterMs });
}

const removeFinalizer: Decision = { step: { type: "removeFinalizer" } };

export function giveUp(observed: Observed): Decision {
  const { machine, bound } = observed;
  if (machine.inventory === undefined) return removeFinalizer;
  if (bound === undefined) return { step: { type: "wait", afterMs: 0 } };
  if (bound.found && bound.inventory.owner?.uid === machine.uid) return giveUpOwned(observed, bound);
  // Not ours any more. The status said so before the inventory was written, or the choice never became a claim.
  const recorded = conditionOf(machine, "HostGivenUp")?.status === "True";
  const neverClaimed = (machine.phase === undefined || machine.phase === "Pending") && !wasProvisioned(machine);
  if (recorded || neverClaimed || machine.confirmedOff === machineUidOf(machine)) return removeFinalizer;
  const what = bound.found
    ? `MachineInventory ${machine.inventory.name} names another owner`
    : `MachineInventory ${machine.inventory.name} does not exist any more`;
  const remedy = `make sure that the host is off, then annotate this BaremetalMachine with pulumi-baremetal.dev/confirmed-off: ${machineUidOf(machine)}`;
  return stuck("OffNotProven", `${what}, so its host can neither be cleaned nor proven off; ${remedy}`, 60_000);
}

/** Whether the clean plan of this machine is in the Secret, and how it stands. */
function cleanState(observed: Observed): PlanReading | undefined {
  const { plan, machine } = observed;
  return plan !== undefined && !("problem" in plan) && plan.type === "clean" && plan.id === machineUidOf(machine) ? plan : undefined;
}

function giveUpOwned(observed: Observed, bound: BoundInventory & { found: true }): Decision {
  const { machine, now, plan } = observed;
  const { inventory, hold } = bound;
  const uid = machineUidOf(machine);
  const since = conditionOf(machine, "HostGivenUp");
  if (since === undefined) return at("Preparing", "False", "Cleaning", `inventory ${inventory.name} is being cleaned`, { type: "wait", afterMs: 0 });
  if (hold.state === "unreadable")
    return stuck("OffNotProven", `${hold.problem}; nothing is done to ${inventory.name} until a person puts that right`, LOOK_AGAIN_MS);
  const ours = hold.state === "held" && hold.hold.by === "inventory" && hold.hold.machine.uid === uid;
  const foreign = hold.state === "held" && !ours;
  const clean = cleanState(observed);
  const applied = clean?.state === "applied";

  if (applied && !foreign) {
    // A host that was asked to go off, or is marked, is not offered to the next machine as if nothing had happened.
    if (!ours && inventory.unhealthy === undefined)
      return at("Preparing", "True", "Cleaned", `inventory ${inventory.name} is clean`, { type: "offerInventory" });
    return at("Preparing", "True", "Cleaned", `inventory ${inventory.name} is clean, and quarantined`, {
      type: "quarantine",
      reason: ours ? "the clean plan was not applied in time, and the host was asked to power off" : (inventory.unhealthy?.reason ?? ""),
    });
  }
  if (foreign && !mayBeTakenOver(hold.hold, uid)) {
    return at("Preparing", "False", "HostHeld", `inventory ${inventory.name} is held by a repair that is being undone`, {
      type: "wait",
      afterMs: PLAN_POLL_MS,
    });
  }
  if (inventory.confirmedOff === uid) {
    return at("Preparing", "True", "ConfirmedOff", `a person confirmed that the host of ${inventory.name} is off`, {
      type: "quarantine",
      reason: "confirmed off by a person when its machine was deleted",
    });
  }
  if (inventory.state !== "Preparing") return at("Preparing", "False", "Cleaning", `inventory ${inventory.name} is being cleaned`, { type: "markPreparing" });

  const deadline = (Date.parse(since.status === "False" ? since.lastTransitionTime : "") || now) + observed.cleanTimeoutMs;
  const powerOff = ours || inventory.unhealthy !== undefined || now >= deadline;
  if (foreign) {
    if (powerOff) return powerOffDecision(observed, bound, { type: "takeHold" }, clean);
    return at("Preparing", "False", "HostHeld", `inventory ${inventory.name} is held by a repair that is being undone`, {
      type: "wait",
      afterMs: PLAN_POLL_MS,
    });
  }
  if (clean === undefined && !(plan !== undefined && "problem" in plan)) {
    return at("Preparing", "False", "Cleaning", `inventory ${inventory.name} is being cleaned`, { type: "writeCleanPlan" });
  }
  if (powerOff) return powerOffDecision(observed, bound, ours ? undefined : { type: "takeHold" }, clean);
  const failure = clean?.state === "failed" ? `; the plan failed: ${clean.failedOutput || "no output"}` : "";
  const problem = plan !== undefined && "problem" in plan ? `; ${plan.problem}` : "";
  const reason = failure !== "" ? "CleanFailed" : problem !== "" ? "PlanSecretMissing" : "Cleaning";
  return at(
    "Preparing",
    "False",
    reason,
    `waiting for inventory ${inventory.name} to apply its clean plan until ${new Date(deadline).toISOString()}${failure}${problem}`,
    {
      type: "wait",
      afterMs: Math.max(0, Math.min(PLAN_POLL_MS, deadline - now)),
    },
  );
}

function powerOffDecision(observed: Observed, bound: BoundInventory & { found: true }, take: Step | undefined, clean: PlanReading | undefined): Decision {
  const { inventory } = bound;
  const { power, now, stopped, offConfirmationMs } = observed;
  const uid = machineUidOf(observed.machine);
  const byHand = `or make sure that it is off and annotate MachineInventory ${inventory.name} with pulumi-baremetal.dev/confirmed-off: ${uid}`;
  const why = inventory.unhealthy === undefined ? "the clean plan was not applied in time" : `the host is marked unhealthy (${inventory.unhealthy.reason})`;
  const pollMs = clean === undefined ? LOOK_AGAIN_MS : PLAN_POLL_MS;
  if (!bound.bmc)
    return stuck("OffNotProven", `${why}, and inventory ${inventory.name} names no BMC to power it off: add it to the pool (bmc), ${byHand}`, pollMs);
  if (take !== undefined) {
    // A hold that is there already is brought to its end.
    if (stopped && bound.hold.state === "none") return stuck("Stopped", `${why}; its host is not powered off while the stop switch is on`, LOOK_AGAIN_MS);
    return at("Preparing", "False", "PoweringOff", `${why}; powering inventory ${inventory.name} off`, take);
  }
  const step = power === undefined ? ({ type: "ask" } as const) : decidePowerOff(power, now, offConfirmationMs);
  if (step.type === "proven")
    return at("Preparing", "True", "ProvenOff", `the host of inventory ${inventory.name} is proven off`, {
      type: "quarantine",
      reason: `${why}; powered off`,
      validUntil: now + PROOF_LIFETIME_MS,
    });
  const act: Step = step.type === "ask" ? { type: "askOff" } : step.type === "read" ? { type: "readPower" } : { type: "wait", afterMs: step.afterMs };
  if (power?.problem === undefined) return at("Preparing", "False", "PoweringOff", `${why}; powering inventory ${inventory.name} off`, act);
  return at(
    "Failed",
    "False",
    "OffNotProven",
    `${why}, and inventory ${inventory.name} cannot be proven off: ${power.problem}; it is tried again, ${byHand}`,
    act,
  );
}
