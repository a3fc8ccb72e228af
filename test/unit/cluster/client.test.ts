import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

import { ClusterClient } from "../../../provider/cluster/client.ts";
import { ClusterError } from "../../../provider/cluster/errors.ts";
import type { ClusterErrorKind } from "../../../provider/cluster/errors.ts";
import { configMaps, nodes } from "../../../provider/cluster/kinds.ts";

type Handler = (request: IncomingMessage, body: string, response: ServerResponse) => void;

const settings = { namespace: "racks", name: "settings" };

describe("the cluster client", () => {
  let server: Server;
  let client: ClusterClient;
  let handler: Handler;
  const seen: string[] = [];

  beforeEach(async () => {
    seen.length = 0;
    server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on("data", (chunk: Buffer) => chunks.push(chunk));
      request.on("end", () => {
        seen.push(`${request.method ?? ""} ${request.url ?? ""}`);
        handler(request, Buffer.concat(chunks).toString(), response);
      });
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    client = new ClusterClient({
      server: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
      authorize: () => Promise.resolve({ Authorization: "Bearer t" }),
    });
  });

  afterEach(async () => {
    await client.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });

  function answer(status: number, body: unknown, headers: Record<string, string> = {}): void {
    handler = (_request, _body, response) => response.writeHead(status, headers).end(typeof body === "string" ? body : JSON.stringify(body));
  }

  async function kindOf(call: Promise<unknown>): Promise<ClusterError> {
    const error: unknown = await call.then(
      () => undefined,
      (reason: unknown) => reason,
    );
    assert.ok(error instanceof ClusterError, `expected a ClusterError, got ${String(error)}`);
    return error;
  }

  it("builds paths of namespaced and cluster-scoped kinds and sends its credentials", async () => {
    let authorization: string | undefined;
    handler = (request, _body, response) => {
      authorization = request.headers.authorization;
      response.end(JSON.stringify({ metadata: { name: "x" } }));
    };
    await client.get(configMaps, settings);
    await client.get(nodes, { name: "edge-w1" });
    assert.deepEqual(seen, ["GET /api/v1/namespaces/racks/configmaps/settings", "GET /api/v1/nodes/edge-w1"]);
    assert.equal(authorization, "Bearer t");
  });

  it("refuses a namespaced object without its namespace before anything is sent", async () => {
    await assert.rejects(client.get(configMaps, { name: "settings" }), /ConfigMap settings: the namespace is missing/);
    assert.deepEqual(seen, []);
  });

  it("follows the pages of a list to the end and gives each item its kind", async () => {
    handler = (request, _body, response) => {
      const url = new URL(request.url ?? "", "http://host");
      const second = url.searchParams.get("continue") === "more";
      const page = second
        ? { metadata: { resourceVersion: "8" }, items: [{ metadata: { name: "b" } }] }
        : { metadata: { resourceVersion: "7", continue: "more" }, items: [{ metadata: { name: "a" } }] };
      response.end(JSON.stringify(page));
    };
    const list = await client.list(nodes);
    assert.deepEqual(
      list.items.map((item) => [item.apiVersion, item.kind, item.metadata.name]),
      [
        ["v1", "Node", "a"],
        ["v1", "Node", "b"],
      ],
    );
    assert.equal(list.resourceVersion, "8");
  });

  it("asks for strict field validation when it applies", async () => {
    let contentType: string | undefined;
    handler = (request, _body, response) => {
      contentType = request.headers["content-type"];
      response.end(JSON.stringify({ metadata: { name: "settings" } }));
    };
    await client.apply(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: settings, data: {} }, { fieldManager: "pulumi-baremetal" });
    assert.deepEqual(seen, ["PATCH /api/v1/namespaces/racks/configmaps/settings?fieldManager=pulumi-baremetal&fieldValidation=Strict"]);
    assert.equal(contentType, "application/apply-patch+yaml");
  });

  const status = (code: number, reason: string, details: object = { name: "settings", kind: "configmaps" }): object => ({
    kind: "Status",
    code,
    reason,
    message: reason,
    details,
  });
  const table: [number, unknown, ClusterErrorKind][] = [
    [400, status(400, "BadRequest"), "invalid"],
    [401, status(401, "Unauthorized"), "unauthorized"],
    [403, status(403, "Forbidden"), "forbidden"],
    [404, status(404, "NotFound"), "notFound"],
    [404, status(404, "NotFound", {}), "kindNotServed"],
    [404, "404 page not found\n", "kindNotServed"],
    [409, status(409, "AlreadyExists"), "alreadyExists"],
    [409, status(409, "Conflict"), "conflict"],
    [409, status(409, "Conflict", { causes: [{ reason: "FieldManagerConflict", field: ".spec.replicas" }] }), "fieldConflict"],
    [410, status(410, "Expired"), "gone"],
    [422, status(422, "Invalid", { causes: [{ reason: "FieldValueInvalid", field: "spec.replicas" }] }), "invalid"],
    [429, status(429, "TooManyRequests"), "throttled"],
    [500, status(500, "InternalError"), "server"],
    [503, "upstream is away", "server"],
    [504, status(504, "Timeout"), "timeout"],
  ];
  for (const [code, body, kind] of table) {
    it(`maps ${code} ${typeof body === "string" ? "without a Status" : JSON.stringify(body).slice(0, 90)} to ${kind}`, async () => {
      answer(code, body);
      const error = await kindOf(client.get(configMaps, settings));
      assert.equal(error.kind, kind);
      assert.equal(error.request, "GET /api/v1/namespaces/racks/configmaps/settings");
    });
  }

  it("hands on the refused fields and the time to wait", async () => {
    answer(429, status(429, "TooManyRequests"), { "retry-after": "7" });
    assert.equal((await kindOf(client.get(configMaps, settings))).retryAfterSeconds, 7);
    answer(422, status(422, "Invalid", { causes: [{ field: "spec.replicas" }] }));
    assert.deepEqual((await kindOf(client.get(configMaps, settings))).fields, ["spec.replicas"]);
  });

  it("calls silence a timeout, a refused or broken connection unreachable, and a 200 of HTML a server fault", async () => {
    handler = () => undefined;
    assert.equal((await kindOf(client.get(configMaps, settings, { timeoutMs: 50 }))).kind, "timeout");
    handler = (request) => request.socket.destroy();
    assert.equal((await kindOf(client.get(configMaps, settings))).kind, "unreachable");
    answer(200, "<html>");
    assert.equal((await kindOf(client.get(configMaps, settings))).kind, "server");
    const nobody = new ClusterClient({ server: "http://127.0.0.1:1" });
    assert.equal((await kindOf(nobody.get(configMaps, settings))).kind, "unreachable");
    await nobody.close();
  });

  it("never puts credentials or query into an error", async () => {
    answer(500, "boom");
    const error = await kindOf(client.apply(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: settings }, { fieldManager: "m" }));
    assert.equal(JSON.stringify([error.message, error.request, error.stack]).includes("Bearer"), false);
    assert.equal(error.request.includes("?"), false);
  });

  describe("watch", () => {
    function stream(...chunks: string[]): void {
      handler = (_request, _body, response) => {
        response.writeHead(200);
        for (const chunk of chunks) response.write(chunk);
        response.end();
      };
    }

    async function collect(): Promise<string[]> {
      const events: string[] = [];
      for await (const event of client.watch(configMaps, { namespace: "racks", resourceVersion: "5", idleTimeoutMs: 200 })) {
        events.push(event.type === "BOOKMARK" ? `BOOKMARK ${event.resourceVersion}` : `${event.type} ${event.object.metadata.name}`);
      }
      return events;
    }

    it("decodes events however they are cut into chunks, even inside a character", async () => {
      const line = Buffer.from(`{"type":"ADDED","object":{"metadata":{"name":"é"}}}\n`);
      handler = (_request, _body, response) => {
        response.write(line.subarray(0, 43));
        setImmediate(() => {
          response.write(Buffer.concat([line.subarray(43), Buffer.from(`{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}`)]));
          response.end("\n");
        });
      };
      assert.deepEqual(await collect(), ["ADDED é", "BOOKMARK 9"]);
    });

    it("throws what an ERROR event stands for", async () => {
      stream(`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}\n`);
      assert.equal((await kindOf(collect())).kind, "gone");
    });

    it("fails with timeout when the stream falls silent, and ends quietly when the server closes it", async () => {
      stream(`{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n`);
      assert.deepEqual(await collect(), ["ADDED a"]);
      handler = (_request, _body, response) => response.write(`{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n`);
      assert.equal((await kindOf(collect())).kind, "timeout");
    });

    it("calls a line that is not JSON a server fault of this request", async () => {
      stream("<html>\n");
      const error = await kindOf(collect());
      assert.equal(error.kind, "server");
      assert.equal(error.request, "WATCH /api/v1/namespaces/racks/configmaps");
    });
  });
});
