/** An API server's double: TLS on both sides, every client passed on as itself, with faults to order and a journal of what was asked. */
import { createServer, Agent, request as httpsRequest } from "node:https";
import type { IncomingHttpHeaders, IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { TLSSocket } from "node:tls";

import { z } from "zod";

import { issueCertificate } from "./certificates.ts";
import type { KeyPair } from "./certificates.ts";
import { matches, RuleBook } from "./fault-rules.ts";
import type { Client, Match, ProxiedRequest, Rule } from "./fault-rules.ts";
import { freePort, releasePorts } from "./ports.ts";
import { requestInfo } from "./request-info.ts";

export interface FaultProxyOptions {
  /** `https://127.0.0.1:<port>` of the API server. */
  upstream: string;
  /** Signs the certificates of the API server, of the proxy and of clients. */
  authority: KeyPair;
  /** Signs the certificate with which the proxy speaks for clients that showed it one of theirs. */
  frontProxyAuthority: KeyPair;
}

export interface FaultProxy {
  /** `https://127.0.0.1:<port>`, with the trust and the credentials of the API server itself. */
  readonly server: string;
  /** Every request since the start, in the order of arrival. */
  readonly requests: readonly ProxiedRequest[];
  count(match: Match): number;
  /** Orders a fault; returns what calls it off again. */
  add(rule: Rule): () => void;
  /** Cuts the open watches that match; returns how many. */
  cutWatches(match?: Match): number;
  close(): Promise<void>;
}

const tokenClaims = z.looseObject({
  sub: z.string(),
  "kubernetes.io": z.looseObject({ pod: z.looseObject({ name: z.string() }).optional() }).optional(),
});
const reasons: Record<number, string> = { 409: "Conflict", 429: "TooManyRequests", 500: "InternalError", 503: "ServiceUnavailable" };
const HOP_BY_HOP = new Set(["host", "connection", "keep-alive", "transfer-encoding", "content-length", "upgrade"]);

function listOf(value: string | string[] | undefined): string[] {
  return value === undefined ? [] : Array.isArray(value) ? value : [value];
}

/** What the client says of itself; whether it is true is left to the API server, certificates apart. */
function clientOf(request: IncomingMessage): Client & { certified: boolean } {
  const userAgent = request.headers["user-agent"] ?? "";
  const { socket } = request;
  // A resumed session of a client without a certificate counts as authorized too.
  const certificate = socket instanceof TLSSocket && socket.authorized ? socket.getPeerX509Certificate() : undefined;
  if (certificate !== undefined) {
    const { subject } = certificate.toLegacyObject();
    return { user: listOf(subject.CN)[0] ?? "", groups: listOf(subject.O), userAgent, certified: true };
  }
  const payload = /^Bearer [^.]+\.([^.]+)\./.exec(request.headers.authorization ?? "")?.[1];
  if (payload !== undefined) {
    const claims = tokenClaims.safeParse(JSON.parse(Buffer.from(payload, "base64url").toString("utf8")));
    if (claims.success) {
      const pod = claims.data["kubernetes.io"]?.pod?.name;
      return { user: claims.data.sub, groups: [], userAgent, certified: false, ...(pod === undefined ? {} : { pod }) };
    }
  }
  return { user: "system:anonymous", groups: [], userAgent, certified: false };
}

function withoutHopByHop(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !HOP_BY_HOP.has(name)));
}

function passedOn(headers: IncomingHttpHeaders): OutgoingHttpHeaders {
  // A client must not be able to speak for another.
  return Object.fromEntries(Object.entries(withoutHopByHop(headers)).filter(([name]) => !name.startsWith("x-remote-")));
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(Buffer.isBuffer(chunk) ? chunk : Buffer.from(String(chunk)));
  return Buffer.concat(chunks);
}

interface OpenWatch {
  request: ProxiedRequest;
  answer: ServerResponse;
  upstream: IncomingMessage;
}

class Proxy implements FaultProxy {
  readonly server: string;
  readonly requests: ProxiedRequest[] = [];
  readonly #rules = new RuleBook();
  readonly #watches = new Set<OpenWatch>();
  readonly #upstream: URL;
  readonly #server: ReturnType<typeof createServer>;
  /** With the proxy's own certificate, for clients that have one, and without. */
  readonly #agents: { certified: Agent; plain: Agent };
  readonly #port: number;

