/** Child processes that never outlive the process that started them, however that one ends. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { basename } from "node:path";

import { until } from "./wait.ts";
import type { WaitOptions } from "./wait.ts";

/**
 * The child runs in a process group of its own, beside a shell that reads from a pipe whose other end only we hold. When we end, even by
 * SIGKILL, the pipe closes and the shell kills its group. Its own membership keeps the group's number from being given to another process.
 * The group also keeps a terminal's Ctrl-C away from the child: the order of stopping matters.
 */
const REAPER = '(read -r _ <&3; kill -KILL -$$) & exec "$@" 3<&-';
const TAIL_BYTES = 3000;
const DEFAULT_GRACE_MS = 10_000;

export interface ProcessOptions {
  /** Shown in messages. */
  name: string;
  command: string;
  args: readonly string[];
  /** Receives standard output and error; appended to. */
  logPath: string;
  /** The whole environment; that of this process when absent. */
  environment?: NodeJS.ProcessEnv;
  directory?: string;
}

export interface Exit {
  /** Undefined where a signal ended it. */
  code: number | undefined;
  signal: NodeJS.Signals | undefined;
}

export interface RunningProcess {
  readonly name: string;
  readonly pid: number;
  readonly logPath: string;
  /** Undefined while it runs. */
  readonly exit: Exit | undefined;
  /** Resolves when it has ended. */
  readonly exited: Promise<Exit>;
  signal(signal: NodeJS.Signals): void;
  /** SIGTERM, then SIGKILL after the grace period (10 s by default); resolves when it has ended. */
  stop(graceMs?: number): Promise<Exit>;
}

/** The last lines of a log file, for messages. */
export function tail(logPath: string): string {
  try {
    const content = readFileSync(logPath, "utf8");
    return content.slice(-TAIL_BYTES).trimEnd();
  } catch {
    return "";
  }
}

function describe(exit: Exit): string {
  return exit.signal === undefined ? `exit code ${exit.code}` : exit.signal;
}

class Child implements RunningProcess {
  readonly name: string;
  readonly logPath: string;
  readonly pid: number;
  readonly exited: Promise<Exit>;
  exit: Exit | undefined;
  readonly #child: ChildProcess;

  constructor(options: ProcessOptions) {
    this.name = options.name;
    this.logPath = options.logPath;
    const log = openSync(options.logPath, "a");
    try {
      this.#child = spawn("/bin/sh", ["-c", REAPER, basename(options.command), options.command, ...options.args], {
        detached: true,
        stdio: ["ignore", log, log, "pipe"],
        ...(options.environment === undefined ? {} : { env: options.environment }),
        ...(options.directory === undefined ? {} : { cwd: options.directory }),
      });
    } finally {
      closeSync(log);
    }
    const { pid } = this.#child;
    if (pid === undefined) throw new Error(`${options.name} cannot be started: no process could be made`);
    this.pid = pid;
    const lifeline = this.#child.stdio[3];
    // Of no interest: the other end goes away with the group.
    lifeline?.on("error", () => undefined);
    this.exited = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => {
        this.exit = { code: code ?? undefined, signal: signal ?? undefined };
        // Ends the reaper, and with it whatever the child itself had started.
        lifeline?.destroy();
        resolve(this.exit);
      });
    });
  }

  signal(signal: NodeJS.Signals): void {
    if (this.exit === undefined) process.kill(this.pid, signal);
  }

  async stop(graceMs: number = DEFAULT_GRACE_MS): Promise<Exit> {
    this.signal("SIGTERM");
    // A stopped (SIGSTOP) process would not see the SIGTERM.
    this.signal("SIGCONT");
    const timer = setTimeout(() => this.signal("SIGKILL"), graceMs);
    try {
      return await this.exited;
    } finally {
      clearTimeout(timer);
    }
  }
}

export function startProcess(options: ProcessOptions): RunningProcess {
  return new Child(options);
}

/** Waits until `probe` holds; fails at once, with the end of its log, when the process ends before. */
export async function untilReady(process: RunningProcess, probe: () => Promise<boolean> | boolean, options: WaitOptions = {}): Promise<void> {
  const ended = (): string =>
    `${process.name} ended before it was ready (${process.exit === undefined ? "still running" : describe(process.exit)}):\n${tail(process.logPath)}`;
  const abort = new AbortController();
  void process.exited.then(() => abort.abort(new Error(ended())));
  try {
    await until(`${process.name} to be ready`, probe, { ...options, signal: abort.signal });
  } catch (error) {
    if (process.exit !== undefined) throw new Error(ended(), { cause: error });
    throw new Error(`${error instanceof Error ? error.message : String(error)}\n${tail(process.logPath)}`, { cause: error });
  }
}
