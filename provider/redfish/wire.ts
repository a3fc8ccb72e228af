/** One request over undici's lowest door: no streams and no signals, which cost as much as the request itself. */
import type { Client, Dispatcher } from "undici";

export interface WireRequest {
  method: "GET" | "POST" | "DELETE";
  path: string;
  headers: Record<string, string>;
  body: string | null;
}

export interface WireAnswer {
  status: number;
  /** Lower-case names; the first value of each. */
  headers: Record<string, string>;
  text: string;
}

export interface InFlight {
  answer: Promise<WireAnswer>;
  /** Ends it at once with that reason; what was not sent by then never is. */
  stop: (reason: Error) => void;
}

function firstValues(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const values: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    const first = Array.isArray(value) ? value[0] : value;
    if (first !== undefined) values[name] = first;
  }
  return values;
}

function textOf(chunks: readonly Buffer[]): string {
  const [only] = chunks;
  const text = only !== undefined && chunks.length === 1 ? only.toString() : Buffer.concat(chunks).toString();
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

class Handler implements Dispatcher.DispatchHandler {
  readonly #settle: (answer: WireAnswer) => void;
  readonly #fail: (error: Error) => void;
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #stopped: Error | undefined;
  #status = 0;
  #headers: Record<string, string> = {};

  constructor(settle: (answer: WireAnswer) => void, fail: (error: Error) => void) {
    this.#settle = settle;
    this.#fail = fail;
  }

  stop(reason: Error): void {
    this.#stopped = reason;
    this.#controller?.abort(reason);
    this.#fail(reason);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#stopped !== undefined) controller.abort(this.#stopped);
  }

  onResponseStart(_controller: Dispatcher.DispatchController, status: number, headers: Record<string, string | string[] | undefined>): void {
    // Those below 200 only announce the answer.
    if (status < 200) return;
    this.#status = status;
    this.#headers = firstValues(headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  onResponseEnd(): void {
    this.#settle({ status: this.#status, headers: this.#headers, text: textOf(this.#chunks) });
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    this.#fail(error);
  }
}

export function dispatch(client: Client, request: WireRequest): InFlight {
  let handler: Handler | undefined;
  const answer = new Promise<WireAnswer>((resolve, reject) => {
    handler = new Handler(resolve, reject);
    client.dispatch(request, handler);
  });
  return { answer, stop: (reason) => handler?.stop(reason) };
}
