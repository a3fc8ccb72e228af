/** A clock that moves only when the test says so. */
import type { Clock } from "../../../provider/clock.ts";

interface Sleeper {
  at: number;
  wake(): void;
}

export class ManualClock implements Clock {
  #now: number;
  readonly #sleepers = new Set<Sleeper>();

  constructor(start: number | string = "2026-01-01T00:00:00Z") {
    this.#now = typeof start === "number" ? start : Date.parse(start);
  }

  now(): number {
    return this.#now;
  }

  /** How many sleeps are under way. */
  get sleeping(): number {
    return this.#sleepers.size;
  }

  async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    await new Promise<void>((resolve, reject) => {
      const abort = (): void => {
        this.#sleepers.delete(sleeper);
        reject(signal?.reason instanceof Error ? signal.reason : new Error("aborted"));
      };
      const sleeper: Sleeper = {
        at: this.#now + milliseconds,
        wake: () => {
          signal?.removeEventListener("abort", abort);
          resolve();
        },
      };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /** Moves time on, waking sleepers in order and letting what they cause happen in between. */
  async advance(milliseconds: number): Promise<void> {
    const end = this.#now + milliseconds;
    await settle();
    for (;;) {
      const next = [...this.#sleepers].filter((sleeper) => sleeper.at <= end).sort((a, b) => a.at - b.at)[0];
      if (next === undefined) break;
      this.#now = Math.max(this.#now, next.at);
      this.#sleepers.delete(next);
      next.wake();
      await settle();
    }
    this.#now = end;
    await settle();
  }

  /** Sets the time without waking anybody, as a wall clock that is corrected does. */
  jump(milliseconds: number): void {
    this.#now += milliseconds;
  }
}

/** Lets everything run that needs no time to pass. */
export async function settle(rounds = 20): Promise<void> {
  for (let round = 0; round < rounds; round++) await new Promise<void>((resolve) => setImmediate(resolve));
}
