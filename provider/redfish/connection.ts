/** One HTTP exchange with a BMC: deadline, size cap, redirects inside the origin, and failures below HTTP as kinds. */
import { Client, errors } from "undici";

import type { Clock } from "../clock.ts";
import type { BmcAddress } from "./address.ts";
import { retryAfterMs } from "./answers.ts";
import type { Answer } from "./answers.ts";
import { BmcError } from "./bmc.ts";
import { givenUp } from "./lane.ts";
import type { Lane } from "./lane.ts";

const MAXIMUM_ANSWER_BYTES = 1024 * 1024;
const MAXIMUM_REDIRECTS = 3;

/** How Node names what is wrong with a certificate. */
const certificateCodes =
  /^(CERT_|CRL_|ERR_TLS_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_EXCEEDED$|HOSTNAME_MISMATCH$)/;

export interface Exchange {
  method: "GET" | "POST" | "DELETE";
  path: string;
  headers?: Record<string, string>;
  body?: unknown;
}

export interface Trust {
  certificateAuthority?: string;
  insecure?: boolean;
}

export interface Timing {
  clock: Clock;
  /** Milliseconds for the TCP and TLS handshake. */
  connectTimeoutMs: number;
  /** Milliseconds for one request and its whole answer. */
  requestTimeoutMs: number;
}

function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function firstValues(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const values: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    const first = Array.isArray(value) ? value[0] : value;
    if (first !== undefined) values[name.toLowerCase()] = first;
  }
  return values;
}

export class BmcConnection {
  readonly address: BmcAddress;
  readonly #client: Client;
  readonly #lane: Lane;
  readonly #timing: Timing;
  /** Compression spoils the ETags of some BMCs; others refuse to be asked for none. */
  #askIdentity = true;

  constructor(address: BmcAddress, trust: Trust, lane: Lane, timing: Timing) {
    this.address = address;
    this.#lane = lane;
    this.#timing = timing;
    this.#client = new Client(address.origin, {
      connect: {
        timeout: timing.connectTimeoutMs,
        rejectUnauthorized: trust.insecure !== true,
        ...(trust.certificateAuthority === undefined ? {} : { ca: trust.certificateAuthority }),
      },
      allowH2: false,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      maxResponseSize: MAXIMUM_ANSWER_BYTES,
    });
  }

  /** Whatever the BMC answered; throws only where there is no usable answer. A request is sent once, save a redirect or a GET whose connection broke. */
  async send(exchange: Exchange, signal?: AbortSignal): Promise<Answer> {
    let path = exchange.path;
    for (let redirects = 0; redirects <= MAXIMUM_REDIRECTS; redirects += 1) {
      const answer = await this.#sendOnce({ ...exchange, path }, signal);
      const location = answer.headers["location"];
      const follow = answer.status === 307 || answer.status === 308 || (exchange.method === "GET" && [301, 302, 303].includes(answer.status));
      if (answer.status < 300 || answer.status >= 400) return answer;
      if (!follow || location === undefined) throw this.#error("invalid", `${exchange.method} ${path} was answered ${answer.status}, which is no answer`);
      path = this.pathOf(location, path);
    }
    throw this.#error("invalid", `${exchange.method} ${exchange.path} is redirected in a circle`);
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
    await this.#client.destroy();
  }

  async #sendOnce(exchange: Exchange, signal: AbortSignal | undefined): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      if (signal?.aborted) throw givenUp(this.address.shown);
      await this.#spacing(signal);
      try {
        const answer = await this.#exchange(exchange, signal);
        if (answer.status !== 406 || !this.#askIdentity) return answer;
        this.#askIdentity = false;
      } catch (error) {
        const failure = error instanceof BmcError ? error : this.#errorOfTransport(exchange, error);
        const broken = error instanceof errors.SocketError || codeOf(error) === "ECONNRESET";
        if (!(broken && exchange.method === "GET" && attempt === 1)) throw failure;
      }
    }
  }

  async #spacing(signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#lane.beforeRequest(this.address.shown, signal);
    } catch (error) {
      throw error instanceof BmcError ? error : givenUp(this.address.shown);
    }
  }

  async #exchange(exchange: Exchange, signal: AbortSignal | undefined): Promise<Answer> {
    const { clock, requestTimeoutMs } = this.#timing;
    const deadline = new AbortController();
    const answered = new AbortController();
    clock.sleep(requestTimeoutMs, answered.signal).then(
      () => deadline.abort(),
      () => undefined,
    );
    let leaveAlone: number | undefined;
    try {
      const received = await this.#client.request({
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
        signal: signal === undefined ? deadline.signal : AbortSignal.any([deadline.signal, signal]),
      });
      const text = await received.body.text();
      const headers = firstValues(received.headers);
      if (received.statusCode === 503 || received.statusCode === 429) leaveAlone = retryAfterMs(headers["retry-after"], clock.now());
      return { status: received.statusCode, headers, path: exchange.path, body: parseJson(text) };
    } catch (error) {
      if (deadline.signal.aborted) throw this.#error("timeout", `${exchange.method} ${exchange.path} was not answered within ${requestTimeoutMs / 1_000} s`);
      if (signal?.aborted) throw givenUp(this.address.shown);
      throw error;
    } finally {
      answered.abort();
      this.#lane.afterRequest(leaveAlone);
    }
  }

  #error(kind: BmcError["kind"], reason: string): BmcError {
    return new BmcError(kind, this.address.shown, `BMC ${this.address.shown}: ${reason}`);
  }

  // The cause is left out on purpose: what undici attaches to an error is not ours to vouch for.
  #errorOfTransport(exchange: Exchange, error: unknown): BmcError {
    const code = codeOf(error);
    if (certificateCodes.test(code)) {
      return this.#error(
        "untrusted",
        `its certificate is refused (${code}) and no credentials were sent; give the CA that signed it, or set insecure where that is meant`,
      );
    }
    if (error instanceof errors.ResponseExceededMaxSizeError)
      return this.#error("invalid", `${exchange.method} ${exchange.path}: the answer is larger than ${MAXIMUM_ANSWER_BYTES} bytes`);
    if (error instanceof errors.HTTPParserError) return this.#error("invalid", `${exchange.method} ${exchange.path}: the answer is not HTTP`);
    return this.#error("unreachable", `it cannot be reached (${code})`);
  }
}
