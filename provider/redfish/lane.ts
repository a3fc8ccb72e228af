/** What all users of one BMC share so that it is never asked two things at once, nor too quickly. */
import type { Clock } from "../clock.ts";
import { BmcError, isBmcError } from "./bmc.ts";

/** Wait after the first answer "busy" that names none; doubles with each further one. */
const FIRST_BUSY_MS = 3_000;
const LONGEST_BUSY_MS = 30_000;
/** Up to so much of a wait is added to it by chance, so that those who wait do not come back as one. */
const JITTER = 0.1;

export interface LaneTiming {
  clock: Clock;
  /** Milliseconds between an answer and the next request. */
  spacingMs: number;
  /** Milliseconds between two power actions. */
  actionSpacingMs: number;
  /** From 0 to 1. */
  random: () => number;
}

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
  readonly #timing: LaneTiming;
  #tail: Promise<unknown> = Promise.resolve();
  #queued = 0;
  /** All that were queued when the BMC could not be reached, and why it could not. */
  #unreached: { upTo: number; error: BmcError } | undefined;
  #lastAnswerAt = Number.NEGATIVE_INFINITY;
  #lastActionAt = Number.NEGATIVE_INFINITY;
  #notBefore = Number.NEGATIVE_INFINITY;
  #busyInARow = 0;

  constructor(timing: LaneTiming) {
    this.#timing = timing;
  }

  /** When the BMC was asked last, milliseconds since the epoch. */
  get lastUsedAt(): number {
    return this.#lastAnswerAt;
  }

  /**
   * Runs one piece of work at a time, in the order asked. Work that waited while the BMC could not be reached fails as that did:
   * were each to wait out the same deadline in its turn, the last would hear of it minutes later.
   */
  run<T>(address: string, work: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const number = (this.#queued += 1);
    const turn = this.#tail.then(async () => {
      if (signal?.aborted) throw givenUp(address);
      if (this.#unreached !== undefined && number <= this.#unreached.upTo) throw this.#unreached.error;
      try {
        return await work();
      } catch (error) {
        if (isBmcError(error, "unreachable", "timeout") && signal?.aborted !== true) this.#unreached = { upTo: this.#queued, error };
        throw error;
      }
    });
    this.#tail = turn.catch(() => undefined);
    return signal === undefined ? turn : untilAborted(turn, address, signal);
  }

  /** Milliseconds until the next request may be sent; fails with `busy` while the BMC is to be left alone. */
  untilRequest(address: string, isAction: boolean): number {
    const { clock, spacingMs, actionSpacingMs } = this.#timing;
    const now = clock.now();
    const remaining = this.#notBefore - now;
    if (remaining > 0) {
      throw new BmcError("busy", address, `BMC ${address}: it is busy and left alone for another ${Math.ceil(remaining / 1_000)} s`, {
        retryAfterMs: remaining,
      });
    }
    const earliest = Math.max(this.#lastAnswerAt + spacingMs, isAction ? this.#lastActionAt + actionSpacingMs : Number.NEGATIVE_INFINITY);
    return Math.max(0, earliest - now);
  }

  afterRequest(isAction: boolean): void {
    this.#lastAnswerAt = this.#timing.clock.now();
    if (isAction) this.#lastActionAt = this.#lastAnswerAt;
  }

  /** Milliseconds for which a BMC that answered so is left alone; `asked` is what it asked for itself. */
  answered(busy: boolean, asked: number | undefined): number | undefined {
    if (!busy) {
      this.#busyInARow = 0;
      return undefined;
    }
    this.#busyInARow += 1;
    const wait = asked ?? Math.min(FIRST_BUSY_MS * 2 ** (this.#busyInARow - 1), LONGEST_BUSY_MS);
    const leaveAlone = Math.round(wait * (1 + JITTER * this.#timing.random()));
    this.#notBefore = this.#timing.clock.now() + leaveAlone;
    return leaveAlone;
  }
}
