/** When to ask a BMC again, and what its readings say. */
import type { PowerReading } from "../../redfish/bmc.ts";
import type { AskView, PowerView } from "./snapshot.ts";

const LONGEST_BACKOFF_MS = 30_000;
/** An accepted On that shows no effect is asked again after that long: some BMCs drop it while they still power off. */
const ON_REPEAT_MS = 15_000;

export function backoffMs(count: number): number {
  return Math.min(LONGEST_BACKOFF_MS, 1_000 * 2 ** Math.min(count - 1, 10));
}

export function readingsSince(power: PowerView, since: number): readonly PowerReading[] {
  return power.readings.filter(({ at }) => at >= since);
}

export function lastReading(power: PowerView, since: number): PowerReading | undefined {
  return readingsSince(power, since).at(-1);
}

export function offWasRead(power: PowerView, since: number): boolean {
  return readingsSince(power, since).some(({ power: state }) => state === "off");
}

/** What was said since then, or that nothing could be said: without either, an asking of a process before this one may just be taking effect. */
function looked(power: PowerView, since: number): boolean {
  return power.error !== undefined || readingsSince(power, since).length > 0;
}

/**
 * Whether ForceOff is to be asked (again): only while no Off has been read since the intent, and never again once accepted.
 * `acceptedBefore`: it is on record that the BMC accepted it.
 */
export function offIsDue(power: PowerView, since: number, acceptedBefore: boolean, now: number): boolean {
  if (acceptedBefore || offWasRead(power, since)) return false;
  return again(power.off, power, since, now, undefined);
}

/** As `offIsDue`, but where off is only wanted as a proof: an accepted one that shows no effect is repeated. */
export function offForProofIsDue(power: PowerView, since: number, now: number): boolean {
  if (lastReading(power, since)?.power === "off") return false;
  return again(power.off, power, since, now, LONGEST_BACKOFF_MS);
}

export function onIsDue(power: PowerView, since: number, now: number): boolean {
  if (lastReading(power, since)?.power === "on") return false;
  return again(power.on, power, since, now, ON_REPEAT_MS);
}

function again(ask: AskView | undefined, power: PowerView, since: number, now: number, repeatMs: number | undefined): boolean {
  if (ask === undefined || ask.at < since) return looked(power, since);
  if (ask.outcome === "accepted") return repeatMs !== undefined && now >= ask.at + repeatMs;
  return now >= ask.at + backoffMs(ask.count);
}

/**
 * When power-off may have been asked for the last time. A process that did not write the intent cannot know what one before it asked
 * just before it ended: for it that is the moment when it heard, or failed to hear, from the BMC first.
 */
export function lastMaybeAsked(power: PowerView, since: number): number {
  const asked = power.off?.mayHaveHappened === true ? power.off.at : since;
  if (power.complete) return asked;
  const heard = Math.min(power.readings[0]?.at ?? Infinity, power.firstErrorAt ?? Infinity);
  return Math.max(asked, Number.isFinite(heard) ? heard : since);
}

/** When the next asking may be due; for `nextCheckAt`. */
export function nextAskAt(ask: AskView | undefined, now: number): number {
  if (ask === undefined) return now;
  return ask.outcome === "accepted" ? ask.at + ON_REPEAT_MS : ask.at + backoffMs(ask.count);
}

/** Why the BMC did not do as asked, in words for a condition. */
export function powerProblem(power: PowerView, ask: AskView | undefined): string {
  const failed = ask?.error ?? power.error;
  if (failed !== undefined) return `${failed.kind}: ${failed.message}`;
  const last = power.readings.at(-1);
  return last === undefined ? "the BMC has not answered yet" : `the BMC reads ${JSON.stringify(last.literal)}`;
}
