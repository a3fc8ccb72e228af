/** `/healthz`, `/readyz` and `/metrics` over HTTP. */
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** `problems` are empty where all is well; `notes` are told either way. */
export interface HealthReport {
  problems: readonly string[];
  notes?: Readonly<Record<string, unknown>>;
}

export interface HealthSources {
  /** Whether this process should be restarted. */
  live(): HealthReport;
  /** Whether it does its work, or stands by to do it. */
  ready(): HealthReport;
  metrics(): string;
}

function answer(response: ServerResponse, report: HealthReport): void {
  response.writeHead(report.problems.length === 0 ? 200 : 503, { "content-type": "application/json" });
  response.end(`${JSON.stringify({ ok: report.problems.length === 0, problems: report.problems, ...report.notes })}\n`);
}

export class HealthServer {
  readonly #server: Server;

  constructor(sources: HealthSources) {
    this.#server = createServer((request, response) => {
      const path = (request.url ?? "/").split("?")[0];
      if (request.method !== "GET") response.writeHead(405).end();
      else if (path === "/healthz") answer(response, sources.live());
      else if (path === "/readyz") answer(response, sources.ready());
      else if (path === "/metrics") response.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(sources.metrics());
      else response.writeHead(404).end();
    });
    this.#server.requestTimeout = 5_000;
    this.#server.keepAliveTimeout = 1_000;
  }

  /** Resolves with the port, which differs from the one asked for only where that is 0. */
  async listen(address: string, port: number): Promise<number> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, address, () => {
        this.#server.off("error", reject);
        resolve();
      });
    });
    const bound: AddressInfo | string | null = this.#server.address();
    return typeof bound === "object" && bound !== null ? bound.port : port;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
