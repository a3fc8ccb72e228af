/**
 * Inventories without a machine that are to be offered again: quarantined ones that a person released, and ones whose machine has
 * vanished without giving them up, which a finalizer removed by force leads to. Each gets one attempt: powered on, cleaned, and then offered, or set aside again.
 */
import type { Inventory } from "../../hosts/inventory.ts";
import { RELEASING_ANNOTATION } from "../../hosts/names.ts";
import { type PowerHold, readHold } from "../../hosts/power-hold.ts";
import type { PlanReading } from "./plans.ts";

export interface ReleaseView {
  now: number;
  inventory: Inventory;
  /** The owner that the inventory names does not exist, or has another inventory. */
  orphaned: boolean;
  stopped: boolean;
  plan: PlanReading | { problem: string } | undefined;
  bmc: boolean;
  power: PowerOnMemory | undefined;
  cleanTimeoutMs: number;
}

/** What this process did to turn the host on in the present attempt. */
export interface PowerOnMemory {
  attempt: string;
  askedAt: number | undefined;
  on: boolean;
  failures: number;
  notBefore: number;
  problem: string | undefined;
}

export type ReleaseStep =
  | { type: "none"; afterMs?: number }
  | { type: "begin" }
  | { type: "writeCleanPlan"; id: string }
  | { type: "powerOn" }
  | { type: "offer" }
  | { type: "setAside"; reason: string }
  /** Ends the inventory controller's own hold in the write that sets the host aside. */
  | { type: "setAsideHeld"; reason: string; hold: PowerHold };

const POLL_MS = 2_000;
const HELD_MS = 15_000;
/** A host that still does not read on is asked again after that. */
export const ASK_ON_AGAIN_MS = 30_000;

/** The name of the present attempt; undefined while there is none. */
export function attemptOf(inventory: Inventory): string | undefined {
  const at = inventory.annotations[RELEASING_ANNOTATION];
  return inventory.state === "Preparing" && inventory.owner === undefined && at !== undefined ? `${inventory.uid}/${at}` : undefined;
}

/**
 * The hold that giving up the vanished owner wrote, which nobody else will end. It names the Cluster API Machine where the owner is the
 * BaremetalMachine; but that hold is only written by the host's owner, and the owner only goes together with it.
 */
function abandonedHold(inventory: Inventory): PowerHold | undefined {
  const reading = readHold(inventory.annotations);
  if (reading.state !== "held") return undefined;
  const { hold } = reading;
  return hold.by === "inventory" && hold.host === inventory.uid && hold.machine.namespace === inventory.owner?.namespace ? hold : undefined;
}

export function decideRelease(view: ReleaseView): ReleaseStep {
  const { inventory, now, plan } = view;
  if (inventory.deleting) return { type: "none" };
  if (view.orphaned) {
    const hold = abandonedHold(inventory);
    if (hold !== undefined) return { type: "setAsideHeld", hold, reason: `its machine ${hold.machine.name} vanished while the host was being powered off` };
    if (inventory.held) return { type: "none", afterMs: HELD_MS };
    if (inventory.unhealthy !== undefined) return { type: "setAside", reason: inventory.unhealthy.reason };
    return view.stopped ? { type: "none", afterMs: HELD_MS } : { type: "begin" };
  }
  if (inventory.owner !== undefined) return { type: "none" };
  const attempt = attemptOf(inventory);
  if (attempt === undefined) {
    const asked = inventory.state === "Quarantined" && inventory.release === inventory.uid;
    const leftOver = (inventory.state === "Preparing" || inventory.state === "Allocated") && inventory.unhealthy === undefined;
    if (!asked && !leftOver) return { type: "none" };
    // Nothing is powered or cleaned that somebody holds off, or while the stop switch is on.
    if (inventory.held || view.stopped) return { type: "none", afterMs: HELD_MS };
    return { type: "begin" };
  }
  if (inventory.held) return { type: "none", afterMs: HELD_MS };
  const began = Date.parse(inventory.annotations[RELEASING_ANNOTATION] ?? "");
  const deadline = (Number.isNaN(began) ? 0 : began) + view.cleanTimeoutMs;
  const ours = plan !== undefined && !("problem" in plan) && plan.type === "clean" && plan.id === attempt ? plan : undefined;
  if (ours?.state === "applied") return { type: "offer" };
  if (ours?.state === "failed") return { type: "setAside", reason: `the clean plan failed after the release: ${ours.failedOutput || "no output"}` };
  if (now >= deadline) {
    const power = view.power?.problem === undefined ? "" : ` (power on: ${view.power.problem})`;
    const problem = plan !== undefined && "problem" in plan ? ` (${plan.problem})` : "";
    return { type: "setAside", reason: `the clean plan was not applied in time after the release${power}${problem}` };
  }
  if (ours === undefined && !(plan !== undefined && "problem" in plan)) return { type: "writeCleanPlan", id: attempt };
  const power = view.power;
  if (view.bmc && !view.stopped && power?.on !== true && now >= (power?.notBefore ?? 0)) return { type: "powerOn" };
  return { type: "none", afterMs: Math.min(POLL_MS, Math.max(0, deadline - now)) };
}
