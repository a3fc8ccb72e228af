/**
 * Keys that wait to be reconciled. A key that is being worked on is not handed out again until it is done; one that is added
 * several times meanwhile is handed out once more.
 */
import type { Clock } from "../../clock.ts";
import { backoffAfter, type BackoffLimits } from "./backoff.ts";

export interface QueueOptions {
  clock: Clock;
  /** After a failure: 250 ms, doubled up to 30 s, by default. */
  backoff?: BackoffLimits;
  random?: () => number;
}

interface Delay {
  at: number;
  cancel(): void;
}

export class WorkQueue {
  readonly #clock: Clock;
  readonly #backoff: BackoffLimits;
  readonly #random: () => number;
  readonly #waiting = new Set<string>();
  readonly #busy = new Set<string>();
  readonly #addedWhileBusy = new Set<string>();
  readonly #delays = new Map<string, Delay>();
  readonly #failures = new Map<string, number>();
  #takers: ((key: string | undefined) => void)[] = [];
  #stopped = false;

  constructor(options: QueueOptions) {
    this.#clock = options.clock;
    this.#backoff = options.backoff ?? { first: 250, most: 30_000 };
    this.#random = options.random ?? Math.random;
  }

  /** Keys that could be worked on now. */
  get length(): number {
    return this.#waiting.size;
  }

  get busy(): number {
    return this.#busy.size;
  }

  add(key: string): void {
    if (this.#stopped) return;
    if (this.#busy.has(key)) {
      this.#addedWhileBusy.add(key);
      return;
    }
    const taker = this.#waiting.size === 0 ? this.#takers.shift() : undefined;
    if (taker === undefined) {
      this.#waiting.add(key);
    } else {
      this.#take(key);
      taker(key);
    }
  }

  /** Adds the key later. Of two delays of one key the earlier one counts. */
  addAfter(key: string, milliseconds: number): void {
    if (this.#stopped) return;
    const at = this.#clock.now() + milliseconds;
    const existing = this.#delays.get(key);
    if (existing !== undefined) {
      if (existing.at <= at) return;
      existing.cancel();
    }
    const cancelled = new AbortController();
    const delay: Delay = { at, cancel: () => cancelled.abort() };
    this.#delays.set(key, delay);
    this.#clock.sleep(milliseconds, cancelled.signal).then(
      () => {
        if (this.#delays.get(key) === delay) this.#delays.delete(key);
        this.add(key);
      },
      () => undefined,
    );
  }

  /** The next key, or undefined once the queue is stopped. */
  async next(): Promise<string | undefined> {
    if (this.#stopped) return undefined;
    const [key] = this.#waiting;
    if (key !== undefined) {
      this.#waiting.delete(key);
      this.#take(key);
      return key;
    }
    return new Promise((resolve) => this.#takers.push(resolve));
  }

  /** The key has been worked on with success. */
  done(key: string): void {
    this.#failures.delete(key);
    this.#release(key);
  }

  /** The key has been worked on without success, and is added again with backoff. Returns the wait in milliseconds. */
  failed(key: string): number {
    const failures = (this.#failures.get(key) ?? 0) + 1;
    this.#failures.set(key, failures);
    const wait = backoffAfter(failures, this.#backoff, this.#random());
    // What happened meanwhile waits as well: it may be the echo of what was written before the failure.
    this.#addedWhileBusy.delete(key);
    this.#release(key);
    this.addAfter(key, wait);
    return wait;
  }

  /** Hands out nothing any more; what is being worked on goes on. */
  stop(): void {
    this.#stopped = true;
    this.#waiting.clear();
    this.#addedWhileBusy.clear();
    for (const delay of this.#delays.values()) delay.cancel();
    this.#delays.clear();
    const takers = this.#takers;
    this.#takers = [];
    for (const taker of takers) taker(undefined);
  }

  #take(key: string): void {
    this.#busy.add(key);
    // What the key was to be looked at again for is looked at now.
    this.#delays.get(key)?.cancel();
    this.#delays.delete(key);
  }

  #release(key: string): void {
    this.#busy.delete(key);
    if (this.#addedWhileBusy.delete(key)) this.add(key);
  }
}
