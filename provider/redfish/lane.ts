/** What all users of one BMC share so that it is never asked two things at once, nor too quickly. */
import type { Clock } from "../clock.ts";
import { BmcError } from "./bmc.ts";

export function givenUp(address: string): BmcError {
  return new BmcError("timeout", address, `BMC ${address}: the caller gave up waiting`);
}

/** Settles as the promise does, or fails as soon as the caller gives up. */
function untilAborted<T>(promise: Promise<T>, address: string, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(givenUp(address));
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort));
  });
}

export class Lane {
  readonly #clock: Clock;
  readonly #spacingMs: number;
  #tail: Promise<unknown> = Promise.resolve();
  #lastAnswerAt = Number.NEGATIVE_INFINITY;
  #notBefore = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, spacingMs: number) {
    this.#clock = clock;
    this.#spacingMs = spacingMs;
  }

  /** Runs one piece of work at a time, in the order asked. */
  run<T>(address: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const turn = this.#tail.then(() => {
      if (signal?.aborted) throw givenUp(address);
      return work();
    });
    this.#tail = turn.catch(() => undefined);
    return signal === undefined ? turn : untilAborted(turn, address, signal);
  }

  /** Waits out the spacing since the last answer; fails with `busy` while the BMC has asked to be left alone. */
  async beforeRequest(address: string, signal?: AbortSignal): Promise<void> {
    const remaining = this.#notBefore - this.#clock.now();
    if (remaining > 0) {
      throw new BmcError("busy", address, `BMC ${address}: it asked to be left alone for another ${Math.ceil(remaining / 1_000)} s`, {
        retryAfterMs: remaining,
      });
    }
    const wait = this.#lastAnswerAt + this.#spacingMs - this.#clock.now();
    if (wait > 0) await this.#clock.sleep(wait, signal);
  }

  afterRequest(leaveAloneMs: number | undefined): void {
    this.#lastAnswerAt = this.#clock.now();
    if (leaveAloneMs !== undefined) this.#notBefore = this.#lastAnswerAt + leaveAloneMs;
  }
}
