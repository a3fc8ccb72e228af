/** The hold on a host: the intent that is written before a power call, and all that is needed to undo it alone. */
import { z } from "zod";

import { POWER_HOLD_ANNOTATION } from "./names.ts";

const time = z.iso.datetime();
const objectReference = z.object({ namespace: z.string(), name: z.string(), uid: z.string() });

const nodeBackup = z.object({
  uid: z.string(),
  labels: z.record(z.string(), z.string()),
  annotations: z.record(z.string(), z.string()),
});

export const powerHoldSchema = z.object({
  /** Which controller wrote it; a hold has one owner. */
  by: z.enum(["remediation", "inventory"]),
  /**
   * - `reboot`: a repair is under way
   * - `replace`: kept off so that the Machine can be given up; goes over to whoever gives it up
   * - `undo`: nothing more is done to the host than to bring it back
   */
  purpose: z.enum(["reboot", "replace", "undo"]),
  /** Absent for a hold of the inventory controller. */
  remediation: objectReference.extend({ kind: z.string() }).optional(),
  machine: objectReference,
  /** Uid of the host that carries the hold. */
  host: z.string(),
  cluster: z.object({ namespace: z.string(), name: z.string() }),
  /** The Node as it was before the power-off. */
  node: z.object({ name: z.string(), uid: z.string().optional(), bootID: z.string().optional() }).optional(),
  /** Whether the host was on before; null where the BMC did not say. */
  wasOn: z.boolean().nullable(),
  /** Number of the attempt, from 1. */
  attempt: z.int().min(0),
  /** When power-off was asked; the hold is written first. */
  askedAt: time,
  /** When waiting for off ends. */
  offBy: time,
  /** A person confirmed the host to be off for this Machine. */
  confirmedAt: time.optional(),
  /** What was done, or is about to be done, to the Node. */
  fence: z.object({ mode: z.enum(["Taint", "Delete"]), at: time }).optional(),
  backup: nodeBackup.optional(),
  onAskedAt: time.optional(),
  onSeenAt: time.optional(),
  /** For readers of the annotation: what has to happen before the hold can go. */
  owed: z.array(z.enum(["on", "untaint", "restore"])),
});

export type PowerHold = z.infer<typeof powerHoldSchema>;
export type NodeBackup = z.infer<typeof nodeBackup>;

/** What a host carries: a hold, none, or an annotation that is not one (which nobody but a person may touch). */
export type HoldReading = { state: "none" } | { state: "held"; hold: PowerHold } | { state: "unreadable"; problem: string };

export function readHold(annotations: Readonly<Record<string, string>> | undefined): HoldReading {
  const text = annotations?.[POWER_HOLD_ANNOTATION];
  if (text === undefined) return { state: "none" };
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { state: "unreadable", problem: `annotation ${POWER_HOLD_ANNOTATION} is not JSON` };
  }
  const parsed = powerHoldSchema.safeParse(json);
  if (parsed.success) return { state: "held", hold: parsed.data };
  const field = parsed.error.issues[0]?.path.join(".") ?? "";
  return { state: "unreadable", problem: `annotation ${POWER_HOLD_ANNOTATION}: field ${JSON.stringify(field)} is missing or wrong` };
}

/** What has to happen before this hold can go. */
export function owedOf(hold: Omit<PowerHold, "owed">): PowerHold["owed"] {
  const owed: PowerHold["owed"] = [];
  if (hold.onSeenAt === undefined && hold.purpose !== "replace") owed.push("on");
  if (hold.fence?.mode === "Taint") owed.push("untaint");
  if (hold.fence?.mode === "Delete") owed.push("restore");
  return owed;
}

/** The annotation's value. Keys come in a fixed order, so that equal holds are equal strings. */
export function writeHold(hold: Omit<PowerHold, "owed">): string {
  return JSON.stringify(powerHoldSchema.parse({ ...hold, owed: owedOf(hold) }));
}

/** Whether whoever gives the Machine up may replace this hold by its own: an escalated repair hands over, an undone one only waits. */
export function mayBeTakenOver(hold: PowerHold, machineUid: string): boolean {
  return hold.machine.uid === machineUid && hold.purpose !== "reboot";
}
