/** One BMC as its users see it: an address and a TLS port of its own in front of the emulator, with faults of its own. */
import { createServer } from "node:https";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Server } from "node:https";
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

import { request } from "undici";
import { z } from "zod";

import type { KeyPair } from "../certificates.ts";
import type { Emulator } from "./emulator.ts";
import { appendToJournal } from "./journal.ts";

/** What is wrong with the BMC itself; everything absent is fine. */
export interface BmcFault {
  /** Nothing listens: connections are refused, open ones are cut. */
  dead?: boolean;
  /** Takes connections and requests and never answers. */
  hung?: boolean;
  /** Milliseconds by which each answer is late. */
  slowMs?: number;
  /** Refuses each request with 401. */
  unauthorized?: boolean;
  /** Answers each request with 503. */
  unavailable?: boolean;
  /** Refuses power actions with this status. */
  refuseReset?: number;
  /** Carries power actions out and cuts the connection in place of the answer. */
  losesAnswer?: boolean;
}

export interface FrontOptions {
  host: string;
  uuid: string;
  ip: string;
  port: number;
  certificate: KeyPair;
  username: string;
  password: string;
  emulator: Emulator;
  journalPath: string;
}

const SYSTEMS = "/redfish/v1/Systems";
const systems = z.looseObject({ Members: z.array(z.object({ "@odata.id": z.string() })) });
const resetBody = z.object({ ResetType: z.string() });

export class BmcFront {
  fault: BmcFault = {};
  readonly #options: FrontOptions;
  readonly #authorization: string;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;

  constructor(options: FrontOptions) {
    this.#options = options;
    this.#authorization = `Basic ${Buffer.from(`${options.username}:${options.password}`).toString("base64")}`;
  }

  async listen(): Promise<void> {
    if (this.#server !== undefined) return;
    const { certificate, ip, port } = this.#options;
    const server = createServer({ cert: certificate.certificate, key: certificate.key }, (incoming, response) => {
      this.#answer(incoming, response).catch(() => incoming.socket.destroy());
    });
    server.on("connection", (socket: Socket) => {
      this.#sockets.add(socket);
      socket.on("error", () => undefined);
      socket.once("close", () => this.#sockets.delete(socket));
    });
    server.on("tlsClientError", () => undefined);
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(port, ip, resolve);
    });
    this.#server = server;
  }

  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (server === undefined) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }

  async #answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) if (chunk instanceof Buffer) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    const path = (incoming.url ?? "/").replace(/(.)\/+$/, "$1");
    const isReset = incoming.method === "POST" && path.includes("/Actions/ComputerSystem.");
    if (this.fault.hung === true) return;
    if (this.fault.slowMs !== undefined) await pause(this.fault.slowMs);
    const refusal = this.#refusal(incoming, path, isReset);
    if (refusal !== undefined) {
      if (isReset) this.#journalRefused(body, refusal);
      response
        .writeHead(refusal, { "content-type": "application/json" })
        .end(JSON.stringify({ error: { code: "Base.1.0.GeneralError", message: `refused with ${refusal}` } }));
      return;
    }
    await this.#pass(incoming, path, body, isReset, response);
  }

  #refusal(incoming: IncomingMessage, path: string, isReset: boolean): number | undefined {
    if (this.fault.unavailable === true) return 503;
    const open = path === "/redfish/v1" || path === "/redfish";
    if (this.fault.unauthorized === true && !open) return 401;
    if (!open && incoming.headers.authorization !== this.#authorization) return 401;
    if (isReset && this.fault.refuseReset !== undefined) return this.fault.refuseReset;
    // One emulator serves all hosts; each BMC knows its own only. Whatever else there is of the emulator is not for its users.
    const system = path.startsWith(`${SYSTEMS}/`) ? path.slice(SYSTEMS.length + 1).split("/")[0] : undefined;
    const foreign = system !== undefined && system !== this.#options.uuid && system !== this.#options.host;
    return foreign || !path.startsWith("/redfish") ? 404 : undefined;
  }

  async #pass(incoming: IncomingMessage, path: string, body: string, isReset: boolean, response: ServerResponse): Promise<void> {
    const { emulator } = this.#options;
    const answer = await request(emulator.origin + path, {
      dispatcher: emulator.agent,
      method: incoming.method ?? "GET",
      headers: { authorization: emulator.authorization, ...(body === "" ? {} : { "content-type": incoming.headers["content-type"] ?? "application/json" }) },
      body: body === "" ? null : body,
    });
    const text = await answer.body.text();
    if (isReset && this.fault.losesAnswer === true) {
      incoming.socket.destroy();
      return;
    }
    const { location } = answer.headers;
    response.writeHead(answer.statusCode, { "content-type": "application/json", ...(typeof location === "string" ? { location } : {}) });
    response.end(path === SYSTEMS && answer.statusCode === 200 ? this.#ownSystems(text) : text);
  }

  #ownSystems(text: string): string {
    const own = `${SYSTEMS}/${this.#options.uuid}`;
    const list = systems.parse(JSON.parse(text));
    return JSON.stringify({ ...list, Members: list.Members.filter((member) => member["@odata.id"] === own), "Members@odata.count": 1 });
  }

  #journalRefused(body: string, status: number): void {
    let resetType: string | null = null;
    try {
      resetType = resetBody.safeParse(JSON.parse(body)).data?.ResetType ?? null;
    } catch {
      // Not JSON; refused all the same.
    }
    appendToJournal(this.#options.journalPath, { at: Date.now(), event: "reset", host: this.#options.host, resetType, status });
  }
}
