/** A BMC of its own will, in this process, that answers as its profile and its script say; every request is kept with its time and connection. */
import { createSecureServer } from "node:http2";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { setTimeout as pause } from "node:timers/promises";

import type { KeyPair } from "../certificates.ts";
import { Behaviour, resetBody } from "./behaviour.ts";
import type { Asked } from "./behaviour.ts";
import { SESSIONS } from "./gatekeeper.ts";
import type { Gatekeeper } from "./gatekeeper.ts";
import type { HostPower } from "./host-power.ts";
import { clean, vary } from "./profile.ts";
import type { Answer, BmcProfile } from "./profile.ts";
import { parsed, send, textOf } from "./wire.ts";
import type { Incoming, Outgoing } from "./wire.ts";

export interface MockRequest extends Asked {
  /** Milliseconds since the epoch, by the BMC's clock without its skew. */
  at: number;
  /** When it was answered; `undefined` while it is not. */
  answeredAt?: number;
  status?: number;
  /** Counts the connections in the order in which they were opened. */
  connection: number;
}

export type MockAnswer = Answer;

/** May be called for each request; `undefined` leaves the request to the rule, script or resource behind it. */
export type MockRule = (request: MockRequest, nth: number) => MockAnswer | undefined;

export interface MockBmcOptions {
  certificate: KeyPair;
  username: string;
  password: string;
  /** The clean one where absent. */
  profile?: BmcProfile;
  /** Overrides whether sessions are offered. */
  sessions?: boolean;
  /** What there is, by path, in place of the profile's; power and sessions are the mock's own all the same. */
  resources?: Record<string, unknown>;
  /** `Date.now` unless given. */
  now?: () => number;
  /** Whether requests are kept; they are unless this is false. */
  keepsLog?: boolean;
  /** Address to listen on; 127.0.0.1 unless given. */
  host?: string;
}

const KEEP_ALIVE_MS = 120_000;

export class MockBmc {
  readonly requests: MockRequest[] = [];
  readonly #behaviour: Behaviour;
  readonly #rules: { rule: MockRule; calls: number }[] = [];
  readonly #scripted: number[];
  readonly #now: () => number;
  readonly #host: string;
  readonly #keepsLog: boolean;
  readonly #server;
  readonly #sockets = new Map<Socket, number>();
  #connections = 0;

