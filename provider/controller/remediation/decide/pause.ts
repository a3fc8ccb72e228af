/** Under pause nothing moves, and deadlines stand still. */
import { type Draft, IDLE_CHECK_MS, iso } from "../draft.ts";
import type { AttemptRecord, Wait } from "../status.ts";

/** The wait that an attempt is in. */
export function currentWait(attempt: AttemptRecord): Wait {
  if (attempt.onSeenAt !== undefined) return "ready";
  if (attempt.onAskedAt !== undefined) return "on";
  return attempt.offProvenAt === undefined ? "off" : "drain";
}

export function standStill(draft: Draft, what: string): void {
  const { attempt } = draft.status;
  if (attempt !== undefined) attempt.pausedSince ??= iso(draft.now);
  else draft.phase = undefined;
  draft.progress(false, "Paused", `${what} is paused; nothing is started or advanced`);
  draft.checkIn(IDLE_CHECK_MS);
}

export function resume(draft: Draft): void {
  const { attempt } = draft.status;
  if (attempt?.pausedSince === undefined) return;
  const wait = currentWait(attempt);
  const stood = Math.max(0, draft.now - Date.parse(attempt.pausedSince));
  attempt.stoodStillMs = { ...attempt.stoodStillMs, [wait]: (attempt.stoodStillMs?.[wait] ?? 0) + stood };
  attempt.resumedAt = iso(draft.now);
  delete attempt.pausedSince;
}

/** When a wait of the attempt ends. */
export function deadline(attempt: AttemptRecord, wait: Wait, since: number, timeoutMs: number): number {
  return since + timeoutMs + (attempt.stoodStillMs?.[wait] ?? 0);
}
