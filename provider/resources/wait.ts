/** Waiting for the cluster to get somewhere: look once a second, say what is missing, end at the deadline. */
import { isTransient } from "../cluster/errors.ts";
import { explain } from "./failures.ts";
import type { VerbContext } from "./lifecycle.ts";

const POLL_MS = 1_000;
const REQUEST_RETRY_SECONDS = 10;

/** After that long without progress it is said who would have to act. */
export const STALL_SECONDS = 30;

export interface Observation {
  done: boolean;
  /** What is still missing, machine by machine. */
  line: string;
  /** Differs from the last one as soon as anything has moved. */
  progress: string;
}

export interface Waited {
  done: boolean;
  line: string;
}

/**
 * Looks until `done` or until the time is over. Requests that fail in passing do not end the wait.
 * `stalled` is asked once for each standstill and says who would have to act, if it knows.
 */
export async function waitUntil(
  context: VerbContext,
  timeoutSeconds: number,
  observe: () => Promise<Observation>,
  stalled?: () => string | undefined,
): Promise<Waited> {
  const { clock, signal, report } = context;
  const end = clock.now() + timeoutSeconds * 1000;
  let movedAt = clock.now();
  let progress: string | undefined;
  let line = "";
  let told = false;
  for (;;) {
    signal.throwIfAborted();
    try {
      const seen = await observe();
      line = seen.line;
      if (seen.done) return { done: true, line };
      report.status(line);
      if (seen.progress !== progress) {
        progress = seen.progress;
        movedAt = clock.now();
        told = false;
      }
    } catch (error) {
      if (!isTransient(error)) throw error;
      line = explain(error);
      report.status(line);
    }
    if (!told && clock.now() - movedAt >= STALL_SECONDS * 1000) {
      told = true;
      const who = stalled?.();
      if (who !== undefined) report.warn(who);
    }
    const left = end - clock.now();
    if (left <= 0) return { done: false, line };
    await clock.sleep(Math.min(POLL_MS, left), signal);
  }
}

/** Sends an idempotent request again for a few seconds while the API server is busy or does not answer. */
export async function insistently<T>(context: VerbContext, request: () => Promise<T>): Promise<T> {
  const end = context.clock.now() + REQUEST_RETRY_SECONDS * 1000;
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (!isTransient(error) || context.clock.now() >= end) throw error;
      await context.clock.sleep(POLL_MS, context.signal);
    }
  }
}
