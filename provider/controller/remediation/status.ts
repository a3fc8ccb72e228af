/** The status of a remediation object, as it is stored. */
import { z } from "zod";

export const phases = ["Running", "Waiting", "Deleting machine", "Failed"] as const;
export type Phase = (typeof phases)[number];

const time = z.iso.datetime();

const condition = z.object({
  type: z.string(),
  status: z.enum(["True", "False", "Unknown"]),
  reason: z.string(),
  message: z.string(),
  lastTransitionTime: time,
  observedGeneration: z.int().min(0).optional(),
});

const strings = z.record(z.string(), z.string());

/** The waits that have a deadline. */
export const waits = ["off", "drain", "on", "ready"] as const;
export type Wait = (typeof waits)[number];

/** One attempt: a power-off and a power-on, and what is done to the Node in between. */
const attempt = z.object({
  number: z.int().min(1),
  offAskedAt: time,
  offAcceptedAt: time.optional(),
  offProvenAt: time.optional(),
  nodeBefore: z.object({ name: z.string(), uid: z.string().optional(), bootID: z.string().optional() }).optional(),
  /** What was about to be done to the Node when it was written. */
  fenceIntent: z.object({ mode: z.enum(["Taint", "Delete"]), at: time }).optional(),
  /** How the Node was dealt with, as it was seen afterwards; `Foreign`: somebody else's taint serves. */
  fence: z.object({ mode: z.enum(["Taint", "Delete", "Foreign", "None"]), at: time, reason: z.string().optional() }).optional(),
  backup: z.object({ uid: z.string(), labels: strings, annotations: strings }).optional(),
  drainedAt: time.optional(),
  onAskedAt: time.optional(),
  onSeenAt: time.optional(),
  newBootAt: time.optional(),
  /** The fence is gone: what was backed up is back, our taint removed. */
  clearedAt: time.optional(),
  readyAt: time.optional(),
  unreadySince: time.optional(),
  /** Since when nothing may be done and deadlines stand still. */
  pausedSince: time.optional(),
  /** When that ended last. */
  resumedAt: time.optional(),
  /** Milliseconds by which each deadline was moved while nothing might be done. */
  stoodStillMs: z.partialRecord(z.enum(waits), z.int().min(0)).optional(),
});

/** What proves that the fence was right; kept after the attempt. */
const fencingRecord = z.object({
  attempt: z.int().min(0),
  machine: z.string(),
  host: z.string(),
  offAskedAt: time,
  readings: z.array(z.object({ at: time, literal: z.string(), system: z.string() })),
  confirmedAt: time.optional(),
  offProvenAt: time,
  mode: z.string().optional(),
  fencedAt: time.optional(),
  node: z.string().optional(),
  bootBefore: z.string().optional(),
  bootAfter: z.string().optional(),
  clearedAt: time.optional(),
});

const escalation = z.object({
  since: time,
  reason: z.string(),
  offAcceptedAt: time.optional(),
  offProvenAt: time.optional(),
  offeredAt: time.optional(),
});

const historyEntry = z.object({ at: time, attempt: z.int().min(0).optional(), reason: z.string(), message: z.string() });

export const remediationStatusSchema = z.object({
  phase: z.enum(phases).optional(),
  retryCount: z.int().min(1).optional(),
  lastRemediated: time.optional(),
  observedGeneration: z.int().min(0).optional(),
  /** Power cycles begun. */
  attempts: z.int().min(0).optional(),
  host: z.object({ name: z.string(), uid: z.string() }).optional(),
  attempt: attempt.optional(),
  escalation: escalation.optional(),
  fencing: fencingRecord.optional(),
  conditions: z.array(condition).optional(),
  history: z.array(historyEntry).optional(),
});

export type RemediationStatus = z.infer<typeof remediationStatusSchema>;
export type AttemptRecord = z.infer<typeof attempt>;
export type FencingRecord = z.infer<typeof fencingRecord>;
export type HistoryEntry = z.infer<typeof historyEntry>;
export type Condition = z.infer<typeof condition>;

/** Steps that the status remembers, newest last. */
export const HISTORY_LIMIT = 30;
