/** A BMC that answers some of its requests with whatever it is told to, byte by byte; without TLS, so that many cases fit into a minute. */
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";

/** What is done to one answer. */
export type Spoiling =
  | { what: "body"; body: string }
  | { what: "field"; path: readonly string[]; value: unknown }
  | { what: "status"; status: number }
  | { what: "header"; name: string; value: string }
  | { what: "raw"; bytes: string }
  | { what: "cut"; share: number }
  | { what: "stall"; share: number }
  | { what: "slow"; pieces: number };

export interface Seen {
  method: string;
  path: string;
  body: string;
  /** Whether the answer said in so many words that nothing was done, or sent the request elsewhere. */
  refused: boolean;
}

const SYSTEM = "/redfish/v1/Systems/1";
const SESSIONS = "/redfish/v1/SessionService/Sessions";
const refusals = new Set([301, 302, 303, 307, 308, 400, 401, 406, 409, 412, 428]);

const resources: Record<string, unknown> = {
  "/redfish/v1/": { RedfishVersion: "1.17.0", Systems: { "@odata.id": "/redfish/v1/Systems" }, Links: { Sessions: { "@odata.id": SESSIONS } } },
  "/redfish/v1/Systems": { Members: [{ "@odata.id": SYSTEM }] },
  [SYSTEM]: {
    "@odata.id": SYSTEM,
    "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
    "@odata.etag": 'W/"1"',
    UUID: "00000000-0000-4000-8000-000000000001",
    PowerState: "On",
    Links: { ManagedBy: [{ "@odata.id": "/redfish/v1/Managers/1" }] },
    Actions: { "#ComputerSystem.Reset": { target: `${SYSTEM}/Actions/ComputerSystem.Reset`, "@Redfish.ActionInfo": `${SYSTEM}/ResetActionInfo` } },
  },
  [`${SYSTEM}/ResetActionInfo`]: { Parameters: [{ Name: "ResetType", AllowableValues: ["On", "ForceOff", "PowerCycle"] }] },
  "/redfish/v1/Managers/1": { FirmwareVersion: "1" },
};

interface Plain {
  status: number;
  headers: Record<string, string>;
  body: unknown;
}

function plainAnswer(method: string, path: string): Plain {
  if (method === "POST" && path === SESSIONS) return { status: 201, headers: { "X-Auth-Token": "secret-token", Location: `${SESSIONS}/1` }, body: {} };
  if (method !== "GET") return { status: 204, headers: {}, body: undefined };
  const body = resources[path];
  return { status: body === undefined ? 404 : 200, headers: {}, body };
}

function withField(body: unknown, [first, ...rest]: readonly string[], value: unknown): unknown {
  if (first === undefined) return value;
  if (Array.isArray(body)) return body.map((item: unknown) => withField(item, rest, value));
  const fields: Record<string, unknown> = typeof body === "object" && body !== null ? { ...body } : {};
  return { ...fields, [first]: withField(fields[first], rest, value) };
}

export class HostileBmc {
  seen: Seen[] = [];
  /** For the requests in their order; what is not named is answered as it should be. */
  spoilings: readonly (Spoiling | undefined)[] = [];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor() {
    this.#server = createServer((socket) => this.#serve(socket));
  }

  async start(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.reset();
    await closed;
  }

  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Forgets the case before. */
  reset(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.seen = [];
    this.spoilings = [];
  }

  #serve(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    socket.once("close", () => this.#sockets.delete(socket));
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      for (;;) {
        const end = received.indexOf("\r\n\r\n");
        if (end < 0) return;
        const head = received.slice(0, end);
        const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
        if (received.length < end + 4 + length) return;
        const [method = "", path = ""] = head.split(" ");
        const body = received.slice(end + 4, end + 4 + length);
        received = received.slice(end + 4 + length);
        this.#answer(socket, { method, path, body });
      }
    });
  }

  #answer(socket: Socket, { method, path, body }: Omit<Seen, "refused">): void {
    const spoiling = this.spoilings[this.seen.length];
    const plain = plainAnswer(method, path);
    const seen: Seen = { method, path, body, refused: spoiling?.what === "status" && refusals.has(spoiling.status) };
    this.seen.push(seen);
    if (spoiling?.what === "raw") {
      socket.write(spoiling.bytes, "latin1");
      return;
    }
    const text = textOf(plain, spoiling);
    if (spoiling?.what === "slow") {
      writeSlowly(socket, text, spoiling.pieces);
      return;
    }
    const isPart = spoiling?.what === "cut" || spoiling?.what === "stall";
    socket.write(isPart ? text.slice(0, Math.floor(text.length * spoiling.share)) : text, "latin1");
    if (spoiling?.what === "cut") socket.end();
  }
}

function textOf(plain: Plain, spoiling: Spoiling | undefined): string {
  const status = spoiling?.what === "status" ? spoiling.status : plain.status;
  const content = spoiling?.what === "field" ? withField(plain.body, spoiling.path, spoiling.value) : plain.body;
  const body = spoiling?.what === "body" ? spoiling.body : content === undefined ? "" : JSON.stringify(content);
  const bytes = Buffer.from(body).toString("latin1");
  const headers: Record<string, string> = { "Content-Type": "application/json", "Content-Length": String(bytes.length), ...plain.headers };
  if (spoiling?.what === "header") headers[spoiling.name] = spoiling.value;
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`);
  return `HTTP/1.1 ${status} Whatever\r\n${lines.join("\r\n")}\r\n\r\n${bytes}`;
}

function writeSlowly(socket: Socket, text: string, pieces: number): void {
  const size = Math.max(1, Math.ceil(text.length / pieces));
  const next = (from: number): void => {
    if (from >= text.length || socket.destroyed) return;
    socket.write(text.slice(from, from + size), "latin1");
    setImmediate(() => next(from + size));
  };
  next(0);
}
