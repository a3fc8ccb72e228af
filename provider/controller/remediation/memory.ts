/** What one process remembers of one host under repair. Lost in a crash, and then gathered anew. */
import type { PowerReading } from "../../redfish/bmc.ts";
import type { AskView, DrainView, PowerView } from "./snapshot.ts";

/** Enough for two confirmed Off readings and the way there. */
const READINGS_KEPT = 20;

export interface RepairMemory {
  /** The intent (`askedAt` of the hold) that all this belongs to; empty before there is one. */
  intent: string;
  power: PowerView;
  clear: { since: number; sightings: number } | undefined;
  nodeWriteForbidden: boolean;
}

/** `complete`: this process wrote the intent itself. */
export function newMemory(intent = "", complete = false): RepairMemory {
  return { intent, power: { readings: [], complete }, clear: undefined, nodeWriteForbidden: false };
}

/** What was read before an intent says nothing about what happened after it, and what was forbidden then may be allowed by now. */
export function forIntent(memory: RepairMemory, intent: string): RepairMemory {
  return memory.intent === intent ? memory : newMemory(intent);
}

export function withReading(memory: RepairMemory, reading: PowerReading): RepairMemory {
  const power = { ...memory.power };
  delete power.error;
  return { ...memory, power: { ...power, readings: kept([...memory.power.readings, reading]) } };
}

/** The first one stays: it tells since when this process has been listening. */
function kept(readings: PowerReading[]): PowerReading[] {
  return readings.length > READINGS_KEPT ? [...readings.slice(0, 1), ...readings.slice(-(READINGS_KEPT - 1))] : readings;
}

export function withReadError(memory: RepairMemory, error: NonNullable<PowerView["error"]>): RepairMemory {
  return { ...memory, power: { ...memory.power, error, firstErrorAt: memory.power.firstErrorAt ?? error.at } };
}

export function withAsk(memory: RepairMemory, which: "off" | "on", at: number, outcome: AskView["outcome"], error?: AskView["error"]): RepairMemory {
  const before = memory.power[which];
  const ask: AskView = {
    at,
    count: (before?.count ?? 0) + 1,
    outcome,
    mayHaveHappened: (before?.mayHaveHappened ?? false) || outcome !== "refused",
    ...(error === undefined ? {} : { error }),
  };
  return { ...memory, power: { ...memory.power, [which]: ask } };
}

/** Takes one look at the pods and attachments of a Node into account. */
export function withSighting(
  memory: RepairMemory,
  now: number,
  pods: readonly string[],
  attachments: readonly string[],
  countPods: boolean,
): { memory: RepairMemory; drain: DrainView } {
  const clear =
    attachments.length === 0 && (!countPods || pods.length === 0)
      ? { since: memory.clear?.since ?? now, sightings: (memory.clear?.sightings ?? 0) + 1 }
      : undefined;
  return { memory: { ...memory, clear }, drain: { state: "seen", clearSince: clear?.since, sightings: clear?.sightings ?? 0, pods, attachments } };
}

export function withoutSighting(memory: RepairMemory): RepairMemory {
  return { ...memory, clear: undefined };
}
