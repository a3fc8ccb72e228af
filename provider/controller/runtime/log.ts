/** One JSON object a line on standard output. */
import type { Clock } from "../../clock.ts";
import type { Log } from "./reconciler.ts";

/** What is known of an error, without its stack: kinds and requests of our own errors included. */
export function describeError(error: unknown): Record<string, unknown> {
  if (!(error instanceof Error)) return { message: String(error) };
  const described: Record<string, unknown> = { name: error.name, message: error.message };
  for (const field of ["kind", "request", "status", "address", "code"]) {
    const value: unknown = Reflect.get(error, field);
    if (typeof value === "string" || typeof value === "number") described[field] = value;
  }
  return described;
}

/** Where something of our own code broke: for errors that no part of the code expects. */
export function stackOf(error: unknown): string | undefined {
  return error instanceof Error ? error.stack : undefined;
}

export class JsonLog implements Log {
  readonly #clock: Clock;
  readonly #write: (line: string) => void;
  readonly #fields: Record<string, unknown>;

  constructor(clock: Clock, write: (line: string) => void, fields: Record<string, unknown> = {}) {
    this.#clock = clock;
    this.#write = write;
    this.#fields = fields;
  }

  /** The same log with fields that each line carries. */
  with(fields: Record<string, unknown>): JsonLog {
    return new JsonLog(this.#clock, this.#write, { ...this.#fields, ...fields });
  }

  info(message: string, fields: Record<string, unknown> = {}): void {
    this.#line("info", message, fields);
  }

  warn(message: string, fields: Record<string, unknown> = {}): void {
    this.#line("warn", message, fields);
  }

  error(message: string, fields: Record<string, unknown> = {}): void {
    this.#line("error", message, fields);
  }

  #line(level: string, message: string, fields: Record<string, unknown>): void {
    const shown = Object.fromEntries(
      Object.entries({ ...this.#fields, ...fields }).map(([name, value]) => [name, value instanceof Error ? describeError(value) : value]),
    );
    this.#write(`${JSON.stringify({ time: new Date(this.#clock.now()).toISOString(), level, message, ...shown })}\n`);
  }
}
