/** Waiting for a condition, never for a time. */

export interface WaitOptions {
  /** Milliseconds until the wait fails; 30,000 by default. */
  timeoutMs?: number;
  /** Milliseconds between two looks; 50 by default. */
  intervalMs?: number;
  signal?: AbortSignal;
  /** Said with the failure: what there is in place of what was waited for. */
  describe?: () => Promise<string> | string;
}

const DEFAULT_TIMEOUT_MS = 30_000;
const DEFAULT_INTERVAL_MS = 50;

/**
 * Calls `look` until it returns something other than undefined or false, and returns that. What `look` throws is taken as "not yet";
 * the last such error is the cause of the failure at the deadline. `what` completes "waited in vain for …".
 */
export async function until<T>(what: string, look: () => Promise<T | undefined | false> | T | undefined | false, options: WaitOptions = {}): Promise<T> {
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const began = performance.now();
  let cause: unknown;
  for (;;) {
    options.signal?.throwIfAborted();
    try {
      const found = await look();
      if (found !== undefined && found !== false) return found;
      cause = undefined;
    } catch (error) {
      cause = error;
    }
    if (performance.now() - began > timeoutMs) {
      const last = cause instanceof Error ? `; last error: ${cause.message}` : "";
      const seen = options.describe === undefined ? "" : `; there is: ${await options.describe()}`;
      throw new Error(`waited in vain for ${what}, ${timeoutMs / 1000} s${last}${seen}`, cause === undefined ? {} : { cause });
    }
    await new Promise((resolve) => setTimeout(resolve, options.intervalMs ?? DEFAULT_INTERVAL_MS));
  }
}
