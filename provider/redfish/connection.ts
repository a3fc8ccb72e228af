/** One HTTP exchange with a BMC: deadline, size cap, redirects inside the origin, and failures below HTTP as kinds. */
import { errors } from "undici";

import type { Clock } from "../clock.ts";
import type { BmcAddress } from "./address.ts";
import { retryAfterMs } from "./answers.ts";
import type { Answer } from "./answers.ts";
import { BmcError } from "./bmc.ts";
import type { Deadlines } from "./deadlines.ts";
import { givenUp } from "./lane.ts";
import type { Lane } from "./lane.ts";
import { Transport, codeOf } from "./transport.ts";
import type { TransportFacts, Trust } from "./transport.ts";
import { dispatch } from "./wire.ts";

const MAXIMUM_REDIRECTS = 3;

export interface Exchange {
  method: "GET" | "POST" | "DELETE";
  path: string;
  headers?: Record<string, string>;
  body?: unknown;
  /** Whether it acts on the host's power; these are kept further apart. */
  isAction?: boolean;
  /** Whether it asks for a session: a 503 then is one of the session table. */
  isLogin?: boolean;
  /** Milliseconds for its whole answer, in place of the usual. */
  timeoutMs?: number;
}

export interface Timing {
  clock: Clock;
  deadlines: Deadlines;
  /** Milliseconds for the TCP and TLS handshake. */
  connectTimeoutMs: number;
  /** Milliseconds for one request and its whole answer. */
  requestTimeoutMs: number;
}

/** What is known of a BMC's ways with HTTP. */
export interface ConnectionFacts extends TransportFacts {
  /** Refuses to be asked for no compression. */
  refusesIdentity: boolean;
  /** Milliseconds by which its clock is ahead of ours, to a second; `undefined` where it tells no time. */
  clockSkewMs: number | undefined;
}

