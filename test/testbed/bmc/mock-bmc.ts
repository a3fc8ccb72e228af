/** A BMC of a few lines, in this process, that answers as it is told to; every request is kept with its time and connection. */
import { createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";

import type { KeyPair } from "../certificates.ts";

export interface MockRequest {
  method: string;
  path: string;
  headers: IncomingMessage["headers"];
  /** Parsed JSON, or `undefined`. */
  body: unknown;
  /** Milliseconds since the epoch. */
  at: number;
  /** Counts the connections in the order in which they were opened. */
  connection: number;
}

export interface MockAnswer {
  status: number;
  headers?: Record<string, string>;
  /** A string is sent as it is, anything else as JSON. */
  body?: unknown;
  /** What happens to the connection in place of an answer. */
  instead?: "reset" | "never";
}

/** May be called for each request; `undefined` leaves the request to the rule or the resource behind it. */
export type MockRule = (request: MockRequest, nth: number) => MockAnswer | undefined;

export interface MockBmcOptions {
  certificate: KeyPair;
  username: string;
  password: string;
  /** Whether the service root offers sessions. */
  sessions?: boolean;
  /** What there is, by path; the System's power and sessions are kept by the mock itself. */
  resources?: Record<string, unknown>;
  /** `Date.now` unless given. */
  now?: () => number;
}

const SYSTEMS = "/redfish/v1/Systems";
const SESSIONS = "/redfish/v1/SessionService/Sessions";

export class MockBmc {
  readonly requests: MockRequest[] = [];
  /** By token: path. */
  readonly sessions = new Map<string, string>();
  readonly resources: Record<string, unknown>;
  power: unknown = "On";
  #rules: { rule: MockRule; calls: number }[] = [];
  #connections = 0;
  #logins = 0;
  readonly #options: MockBmcOptions;
  readonly #server;
  readonly #sockets = new Map<Socket, number>();

  constructor(options: MockBmcOptions) {
    this.#options = options;
    this.resources = options.resources ?? standardResources(options.sessions === true);
    this.#server = createServer(
      { cert: options.certificate.certificate, key: options.certificate.key },
      (request, response) => void this.#serve(request, response),
    );
    this.#server.on("secureConnection", (socket) => {
      this.#sockets.set(socket, (this.#connections += 1));
      socket.once("close", () => this.#sockets.delete(socket));
      socket.on("error", () => undefined);
    });
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  get origin(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
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

  /** The reset types that were asked for, in order. */
  get resets(): unknown[] {
    return this.requests
      .filter(({ method, path }) => method === "POST" && path.includes("/Actions/"))
      .map(({ body }) => (body as { ResetType?: unknown } | undefined)?.ResetType);
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of incoming) chunks.push(chunk as Buffer);
    } catch {
      return;
    }
    const text = Buffer.concat(chunks).toString();
    const request: MockRequest = {
      method: incoming.method ?? "",
      path: incoming.url ?? "",
      headers: incoming.headers,
      body: text === "" ? undefined : (JSON.parse(text) as unknown),
      at: (this.#options.now ?? Date.now)(),
      connection: this.#sockets.get(incoming.socket) ?? 0,
    };
    this.requests.push(request);
    const answer = this.#scripted(request) ?? this.#real(request);
    if (answer.instead === "reset") incoming.socket.destroy();
    if (answer.instead !== undefined) return;
    const json = typeof answer.body !== "string";
    response.writeHead(answer.status, { ...(json ? { "content-type": "application/json" } : {}), ...answer.headers });
    response.end(answer.body === undefined ? undefined : json ? JSON.stringify(answer.body) : answer.body);
  }

  #scripted(request: MockRequest): MockAnswer | undefined {
    for (const entry of this.#rules) {
      const answer = entry.rule(request, entry.calls + 1);
      if (answer !== undefined) {
        entry.calls += 1;
        return answer;
      }
    }
    return undefined;
  }

  #real(request: MockRequest): MockAnswer {
    const { method, body } = request;
    const path = request.path.replace(/(.)\/$/, "$1");
    if (method === "POST" && path === SESSIONS) return this.#login(body);
    if (path !== "/redfish/v1" && !this.#authorized(request)) return { status: 401 };
    if (method === "DELETE") {
      for (const [token, session] of this.sessions) if (session === path) this.sessions.delete(token);
      return { status: 204 };
    }
    if (method === "POST" && path.includes("/Actions/")) {
      const type = (body as { ResetType?: string }).ResetType;
      this.power = type === "On" ? "On" : "Off";
      return { status: 204 };
    }
    const resource = this.resources[path];
    if (resource === undefined) return { status: 404 };
    if (typeof resource === "object" && resource !== null && "PowerState" in resource) return { status: 200, body: { ...resource, PowerState: this.power } };
    return { status: 200, body: resource };
  }

  #login(body: unknown): MockAnswer {
    const { UserName, Password } = body as { UserName?: string; Password?: string };
    if (UserName !== this.#options.username || Password !== this.#options.password) return { status: 401 };
    this.#logins += 1;
    const path = `${SESSIONS}/${this.#logins}`;
    this.sessions.set(`token-${this.#logins}`, path);
    return { status: 201, headers: { "x-auth-token": `token-${this.#logins}`, location: path }, body: {} };
  }

  #authorized({ headers }: MockRequest): boolean {
    const token = headers["x-auth-token"];
    if (typeof token === "string") return this.sessions.has(token);
    const { username, password } = this.#options;
    return headers.authorization === `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
  }
}

/** One System as most BMCs show it. */
export function systemResource(id: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    "@odata.id": `${SYSTEMS}/${id}`,
    "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
    Id: id,
    UUID: `00000000-0000-4000-8000-${Buffer.from(id).toString("hex").padStart(12, "0").slice(-12)}`,
    Manufacturer: "Acme",
    Model: "M1",
    PowerState: "On",
    Actions: {
      "#ComputerSystem.Reset": {
        target: `${SYSTEMS}/${id}/Actions/ComputerSystem.Reset`,
        "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "ForceRestart"],
      },
    },
    ...fields,
  };
}

/** Resources of a BMC with the given Systems. */
export function standardResources(sessions: boolean, ids: readonly string[] = ["1"]): Record<string, unknown> {
  return {
    "/redfish/v1": {
      "@odata.id": "/redfish/v1/",
      RedfishVersion: "1.15.0",
      Vendor: "Acme",
      Systems: { "@odata.id": SYSTEMS },
      ...(sessions ? { Links: { Sessions: { "@odata.id": SESSIONS } } } : {}),
    },
    [SYSTEMS]: { Members: ids.map((id) => ({ "@odata.id": `${SYSTEMS}/${id}` })) },
    ...Object.fromEntries(ids.map((id) => [`${SYSTEMS}/${id}`, systemResource(id)])),
  };
}
