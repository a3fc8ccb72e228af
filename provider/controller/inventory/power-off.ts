/** Powering a host off so that it can be given up: when to ask, when to read, and when it is proven. */
import { isCurrent, proveOff } from "../../hosts/off-proof.ts";
import { backoffAfter } from "../runtime/backoff.ts";
import type { PowerReading } from "../../redfish/bmc.ts";

const READINGS_KEPT = 20;
const READ_INTERVAL_MS = 1_000;
/** A host that still reads on is asked again after that. */
const ASK_AGAIN_MS = 30_000;
const BACKOFF = { first: 1_000, most: 30_000 };

/** What one process knows of one power-off. Lost in a crash, and then gathered anew. */
export interface PowerMemory {
  /** When the hold says that it was asked, milliseconds since the epoch. */
  askedAt: number;
  /** Oldest first. */
  readings: readonly PowerReading[];
  /** When this process last asked with success. */
  acceptedAt: number | undefined;
  /** Errors in a row. */
  failures: number;
  problem: string | undefined;
  /** Nothing is asked or read before. */
  notBefore: number;
}

export function newPowerMemory(askedAt: number): PowerMemory {
  return { askedAt, readings: [], acceptedAt: undefined, failures: 0, problem: undefined, notBefore: 0 };
}

export type PowerStep = { type: "ask" } | { type: "read" } | { type: "wait"; afterMs: number } | { type: "proven" };

export function decidePowerOff(memory: PowerMemory, now: number, offConfirmationMs: number): PowerStep {
  const proof = proveOff(memory.readings, memory.askedAt, offConfirmationMs);
  if (proof.proven && isCurrent(proof, now)) return { type: "proven" };
  if (now < memory.notBefore) return { type: "wait", afterMs: memory.notBefore - now };
  // Once Off has been read, asking again could only hit a host that somebody turned on.
  if (proof.proven || proof.firstOffAt !== undefined) return { type: "read" };
  if (memory.acceptedAt === undefined || now - memory.acceptedAt >= ASK_AGAIN_MS) return { type: "ask" };
  return { type: "read" };
}

export function withAccepted(memory: PowerMemory, now: number): PowerMemory {
  return { ...memory, acceptedAt: now, failures: 0, problem: undefined, notBefore: now };
}

export function withReading(memory: PowerMemory, reading: PowerReading, now: number, offConfirmationMs: number): PowerMemory {
  const readings = [...memory.readings, reading].slice(-READINGS_KEPT);
  const proof = proveOff(readings, memory.askedAt, offConfirmationMs);
  const next = !proof.proven && proof.firstOffAt !== undefined ? Math.max(now, proof.firstOffAt + offConfirmationMs) : now + READ_INTERVAL_MS;
  return { ...memory, readings, failures: 0, problem: undefined, notBefore: next };
}

export function withFailure(memory: PowerMemory, problem: string, now: number, random: number): PowerMemory {
  const failures = memory.failures + 1;
  return { ...memory, failures, problem, notBefore: now + backoffAfter(failures, BACKOFF, random) };
}