  constructor(options: FaultProxyOptions, port: number, serving: KeyPair, speaking: KeyPair) {
    const ca = options.authority.certificate;
    this.#port = port;
    this.server = `https://127.0.0.1:${port}`;
    this.#upstream = new URL(options.upstream);
    this.#agents = { certified: new Agent({ keepAlive: true, ca, cert: speaking.certificate, key: speaking.key }), plain: new Agent({ keepAlive: true, ca }) };
    this.#server = createServer({ cert: serving.certificate, key: serving.key, ca, requestCert: true, rejectUnauthorized: false }, (request, answer) => {
      this.#handle(request, answer).catch(() => answer.destroy());
    });
    // Watches last as long as their client wants.
    this.#server.requestTimeout = 0;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(this.#port, "127.0.0.1", resolve);
    });
  }

  count(match: Match): number {
    return this.requests.filter((request) => matches(match, request)).length;
  }

  add(rule: Rule): () => void {
    const remove = this.#rules.add(rule);
    this.#silence();
    return () => {
      remove();
      this.#silence();
    };
  }

  cutWatches(match?: Match): number {
    const cut = [...this.#watches].filter(({ request }) => matches(match, request));
    for (const { request, answer } of cut) {
      request.outcome = "cut";
      answer.destroy();
    }
    return cut.length;
  }

  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    this.#agents.certified.destroy();
    this.#agents.plain.destroy();
    await closed;
    releasePorts([this.#port]);
  }

  #silence(): void {
    for (const { request, upstream } of this.#watches) {
      if (this.#rules.silences(request)) upstream.pause();
      else upstream.resume();
    }
  }

  async #handle(incoming: IncomingMessage, answer: ServerResponse): Promise<void> {
    const method = incoming.method ?? "GET";
    const path = incoming.url ?? "/";
    const { certified, ...client } = clientOf(incoming);
    const request: ProxiedRequest = { ...client, ...requestInfo(method, path), at: Date.now(), method, path };
    this.requests.push(request);
    const body = await bodyOf(incoming);
    const rule = this.#rules.meet(request);
    const fault = rule?.fault;
    const cutAfter = fault?.kind === "cut" && fault.when === "after";
    if (!cutAfter) await rule?.act?.(request);
    if (fault?.kind === "answer") {
      this.#answer(request, answer, fault.status, fault.retryAfterSeconds);
      return;
    }
    if (fault?.kind === "blackHole") {
      request.outcome = "held";
      return;
    }
    if (fault?.kind === "cut" && fault.when === "before") {
      request.outcome = "cut";
      answer.destroy();
      return;
    }
    if (fault?.kind === "delay") await new Promise((resolve) => setTimeout(resolve, fault.milliseconds));
    if (answer.destroyed) {
      request.outcome = "cut";
      return;
    }
    const upstream = await this.#ask(request, certified, incoming.headers, body, answer);
    if (cutAfter) {
      await bodyOf(upstream);
      await rule?.act?.(request);
      request.outcome = "cut";
      answer.destroy();
      return;
    }
    this.#relay(request, upstream, answer);
  }

  async #ask(request: ProxiedRequest, certified: boolean, headers: IncomingHttpHeaders, body: Buffer, answer: ServerResponse): Promise<IncomingMessage> {
    const speaksFor = certified ? { "x-remote-user": request.user, "x-remote-group": [...request.groups] } : {};
    return new Promise((resolve, reject) => {
      const outgoing = httpsRequest({
        host: this.#upstream.hostname,
        port: this.#upstream.port,
        method: request.method,
        path: request.path,
        agent: certified ? this.#agents.certified : this.#agents.plain,
        headers: { ...passedOn(headers), ...speaksFor, ...(body.length === 0 ? {} : { "content-length": body.length }) },
      });
      outgoing.once("response", resolve);
      outgoing.once("error", reject);
      answer.once("close", () => {
        if (!answer.writableFinished) outgoing.destroy();
      });
      outgoing.end(body);
    });
  }

  #relay(request: ProxiedRequest, upstream: IncomingMessage, answer: ServerResponse): void {
    request.outcome = upstream.statusCode ?? 502;
    answer.writeHead(request.outcome, withoutHopByHop(upstream.headers));
    answer.flushHeaders();
    upstream.once("error", () => answer.destroy());
    if (request.verb !== "watch") {
      upstream.pipe(answer);
      return;
    }
    // Not piped: a pipe resumes a paused source by itself.
    upstream.on("data", (chunk: Buffer) => answer.write(chunk));
    upstream.once("end", () => answer.end());
    const watch: OpenWatch = { request, answer, upstream };
    this.#watches.add(watch);
    answer.once("close", () => this.#watches.delete(watch));
    this.#silence();
  }

  #answer(request: ProxiedRequest, answer: ServerResponse, status: number, retryAfterSeconds: number | undefined): void {
    request.outcome = status;
    const retry = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
    answer.writeHead(status, { "content-type": "application/json", ...retry });
    answer.end(
      JSON.stringify({
        kind: "Status",
        apiVersion: "v1",
        status: "Failure",
        message: "ordered by the fault proxy",
        reason: reasons[status],
        code: status,
        details: {},
      }),
    );
  }
}

export async function startFaultProxy(options: FaultProxyOptions): Promise<FaultProxy> {
  const [port, serving, speaking] = await Promise.all([
    freePort(),
    issueCertificate(options.authority, { commonName: "fault-proxy", dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"] }),
    issueCertificate(options.frontProxyAuthority, { commonName: "front-proxy-client" }),
  ]);
  const proxy = new Proxy(options, port, serving, speaking);
  await proxy.listen();
  return proxy;
}
