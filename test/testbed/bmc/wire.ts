/** What goes over the wire of a mock BMC, whichever version of HTTP it is. */
import type { Http2ServerRequest } from "node:http2";
import type { IncomingMessage } from "node:http";

import type { Answer } from "./profile.ts";

export type Incoming = IncomingMessage | Http2ServerRequest;

/** What the responses of both versions have in common. */
export interface Outgoing {
  writeHead(status: number, headers: Record<string, string>): unknown;
  write(text: string, written: () => void): unknown;
  end(text: string): unknown;
}

export async function textOf(incoming: Incoming): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(Buffer.from(chunk as Uint8Array));
  return Buffer.concat(chunks).toString();
}

export function parsed(text: string): unknown {
  if (text === "") return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function cut(incoming: Incoming): void {
  if ("stream" in incoming) incoming.stream.session?.destroy();
  else incoming.socket.destroy();
}

export function send(answer: Answer, incoming: Incoming, response: Outgoing, headers: Record<string, string>): void {
  if (answer.instead === "never") return;
  if (answer.instead === "reset") {
    cut(incoming);
    return;
  }
  const text = answer.body === undefined ? "" : typeof answer.body === "string" ? answer.body : JSON.stringify(answer.body);
  const fitting = incoming.httpVersionMajor === 2 ? Object.fromEntries(Object.entries(headers).filter(([name]) => name !== "connection")) : headers;
  response.writeHead(answer.status, answer.instead === "cut" ? { ...fitting, "content-length": String(text.length) } : fitting);
  if (answer.instead !== "cut") {
    response.end(text);
    return;
  }
  response.write(text.slice(0, Math.floor(text.length / 2)), () => cut(incoming));
}
