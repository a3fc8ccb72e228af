/** Waits that grow with each failure and differ from process to process. */

export interface BackoffLimits {
  /** Milliseconds before the first repetition. */
  first: number;
  /** Milliseconds that no wait exceeds. */
  most: number;
}

/** Milliseconds to wait after that many failures in a row; `random` is in [0, 1) and takes off up to half. */
export function backoffAfter(failures: number, limits: BackoffLimits, random: number): number {
  const full = Math.min(limits.most, limits.first * 2 ** Math.min(Math.max(failures - 1, 0), 30));
  return Math.round(full * (1 - random / 2));
}