  constructor(options: MockBmcOptions) {
    const { profile = clean, sessions } = options;
    this.#now = options.now ?? Date.now;
    this.#behaviour = new Behaviour({
      ...options,
      profile: sessions === undefined ? profile : vary(profile, { authentication: { sessions } }),
      now: this.#now,
    });
    this.#keepsLog = options.keepsLog ?? true;
    this.#host = options.host ?? "127.0.0.1";
    this.#scripted = this.profile.script.map(() => 0);
    const tls = {
      cert: options.certificate.certificate,
      key: options.certificate.key,
      ...(this.profile.tls.old ? { minVersion: "TLSv1.1" as const, maxVersion: "TLSv1.1" as const, ciphers: "DEFAULT:@SECLEVEL=0" } : {}),
    };
    const serve = (incoming: Incoming, response: Outgoing): void => void this.#serve(incoming, response);
    this.#server = this.profile.connection.http === "2" ? createSecureServer({ ...tls, allowHTTP1: false }, serve) : createServer(tls, serve);
    // Node's own five seconds would make a client that is slow for once open its connection anew.
    if ("keepAliveTimeout" in this.#server) this.#server.keepAliveTimeout = KEEP_ALIVE_MS;
    this.#server.on("secureConnection", (socket: TLSSocket) => {
      this.#sockets.set(socket, (this.#connections += 1));
      socket.once("close", () => this.#sockets.delete(socket));
      socket.on("error", () => undefined);
    });
    this.#server.on("tlsClientError", () => undefined);
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(0, this.#host, resolve);
    });
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.dropConnections();
    await closed;
  }

  /** Cuts all connections, as a BMC does that restarts. */
  dropConnections(): void {
    for (const socket of this.#sockets.keys()) socket.destroy();
  }

  get origin(): string {
    return `https://${this.#host}:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Connections opened so far. */
  get connections(): number {
    return this.#connections;
  }

  /** Connections that are open now. */
  get openConnections(): number {
    return this.#sockets.size;
  }

  /** By token: path. */
  get sessions(): Map<string, string> {
    return this.gatekeeper.sessions;
  }

  get profile(): BmcProfile {
    return this.#behaviour.profile;
  }

  get gatekeeper(): Gatekeeper {
    return this.#behaviour.gatekeeper;
  }

  /** What there is, by path; may be changed. */
  get resources(): Record<string, unknown> {
    return this.#behaviour.resources;
  }

  /** The host behind a System; the first one where none is named. */
  host(id?: string): HostPower {
    return this.#behaviour.host(id);
  }

  /** What the BMC shows of the first host. */
  get power(): unknown {
    return this.host().shown(this.#now());
  }

  /** Sets the true power by hand, or what is shown in its place. */
  set power(value: unknown) {
    const host = this.host();
    host.shownInstead = value === "On" || value === "Off" ? undefined : { value };
    if (value === "On" || value === "Off") host.press(value, this.#now());
  }

  /** The latest rule is asked first. */
  rule(rule: MockRule): void {
    this.#rules.unshift({ rule, calls: 0 });
  }

  /** Answers the first `times` requests of that method whose path ends so. */
  answer(method: string, pathEnd: string, answer: MockAnswer, times = Number.POSITIVE_INFINITY): void {
    let left = times;
    this.rule((request) => (request.method === method && request.path.endsWith(pathEnd) && left-- > 0 ? answer : undefined));
  }

  /** `METHOD path` of each request, in order. */
  get log(): string[] {
    return this.requests.map(({ method, path }) => `${method} ${path}`);
  }

  /** The actions that were asked for, in order. */
  get actions(): MockRequest[] {
    return this.requests.filter(({ method, path }) => method === "POST" && path.includes("/Actions/"));
  }

  /** The reset types that were asked for, in order. */
  get resets(): unknown[] {
    return this.actions.map(({ body }) => resetBody.safeParse(body).data?.ResetType);
  }

  async #serve(incoming: Incoming, response: Outgoing): Promise<void> {
    // A request that breaks off has nobody left to answer.
    const text = await textOf(incoming).catch(() => undefined);
    if (text === undefined) return;
    const request = this.#note(incoming, text);
    const { latencyMs } = this.profile.connection;
    if (latencyMs > 0) await pause(latencyMs);
    const answer = this.#answerTo(request);
    await answer.after;
    request.answeredAt = this.#now();
    request.status = answer.status;
    send(answer, incoming, response, { ...this.#headers(request, answer), ...answer.headers });
  }

  #note(incoming: Incoming, text: string): MockRequest {
    const socket = "stream" in incoming ? (incoming.stream.session?.socket as Socket | undefined) : incoming.socket;
    const request: MockRequest = {
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      headers: incoming.headers,
      body: parsed(text),
      at: this.#now(),
      connection: this.#connectionOf(socket),
    };
    if (this.#keepsLog) this.requests.push(request);
    return request;
  }

  #connectionOf(socket: Socket | undefined): number {
    const known = socket === undefined ? undefined : this.#sockets.get(socket);
    if (known !== undefined) return known;
    // HTTP/2 hands out a stand-in for its socket: told apart by its port.
    for (const [candidate, number] of this.#sockets) if (candidate.remotePort === socket?.remotePort) return number;
    return 0;
  }

  #headers(request: MockRequest, answer: Answer): Record<string, string> {
    const { connection, clockSkewMs } = this.profile;
    const renewed = answer.status < 400 && !request.path.startsWith(SESSIONS) ? this.gatekeeper.renewed(request.headers["x-auth-token"]) : undefined;
    return {
      ...(typeof answer.body === "string" ? {} : { "content-type": "application/json; charset=utf-8" }),
      "odata-version": "4.0",
      date: new Date(this.#now() + clockSkewMs).toUTCString(),
      ...(connection.closes ? { connection: "close" } : {}),
      ...(renewed === undefined ? {} : { "x-auth-token": renewed }),
    };
  }

  #answerTo(request: MockRequest): Answer {
    const scripted = this.#ruled(request) ?? this.#fromScript(request);
    if (scripted === undefined) return this.#behaviour.answerTo(request);
    if (scripted.effective === true) this.#behaviour.answerTo(request);
    return scripted;
  }

  #ruled(request: MockRequest): Answer | undefined {
    for (const entry of this.#rules) {
      const answer = entry.rule(request, entry.calls + 1);
      if (answer !== undefined) {
        entry.calls += 1;
        return answer;
      }
    }
    return undefined;
  }

  #fromScript(request: MockRequest): Answer | undefined {
    for (const [index, { method, pathEnd, nth, answer }] of this.profile.script.entries()) {
      if (request.method !== method || !request.path.endsWith(pathEnd)) continue;
      const count = (this.#scripted[index] = (this.#scripted[index] ?? 0) + 1);
      if (nth === undefined || nth.includes(count)) return answer;
    }
    return undefined;
  }
}
