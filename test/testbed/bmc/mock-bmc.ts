/** A BMC of its own will, in this process, that answers as its profile and its script say; every request is kept with its time and connection. */
import { createSecureServer } from "node:http2";
import { createServer } from "node:https";
import type { AddressInfo, Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { setTimeout as pause } from "node:timers/promises";

import { z } from "zod";

import type { KeyPair } from "../certificates.ts";
import { Gatekeeper, SESSIONS, failureBody } from "./gatekeeper.ts";
import { HostPower } from "./host-power.ts";
import { clean, vary } from "./profile.ts";
import type { Answer, BmcProfile } from "./profile.ts";
import { SYSTEMS, resourcesOf } from "./resource-tree.ts";
import { parsed, send, textOf } from "./wire.ts";
import type { Incoming, Outgoing } from "./wire.ts";

export interface MockRequest {
  method: string;
  path: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Parsed JSON, or `undefined`. */
  body: unknown;
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

const resetBody = z.looseObject({ ResetType: z.string() });
const members = z.looseObject({ Members: z.array(z.unknown()) });
const KEEP_ALIVE_MS = 120_000;
const TASK = "/redfish/v1/TaskService/Tasks/1";

export class MockBmc {
  readonly requests: MockRequest[] = [];
  readonly resources: Record<string, unknown>;
  readonly profile: BmcProfile;
  readonly gatekeeper: Gatekeeper;
  readonly #rules: { rule: MockRule; calls: number }[] = [];
  readonly #hosts = new Map<string, HostPower>();
  readonly #scripted: number[];
  readonly #now: () => number;
  readonly #host: string;
  readonly #keepsLog: boolean;
  readonly #server;
  readonly #sockets = new Map<Socket, number>();
  #connections = 0;
  #reads = 0;
  #listings = 0;
  /** Part of each ETag; grows with each action. */
  #version = 1;

  constructor(options: MockBmcOptions) {
    const { profile = clean, sessions } = options;
    this.profile = sessions === undefined ? profile : vary(profile, { authentication: { sessions } });
    this.gatekeeper = new Gatekeeper(this.profile.authentication, options.username, options.password);
    this.resources = options.resources ?? resourcesOf(this.profile);
    this.#now = options.now ?? Date.now;
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

  /** The host behind a System; the first one where none is named. */
  host(id = this.profile.systems.members[0]?.id ?? "1"): HostPower {
    let host = this.#hosts.get(id);
    if (host === undefined) this.#hosts.set(id, (host = new HostPower(this.profile.power)));
    return host;
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
    if (scripted === undefined) return this.#real(request);
    if (scripted.effective === true) this.#real(request);
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

  #real(request: MockRequest): Answer {
    const { method } = request;
    const path = request.path.replace(/(.)\/$/, "$1");
    const { connection, authentication } = this.profile;
    if (connection.refusesIdentity && request.headers["accept-encoding"] === "identity") return { status: 406 };
    if (method === "POST" && path === SESSIONS) return this.gatekeeper.login(request.body, this.#now());
    const open = path === "/redfish" || path === "/redfish/v1" || (path === "/redfish/v1/SessionService" && !authentication.serviceGuarded);
    const refused = open ? undefined : this.gatekeeper.check(request.headers, this.#now());
    if (refused !== undefined) return refused;
    if (method === "DELETE" && path.startsWith(`${SESSIONS}/`)) {
      this.gatekeeper.end(path);
      return { status: 204 };
    }
    if (method === "POST" && path.includes("/Actions/")) return this.#act(request, path);
    if (method !== "GET" && method !== "HEAD") return { status: 405, headers: { allow: "GET, HEAD" } };
    return this.#read(request, path);
  }

  #read(request: MockRequest, path: string): Answer {
    const { systems } = this.profile;
    if (path === SESSIONS || path.startsWith(`${SESSIONS}/`)) return this.#sessionResource(path);
    const resource = this.resources[path];
    if (resource === undefined) return { status: 404, body: failureBody("Base.1.18.ResourceMissingAtURI") };
    if (path === SYSTEMS) return this.#collection(resource);
    const id = systemIdOf(path);
    if (id === undefined || typeof resource !== "object" || resource === null) return { status: 200, headers: { allow: "GET, HEAD" }, body: resource };
    if (systems.trailingSlash && !request.path.endsWith("/")) return { status: 404, body: failureBody("Base.1.18.ResourceMissingAtURI") };
    this.#reads += 1;
    if (this.#reads <= systems.lateBy) return { status: 404, body: failureBody("Base.1.18.ResourceMissingAtURI") };
    if (!("PowerState" in resource)) return { status: 200, body: resource };
    const tag = this.#tag();
    const power = this.host(id).shown(this.#now());
    return { status: 200, headers: { allow: "GET, HEAD", ...(tag === undefined ? {} : { etag: tag }) }, body: { ...resource, PowerState: power } };
  }

  #collection(resource: unknown): Answer {
    this.#listings += 1;
    const { reorders, trailingSlash } = this.profile.systems;
    const list = members.safeParse(resource);
    if (!list.success) return { status: 200, body: resource };
    const ordered = reorders && this.#listings % 2 === 0 ? list.data.Members.toReversed() : list.data.Members;
    const slashed = trailingSlash
      ? ordered.map((member) => ({ "@odata.id": `${z.object({ "@odata.id": z.string() }).parse(member)["@odata.id"]}/` }))
      : ordered;
    return { status: 200, headers: { allow: "GET, HEAD" }, body: { ...list.data, Members: slashed } };
  }

  #sessionResource(path: string): Answer {
    const paths = [...this.sessions.values()];
    if (path === SESSIONS) {
      const body = {
        "@odata.id": SESSIONS,
        "@odata.type": "#SessionCollection.SessionCollection",
        Name: "Sessions",
        "Members@odata.count": paths.length,
        Members: paths.map((member) => ({ "@odata.id": member })),
      };
      return { status: 200, headers: { allow: "GET, HEAD, POST" }, body };
    }
    if (!paths.includes(path)) return { status: 404, body: failureBody("Base.1.18.ResourceMissingAtURI") };
    const context = this.gatekeeper.contextOf(path);
    const body = {
      "@odata.id": path,
      "@odata.type": "#Session.v1_5_0.Session",
      Id: path.split("/").at(-1),
      Name: "Session",
      UserName: this.gatekeeper.username,
      ...(context === undefined ? {} : { Context: context }),
    };
    return { status: 200, headers: { allow: "GET, HEAD, DELETE" }, body };
  }

  #act(request: MockRequest, path: string): Answer {
    const { resets, tasks } = this.profile;
    const type = resetBody.safeParse(request.body).data?.ResetType;
    if (type === undefined) return { status: 400, body: failureBody("Base.1.18.ActionParameterMissing") };
    const untagged = this.#tagRefusal(request.headers["if-match"]);
    if (untagged !== undefined) return { status: untagged, body: failureBody("Base.1.18.PreconditionFailed") };
    if (!(resets.understood ?? resets.types).includes(type)) return { status: 400, body: failureBody("Base.1.18.ActionParameterNotSupported") };
    const host = this.host(systemIdOf(path));
    const now = this.#now();
    const refusal = host.refusal(type, now);
    if (refusal !== undefined) return { status: refusal.status, body: failureBody(refusal.messageId) };
    host.command(type, now);
    this.#version += 1;
    if (tasks.answer === "none") return { status: 204 };
    return {
      status: 202,
      headers: {
        ...(tasks.answer === "no location" ? {} : { location: TASK }),
        ...(tasks.retryAfter === undefined ? {} : { "retry-after": tasks.retryAfter }),
      },
      body:
        tasks.answer === "no location" ? undefined : { "@odata.id": TASK, "@odata.type": "#Task.v1_7_0.Task", Id: "1", Name: "Reset", TaskState: "Running" },
    };
  }

  #tag(): string | undefined {
    switch (this.profile.tags.form) {
      case "none":
        return undefined;
      case "strong":
        return `"${this.#version}"`;
      case "weak":
        return `W/"${this.#version}"`;
      case "doubled":
        return `""${this.#version}""`;
      case "empty":
        return '""';
    }
  }

  #tagRefusal(given: string | string[] | undefined): number | undefined {
    switch (this.profile.tags.wants) {
      case "anything":
        return undefined;
      case "a tag":
        return given === undefined ? 428 : given === this.#tag() ? undefined : 412;
      case "a strong tag":
        return given === `"${this.#version}"` ? undefined : 412;
      case "no tag":
        return given === undefined ? undefined : 412;
    }
  }
}

function systemIdOf(path: string): string | undefined {
  return path.startsWith(`${SYSTEMS}/`) ? path.slice(SYSTEMS.length + 1).split("/")[0] : undefined;
}
