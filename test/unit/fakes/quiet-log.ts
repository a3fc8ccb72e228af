/** A log that keeps its lines for the test to read. */
import type { Log } from "../../../provider/controller/runtime/reconciler.ts";

export interface LogLine {
  level: "info" | "warn" | "error";
  message: string;
  fields: Record<string, unknown>;
}

export class QuietLog implements Log {
  readonly lines: LogLine[] = [];

  info(message: string, fields: Record<string, unknown> = {}): void {
    this.lines.push({ level: "info", message, fields });
  }

  warn(message: string, fields: Record<string, unknown> = {}): void {
    this.lines.push({ level: "warn", message, fields });
  }

  error(message: string, fields: Record<string, unknown> = {}): void {
    this.lines.push({ level: "error", message, fields });
  }
}
