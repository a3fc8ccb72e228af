/** The real Pulumi CLI for tests and the demo: own home, file backend, passphrase, and nothing fetched from anywhere. */
import type { ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { z } from "zod";

import { spawnReaped } from "../testbed/processes.ts";
import { binaryPath } from "../toolchain/build.mjs";

const repository = resolve(dirname(fileURLToPath(import.meta.url)), "../..");

/** One entry of the engine's event log; only the parts that tests look at. */
const eventSchema = z.looseObject({
  sequence: z.number(),
  diagnosticEvent: z.looseObject({ urn: z.string().optional(), message: z.string(), severity: z.string(), ephemeral: z.boolean().optional() }).optional(),
  resourcePreEvent: z
    .looseObject({
      metadata: z.looseObject({
        op: z.string(),
        urn: z.string(),
        type: z.string(),
        keys: z.array(z.string()).nullish(),
        diffs: z.array(z.string()).nullish(),
        detailedDiff: z.record(z.string(), z.unknown()).nullish(),
      }),
    })
    .optional(),
  resOpFailedEvent: z.looseObject({ metadata: z.looseObject({ op: z.string(), urn: z.string() }) }).optional(),
  summaryEvent: z.looseObject({ resourceChanges: z.record(z.string(), z.number()).nullish() }).optional(),
});
export type EngineEvent = z.infer<typeof eventSchema>;

const exportSchema = z.looseObject({
  deployment: z.looseObject({
    resources: z
      .array(
        z.looseObject({
          urn: z.string(),
          type: z.string(),
          id: z.string().optional(),
          inputs: z.record(z.string(), z.unknown()).optional(),
          outputs: z.record(z.string(), z.unknown()).optional(),
          initErrors: z.array(z.string()).optional(),
        }),
      )
      .optional(),
    pending_operations: z.array(z.unknown()).optional(),
  }),
});
export type StackState = z.infer<typeof exportSchema>["deployment"];

export interface CommandResult {
  exitCode: number;
  stdout: string;
  stderr: string;
}

export interface StepChange {
  op: string;
  urn: string;
  type: string;
  /** Top-level inputs that differ; empty for anything but an update or a replacement. */
  diffs: string[];
}

export interface RunResult extends CommandResult {
  events: EngineEvent[];
  /** What was planned or done, `same` left out, in the engine's order. Of a refresh: what was read, changed or not. */
  changes: StepChange[];
  /** Number of resources by what was done with them, `same` included. */
  summary: Record<string, number>;
  /** Lines printed by providers and program, errors included, without ANSI codes. */
  messages: string[];
}

export interface ProjectOptions {
  /** Folder with Pulumi.yaml; the repository (the quick start) by default. */
  directory?: string;
  /** `dev-` and six random digits by default, so that several runs of one project do not meet. */
  stack?: string;
  /** Folder for home, state and logs; a temporary one, removed by `close`, by default. */
  workDirectory?: string;
  /** Set for every command, over the environment of this process. */
  env?: Record<string, string>;
}

export interface RunOptions {
  /** Receives each piece of output as it comes. */
  onOutput?: (text: string) => void;
  /** Milliseconds until the command is killed and the promise rejects; 15 minutes by default. */
  timeoutMs?: number;
  /** Further arguments, such as `--target` and an URN. */
  args?: readonly string[];
}

/** Whether all of the CLI that programs in TypeScript need is built. */
export function pulumiIsBuilt(...more: string[]): boolean {
  return ["pulumi", "pulumi-language-nodejs", ...more].every((name) => existsSync(binaryPath(name)));
}

/** What PATH must begin with: Node 22, the CLI, its language host, and the launcher of dynamic providers. */
function pathOfCli(): string {
  const folders = [
    join(repository, "node_modules/.bin"),
    ...["pulumi", "pulumi-language-nodejs", "pulumi-resource-kubernetes"].map((name) => dirname(binaryPath(name))),
    join(repository, "node_modules/@pulumi/pulumi"),
  ];
  return [...new Set(folders), process.env["PATH"] ?? ""].join(delimiter);
}

function changesOf(events: readonly EngineEvent[]): StepChange[] {
  return events.flatMap(({ resourcePreEvent }) => {
    if (resourcePreEvent === undefined || resourcePreEvent.metadata.op === "same") return [];
    const { op, urn, type, diffs, detailedDiff } = resourcePreEvent.metadata;
    // A default provider "changes" with every value of the stack's configuration, and the CLI does not show it either.
    if (type.startsWith("pulumi:providers:")) return [];
    const differing = detailedDiff === null || detailedDiff === undefined ? (diffs ?? []) : Object.keys(detailedDiff);
    return [{ op, urn, type, diffs: [...new Set(differing.map((path) => path.split(/[.[]/)[0] ?? path))] }];
  });
}

export class PulumiProject {
  readonly directory: string;
  readonly stack: string;
  readonly workDirectory: string;
  readonly #env: NodeJS.ProcessEnv;
  readonly #temporary: boolean;
  readonly #running = new Set<ChildProcess>();
  #runs = 0;

  private constructor(options: ProjectOptions) {
    this.directory = options.directory ?? repository;
    this.stack = options.stack ?? `dev-${randomBytes(3).toString("hex")}`;
    this.#temporary = options.workDirectory === undefined;
    this.workDirectory = options.workDirectory ?? mkdtempSync(join(tmpdir(), "pulumi-baremetal-cli-"));
    const backend = join(this.workDirectory, "state");
    const temporary = join(this.workDirectory, "tmp");
    for (const folder of [backend, temporary]) mkdirSync(folder, { recursive: true });
    this.#env = {
      ...process.env,
      PULUMI_HOME: join(this.workDirectory, "home"),
      PULUMI_BACKEND_URL: `file://${backend}`,
      PULUMI_CONFIG_PASSPHRASE: "of-a-test",
      PULUMI_SKIP_UPDATE_CHECK: "true",
      PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION: "true",
      PULUMI_AUTOMATION_API_SKIP_VERSION_CHECK: "true",
      // The Kubernetes provider leaves copies of its kubeconfig in the temporary folder.
      TMPDIR: temporary,
      NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache"),
      // Makes the flag for the event log available.
      PULUMI_DEBUG_COMMANDS: "true",
      PATH: pathOfCli(),
      ...options.env,
    };
  }

  /** A project with a fresh stack. */
  static async create(options: ProjectOptions = {}): Promise<PulumiProject> {
    const project = new PulumiProject(options);
    const made = await project.#spawn(["stack", "init", project.stack, "--non-interactive", "--color=never"], {});
    if (made.exitCode !== 0) throw new Error(`pulumi stack init failed:\n${made.stdout}${made.stderr}`);
    // The CLI keeps a stack's configuration beside Pulumi.yaml; ours must not appear in the project.
    renameSync(join(project.directory, `Pulumi.${project.stack}.yaml`), project.#configFile);
    return project;
  }

  get #configFile(): string {
    return join(this.workDirectory, `Pulumi.${this.stack}.yaml`);
  }

  /** Sets values of the stack's configuration. Objects and arrays are given as JSON under `--path`. */
  async config(values: Record<string, string | number | boolean | object>, options: { secret?: boolean } = {}): Promise<void> {
    for (const [key, value] of Object.entries(values)) {
      const text = typeof value === "object" ? JSON.stringify(value) : String(value);
      const kind = options.secret ? "--secret" : "--plaintext";
      await this.#mustRun(["config", "set", "--stack", this.stack, "--config-file", this.#configFile, kind, key, "--", text]);
    }
  }

  async removeConfig(...keys: string[]): Promise<void> {
    for (const key of keys) await this.#mustRun(["config", "rm", "--stack", this.stack, "--config-file", this.#configFile, key]);
  }

  async preview(options: RunOptions = {}): Promise<RunResult> {
    return this.#run(["preview"], options);
  }

  async up(options: RunOptions = {}): Promise<RunResult> {
    return this.#run(["up", "--yes", "--skip-preview"], options);
  }

  async refresh(options: RunOptions = {}): Promise<RunResult> {
    return this.#run(["refresh", "--yes", "--skip-preview"], options);
  }

  async destroy(options: RunOptions = {}): Promise<RunResult> {
    return this.#run(["destroy", "--yes", "--skip-preview"], options);
  }

  async stackExport(): Promise<StackState> {
    const { stdout } = await this.#mustRun(["stack", "export", "--stack", this.stack]);
    return exportSchema.parse(JSON.parse(stdout)).deployment;
  }

  async outputs(): Promise<Record<string, unknown>> {
    const { stdout } = await this.#mustRun(["stack", "output", "--json", "--show-secrets", "--stack", this.stack]);
    return z.record(z.string(), z.unknown()).parse(JSON.parse(stdout));
  }

  /** Ends what still runs and removes the temporary folder. */
  close(): void {
    for (const child of this.#running) child.kill("SIGKILL");
    if (this.#temporary) rmSync(this.workDirectory, { recursive: true, force: true });
  }

  async #mustRun(args: readonly string[]): Promise<CommandResult> {
    const result = await this.#spawn(["--non-interactive", ...args], {});
    if (result.exitCode !== 0) throw new Error(`pulumi ${args.slice(0, 2).join(" ")} failed:\n${result.stdout}${result.stderr}`);
    return result;
  }

  async #run(command: readonly string[], options: RunOptions): Promise<RunResult> {
    this.#runs += 1;
    const log = join(this.workDirectory, `events-${this.#runs}.json`);
    const common = ["--stack", this.stack, "--config-file", this.#configFile, "--non-interactive", "--color=never", "--diff=false", "--event-log", log];
    const result = await this.#spawn([...command, ...common, ...(options.args ?? [])], options);
    const lines = existsSync(log) ? readFileSync(log, "utf8").split("\n") : [];
    const events = lines.filter((line) => line !== "").map((line) => eventSchema.parse(JSON.parse(line)));
    const messages = events.flatMap(({ diagnosticEvent: event }) =>
      event === undefined || event.severity === "debug" || event.message.trim() === "" || event.message.startsWith("using pulumi-")
        ? []
        : [event.message.trimEnd()],
    );
    const summary = events.find((event) => event.summaryEvent !== undefined)?.summaryEvent?.resourceChanges ?? {};
    return { ...result, events, changes: changesOf(events), summary, messages };
  }

  async #spawn(args: readonly string[], options: RunOptions): Promise<CommandResult> {
    const child = spawnReaped(join(dirname(binaryPath("pulumi")), "pulumi"), args, "pipe", { cwd: this.directory, env: this.#env });
    this.#running.add(child);
    let stdout = "";
    let stderr = "";
    child.stdout?.setEncoding("utf8").on("data", (text: string) => {
      stdout += text;
      options.onOutput?.(text);
    });
    child.stderr?.setEncoding("utf8").on("data", (text: string) => {
      stderr += text;
      options.onOutput?.(text);
    });
    const timeoutMs = options.timeoutMs ?? 15 * 60_000;
    return new Promise<CommandResult>((done, fail) => {
      const timer = setTimeout(() => {
        child.kill("SIGKILL");
        fail(new Error(`pulumi ${args[0] ?? ""} did not end within ${timeoutMs / 1000} s:\n${stdout}${stderr}`));
      }, timeoutMs);
      child.on("error", fail);
      child.on("close", (code) => {
        clearTimeout(timer);
        this.#running.delete(child);
        done({ exitCode: code ?? 1, stdout, stderr });
      });
    });
  }
}
