/** `BmcAccess` over Redfish: one lane, one breaker and one session a BMC, whoever uses them. */
import { systemClock } from "../clock.ts";
import type { Clock } from "../clock.ts";
import { BmcError } from "./bmc.ts";
import type { BmcAccess, BmcTarget } from "./bmc.ts";
import { Deadlines } from "./deadlines.ts";
import { Endpoints, readTarget } from "./endpoints.ts";
import type { ReadTarget } from "./endpoints.ts";
import { RedfishBmc } from "./redfish-bmc.ts";
import type { Reached } from "./redfish-bmc.ts";

export { RedfishBmc } from "./redfish-bmc.ts";

export interface RedfishOptions {
  clock?: Clock;
  /** Milliseconds for the TCP and TLS handshake; 5,000 by default. */
  connectTimeoutMs?: number;
  /** Milliseconds for one request and its whole answer; 10,000 by default. A login gets 30,000. */
  requestTimeoutMs?: number;
  /** Milliseconds between an answer of a BMC and the next request to it; 100 by default. */
  spacingMs?: number;
  /** Milliseconds between two power actions at one BMC; 1,000 by default. */
  actionSpacingMs?: number;
  /** From 0 to 1, for jitter; `Math.random` by default. */
  random?: () => number;
}

const DEFAULTS = {
  clock: systemClock,
  connectTimeoutMs: 5_000,
  requestTimeoutMs: 10_000,
  spacingMs: 100,
  actionSpacingMs: 1_000,
  random: Math.random,
} as const;

export class RedfishAccess implements BmcAccess {
  readonly #clock: Clock;
  readonly #endpoints: Endpoints;
  #closed = false;

  constructor(options: RedfishOptions = {}) {
    const timing = { ...DEFAULTS, ...options };
    this.#clock = timing.clock;
    this.#endpoints = new Endpoints({ ...timing, deadlines: new Deadlines(timing.clock) });
  }

  /** An address that cannot be used shows when the BMC is first asked, as `BmcError` of kind `invalid`. */
  bmc(target: BmcTarget): RedfishBmc {
    let read: ReadTarget | undefined;
    return new RedfishBmc(() => this.#reach((read ??= readTarget(target))), this.#clock);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#endpoints.close();
  }

  #reach(read: ReadTarget): Reached {
    const { address, target } = read;
    if (this.#closed) throw new BmcError("unreachable", address.shown, `BMC ${address.shown}: the access to it has been closed`);
    const endpoint = this.#endpoints.at(address);
    return { address, endpoint, expected: target.expected, connection: this.#endpoints.loginAt(endpoint, read) };
  }
}
