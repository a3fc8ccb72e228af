/** An API server with nothing in it: empty lists, silent watches, writes echoed. Enough to measure what a client costs by itself. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

export interface QuietApiServer {
  kubeconfig: string;
  close(): void;
}

export async function startQuietApiServer(): Promise<QuietApiServer> {
  const server = createServer((request, response) => {
    const url = new URL(request.url ?? "/", "http://quiet");
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      if (url.searchParams.get("watch") === "true") {
        response.writeHead(200).flushHeaders();
        return;
      }
      if (request.method === "GET" && /\/(leases|configmaps|secrets)\/[^/]+$/.test(url.pathname)) {
        response.writeHead(404).end(JSON.stringify({ kind: "Status", code: 404, reason: "NotFound", message: "not found", details: { kind: "leases" } }));
        return;
      }
      const body = Buffer.concat(chunks).toString();
      const written = (body === "" ? {} : JSON.parse(body)) as { metadata?: object };
      const answer =
        request.method === "GET"
          ? { metadata: { resourceVersion: "1" }, items: [] }
          : { ...written, metadata: { ...written.metadata, uid: "quiet", resourceVersion: "2" } };
      response.writeHead(200).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    kubeconfig: JSON.stringify({
      apiVersion: "v1",
      kind: "Config",
      clusters: [{ name: "quiet", cluster: { server: `http://127.0.0.1:${port}`, "insecure-skip-tls-verify": true } }],
      users: [{ name: "quiet", user: {} }],
      contexts: [{ name: "quiet", context: { cluster: "quiet", user: "quiet" } }],
      "current-context": "quiet",
    }),
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
