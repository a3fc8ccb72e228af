/** What a remediation object asks for: its strategy, with every default filled in. */
import { z } from "zod";

/** All times in milliseconds. */
export interface Policy {
  /** Attempts after the first; default 1. */
  retryLimit: number;
  /** From power-off asked to proven; default 300 s. */
  offTimeoutMs: number;
  /** From off proven to Node fenced and drained; default 300 s. */
  drainTimeoutMs: number;
  /** From power-on asked to seen; default 300 s. */
  onTimeoutMs: number;
  /** From on seen to Node Ready; default 600 s. */
  readyTimeoutMs: number;
  /** Least distance of the two Off readings; default 2 s. */
  offConfirmationMs: number;
  /** Least distance of the two sightings of an empty Node; default 5 s. */
  drainConfirmationMs: number;
}

export type PolicyReading = { valid: true; policy: Policy } | { valid: false; problem: string };

export const defaultPolicy: Policy = {
  retryLimit: 1,
  offTimeoutMs: 300_000,
  drainTimeoutMs: 300_000,
  onTimeoutMs: 300_000,
  readyTimeoutMs: 600_000,
  offConfirmationMs: 2_000,
  drainConfirmationMs: 5_000,
};

const LEAST_READY_SECONDS = 100;

const strategy = z.object({
  type: z.literal("Reboot").default("Reboot"),
  retryLimit: z.int().min(1).default(1),
  timeoutSeconds: z.int().min(LEAST_READY_SECONDS).optional(),
  timeout: z.string().optional(),
  powerOffTimeoutSeconds: z.int().min(1).default(300),
  drainTimeoutSeconds: z.int().min(1).default(300),
  powerOnTimeoutSeconds: z.int().min(1).default(300),
  offConfirmationSeconds: z.int().min(0).default(2),
  drainConfirmationSeconds: z.int().min(0).default(5),
});

const unitSeconds: Readonly<Record<string, number>> = { h: 3600, m: 60, s: 1, ms: 0.001, us: 1e-6, µs: 1e-6, ns: 1e-9 };

/** Seconds of a duration as Cluster API's older versions write it: `300s`, `1h30m`, `1.5m`. */
export function parseGoDuration(text: string): number | undefined {
  if (text === "0") return 0;
  if (!/^(?:\d+(?:\.\d*)?(?:h|ms|m|us|µs|ns|s))+$/.test(text)) return undefined;
  let seconds = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d*)?)(h|ms|m|us|µs|ns|s)/g)) seconds += Number(amount) * (unitSeconds[unit ?? ""] ?? Number.NaN);
  return seconds;
}

function invalid(problem: string): PolicyReading {
  return { valid: false, problem };
}

/** `spec` is that of the remediation object. */
export function readPolicy(spec: unknown): PolicyReading {
  const parsed = z.object({ strategy: strategy.prefault({}) }).safeParse(spec ?? {});
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return invalid(`spec.${issue?.path.join(".") ?? "strategy"}: ${issue?.message ?? "not valid"}`);
  }
  const { strategy: given } = parsed.data;
  let readySeconds = given.timeoutSeconds ?? 600;
  if (given.timeoutSeconds === undefined && given.timeout !== undefined) {
    const seconds = parseGoDuration(given.timeout);
    if (seconds === undefined) return invalid(`spec.strategy.timeout: ${JSON.stringify(given.timeout)} is no duration; write it as 600s or 10m`);
    // Zero means unset in the peer's older version.
    if (seconds !== 0 && seconds < LEAST_READY_SECONDS) return invalid(`spec.strategy.timeout: must be at least ${LEAST_READY_SECONDS}s`);
    if (seconds !== 0) readySeconds = seconds;
  }
  return {
    valid: true,
    policy: {
      retryLimit: given.retryLimit,
      offTimeoutMs: given.powerOffTimeoutSeconds * 1000,
      drainTimeoutMs: given.drainTimeoutSeconds * 1000,
      onTimeoutMs: given.powerOnTimeoutSeconds * 1000,
      readyTimeoutMs: readySeconds * 1000,
      offConfirmationMs: given.offConfirmationSeconds * 1000,
      drainConfirmationMs: given.drainConfirmationSeconds * 1000,
    },
  };
}
