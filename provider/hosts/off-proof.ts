/** When a host counts as proven off. Used by every controller that fences or gives up a host. */
import type { PowerReading } from "../redfish/bmc.ts";

/** Age in milliseconds up to which a proof may be acted upon. */
export const PROOF_LIFETIME_MS = 10_000;

export type OffProof =
  | { proven: true; readings: readonly [PowerReading, PowerReading] }
  /** `firstOffAt`: start of the run of Off readings that the newest reading belongs to. */
  | { proven: false; firstOffAt?: number };

/**
 * Two literal Off readings at least `confirmationMs` apart, both after `askedAt`, with nothing but Off read in between and since.
 * `readings` come oldest first.
 */
export function proveOff(readings: readonly PowerReading[], askedAt: number, confirmationMs: number): OffProof {
  let first: PowerReading | undefined;
  let last: PowerReading | undefined;
  for (const reading of readings) {
    if (reading.at < askedAt) continue;
    if (reading.power !== "off") {
      first = undefined;
      last = undefined;
    } else if (first === undefined) {
      first = reading;
    } else {
      last = reading;
    }
  }
  if (first === undefined) return { proven: false };
  if (last === undefined || last.at - first.at < confirmationMs) return { proven: false, firstOffAt: first.at };
  return { proven: true, readings: [first, last] };
}

/** Whether the proof is recent enough to fence or give up on it. */
export function isCurrent(proof: OffProof, now: number): boolean {
  return proof.proven && now - proof.readings[1].at <= PROOF_LIFETIME_MS;
}
