/** Deadlines of many requests on one timer: a timer for each would cost more than all else that is done for a request. */
import type { Clock } from "../clock.ts";

interface Deadline {
  at: number;
  pass: () => void;
}

export class Deadlines {
  readonly #clock: Clock;
  readonly #pending = new Set<Deadline>();
  #waiting: { until: number; stop: AbortController } | undefined;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Calls back once after that many milliseconds; the returned function ends that. */
  after(milliseconds: number, pass: () => void): () => void {
    const deadline: Deadline = { at: this.#clock.now() + milliseconds, pass };
    this.#pending.add(deadline);
    if (this.#waiting === undefined || this.#waiting.until > deadline.at) this.#wait(milliseconds);
    return () => {
      this.#pending.delete(deadline);
      // A timer that waits for nothing would keep the process alive.
      if (this.#pending.size === 0) this.#stop();
    };
  }

  #stop(): void {
    this.#waiting?.stop.abort();
    this.#waiting = undefined;
  }

  #wait(milliseconds: number): void {
    this.#stop();
    const waiting = { until: this.#clock.now() + milliseconds, stop: new AbortController() };
    this.#waiting = waiting;
    this.#clock.sleep(milliseconds, waiting.stop.signal).then(
      () => this.#passed(waiting),
      () => undefined,
    );
  }

  #passed(waiting: { until: number; stop: AbortController }): void {
    if (this.#waiting !== waiting) return;
    this.#waiting = undefined;
    const now = Math.max(this.#clock.now(), waiting.until);
    let next = Number.POSITIVE_INFINITY;
    for (const deadline of this.#pending) {
      if (deadline.at <= now) {
        this.#pending.delete(deadline);
        deadline.pass();
      } else next = Math.min(next, deadline.at);
    }
    if (next !== Number.POSITIVE_INFINITY) this.#wait(Math.max(1, next - this.#clock.now()));
  }
}
