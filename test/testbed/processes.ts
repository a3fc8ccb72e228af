/** Child processes that never outlive the process that started them, however that one ends. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { basename } from "node:path";

import { until } from "./wait.ts";
import type { WaitOptions } from "./wait.ts";

/**
 * The child runs in a session of its own, beside a shell that reads from a pipe whose other end only we hold. When we end, even by
 * SIGKILL, the pipe closes and the shell kills its session: the child, and what it had started in process groups of their own, as the
 * Pulumi CLI does with its plugins. The shell's own membership keeps the session's number from being given to another process.
 * The session also keeps a terminal's Ctrl-C away from the child: the order of stopping matters.
 */
const REAPER = `(
  read -r _ <&3
  read -r me _ < /proc/self/stat
  for stat in /proc/[0-9]*/stat; do
    { read -r pid rest < "$stat"; } 2>/dev/null || continue
    set -- \${rest##*) }
    [ "$4" = $$ ] && [ "$pid" != "$me" ] && kill -KILL "$pid"
  done 2>/dev/null
) & exec "$@" 3<&-`;
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

/** A child that ends with us, and with everything it has started, once it has ended itself. `output` receives standard output and error. */
export function spawnReaped(
  command: string,
  args: readonly string[],
  output: number | "pipe",
  options: { env?: NodeJS.ProcessEnv; cwd?: string },
): ChildProcess {
  const child = spawn("/bin/sh", ["-c", REAPER, basename(command), command, ...args], {
    ...options,
    detached: true,
    stdio: ["ignore", output, output, "pipe"],
  });
  const lifeline = child.stdio[3];
  // Of no interest: the other end goes away with the session.
  lifeline?.on("error", () => undefined);
  child.once("exit", () => lifeline?.destroy());
  return child;
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
      this.#child = spawnReaped(options.command, options.args, log, {
        ...(options.environment === undefined ? {} : { env: options.environment }),
        ...(options.directory === undefined ? {} : { cwd: options.directory }),
      });
    } finally {
      closeSync(log);
    }
    const { pid } = this.#child;
    if (pid === undefined) throw new Error(`${options.name} cannot be started: no process could be made`);
    this.pid = pid;
    this.exited = new Promise((resolve) => {
      this.#child.once("exit", (code, signal) => {
        this.exit = { code: code ?? undefined, signal: signal ?? undefined };
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