function withoutSlash(path: string): string {
  return path.replace(/(.)\/$/, "$1");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export class BmcConnection {
  readonly address: BmcAddress;
  readonly #transport: Transport;
  readonly #lane: Lane;
  readonly #timing: Timing;
  /** Compression spoils the ETags of some BMCs; others refuse to be asked for none. */
  #askIdentity = true;
  #lastDate: { header: string; at: number } | undefined;

  constructor(address: BmcAddress, trust: Trust, lane: Lane, timing: Timing) {
    this.address = address;
    this.#lane = lane;
    this.#timing = timing;
    this.#transport = new Transport(address, trust, timing.connectTimeoutMs);
  }

  get facts(): ConnectionFacts {
    const ahead = this.#lastDate === undefined ? Number.NaN : Date.parse(this.#lastDate.header) - this.#lastDate.at;
    return {
      ...this.#transport.facts,
      refusesIdentity: !this.#askIdentity,
      clockSkewMs: Number.isNaN(ahead) ? undefined : Math.round(ahead / 1_000) * 1_000 + 0,
    };
  }

  /** Whatever the BMC answered; throws only where there is no usable answer. A request is sent once, save a redirect or a GET whose connection broke. */
  async send(exchange: Exchange, signal?: AbortSignal): Promise<Answer> {
    let path = exchange.path;
    for (let redirects = 0; redirects <= MAXIMUM_REDIRECTS; redirects += 1) {
      const answer = await this.#sendOnce(path === exchange.path ? exchange : { ...exchange, path }, signal);
      if (answer.status < 300 || answer.status >= 400) return answer;
      path = this.#redirected(exchange.method, path, answer);
    }
    throw this.#error("invalid", `${exchange.method} ${exchange.path} is redirected in a circle`);
  }

  /** Whatever acts goes where the resource said it goes: for it only a slash at the end may be added or dropped. */
  #redirected(method: Exchange["method"], path: string, { status, headers: { location } }: Answer): string {
    const followed = status === 307 || status === 308 || (method === "GET" && [301, 302, 303].includes(status));
    if (!followed || location === undefined) throw this.#error("invalid", `${method} ${path} was answered ${status}, which is no answer`);
    const to = this.pathOf(location, path);
    if (method !== "GET" && withoutSlash(to) !== withoutSlash(path))
      throw this.#error("invalid", `${method} ${path} is redirected to ${to}, which is not followed`);
    return to;
  }

  /** The path of a link; a link that leads to another origin is refused, because our credentials would go with it. */
  pathOf(link: string, base = "/"): string {
    const { origin } = this.address;
    const url = URL.canParse(link, origin + base) ? new URL(link, origin + base) : undefined;
    if (url === undefined) throw this.#error("invalid", "it gave a link that is not one");
    if (url.origin !== origin) throw this.#error("invalid", `it points to another origin (${url.origin}), which is not followed`);
    return url.pathname + url.search;
  }

  async close(): Promise<void> {
    await this.#transport.close();
  }

  async #sendOnce(exchange: Exchange, signal: AbortSignal | undefined): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      if (signal?.aborted) throw givenUp(this.address.shown);
      const wait = this.#lane.untilRequest(this.address.shown, exchange.isAction === true);
      if (wait > 0) await this.#timing.clock.sleep(wait, signal).catch(() => Promise.reject(givenUp(this.address.shown)));
      try {
        const answer = await this.#exchange(exchange, signal);
        if (answer.status !== 406 || !this.#askIdentity) return answer;
        this.#askIdentity = false;
      } catch (error) {
        if (await this.#transport.adapt(error)) continue;
        const failure = error instanceof BmcError ? error : this.#errorOfTransport(exchange, error);
        const broken = error instanceof errors.SocketError || codeOf(error) === "ECONNRESET";
        if (!(broken && exchange.method === "GET" && attempt === 1)) throw failure;
      }
    }
  }

  async #exchange(exchange: Exchange, signal: AbortSignal | undefined): Promise<Answer> {
    const { clock, deadlines } = this.#timing;
    const timeoutMs = exchange.timeoutMs ?? this.#timing.requestTimeoutMs;
    const inFlight = dispatch(this.#transport.client, {
      method: exchange.method,
      path: exchange.path,
      headers: {
        accept: "application/json",
        ...(this.#askIdentity ? { "accept-encoding": "identity" } : {}),
        "odata-version": "4.0",
        ...(exchange.body === undefined ? {} : { "content-type": "application/json" }),
        ...exchange.headers,
      },
      body: exchange.body === undefined ? null : JSON.stringify(exchange.body),
    });
    const answeredInTime = deadlines.after(timeoutMs, () =>
      inFlight.stop(this.#error("timeout", `${exchange.method} ${exchange.path} was not answered within ${timeoutMs / 1_000} s`)),
    );
    const giveUp = (): void => inFlight.stop(givenUp(this.address.shown));
    signal?.addEventListener("abort", giveUp, { once: true });
    try {
      const { status, headers, text } = await inFlight.answer;
      if (headers["date"] !== undefined) this.#lastDate = { header: headers["date"], at: clock.now() };
      const isBusy = (status === 503 || status === 429) && exchange.isLogin !== true;
      const leaveAloneMs = this.#lane.answered(isBusy, isBusy ? retryAfterMs(headers["retry-after"], clock.now()) : undefined);
      return { status, headers, path: exchange.path, body: parseJson(text), leaveAloneMs };
    } finally {
      answeredInTime();
      signal?.removeEventListener("abort", giveUp);
      this.#lane.afterRequest(exchange.isAction === true);
    }
  }

  #error(kind: BmcError["kind"], reason: string): BmcError {
    return new BmcError(kind, this.address.shown, `BMC ${this.address.shown}: ${reason}`);
  }

  #errorOfTransport(exchange: Exchange, error: unknown): BmcError {
    const request = `${exchange.method} ${exchange.path}`;
    if (error instanceof errors.ResponseExceededMaxSizeError) return this.#error("invalid", `${request}: the answer is larger than a megabyte`);
    if (error instanceof errors.HTTPParserError) return this.#error("invalid", `${request}: the answer is not HTTP`);
    return this.#transport.errorOf(error);
  }
}
