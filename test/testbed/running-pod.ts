/** One Pod as a process: started with the Pod's own arguments and identity, probed, restarted, reported, ended. */
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { z } from "zod";

import type { ClusterClient } from "../../provider/cluster/client.ts";
import { isClusterError } from "../../provider/cluster/errors.ts";
import { pods, serviceAccounts } from "../../provider/cluster/kinds.ts";
import { kubeconfigOf } from "./kubeconfig.ts";
import { commandLineOf, environmentOf, probePort } from "./pod.ts";
import type { Placement, PodSpec, Probe } from "./pod.ts";
import { podStatus } from "./pod-status.ts";
import type { ContainerRun } from "./pod-status.ts";
import { startProcess } from "./processes.ts";
import type { RunningProcess } from "./processes.ts";

const TOKEN_SECONDS = 3600;
const TOKEN_REFRESH_MS = 20 * 60 * 1000;
const FIRST_BACKOFF_MS = 200;
const LONGEST_BACKOFF_MS = 5000;
/** A container that is not ready yet is asked more often than its period says, as newer kubelets do. */
const UNREADY_PERIOD_MS = 200;

export interface PodEnvironment {
  client: ClusterClient;
  /** Address and trust with which the Pod reaches its API server. */
  server: string;
  certificateAuthority: string;
  /** Files for paths inside the image: `/app/controller.cjs` → the bundle. */
  files: Record<string, string>;
  entrypoint: readonly string[];
  /** Holds one folder a Pod. */
  directory: string;
  /** Told of what goes wrong beside the process itself. */
  report(message: string): void;
}

/** A call, so that the compiler does not take one answer for all that follow. */
function isOver(signal: AbortSignal): boolean {
  return signal.aborted;
}

const tokenStatus = z.looseObject({ token: z.string() });

export class RunningPod {
  readonly spec: PodSpec;
  readonly placement: Placement;
  readonly logPath: string;
  process: RunningProcess | undefined;
  readonly run: ContainerRun = { startedAt: undefined, ready: false, restarts: 0, lastExit: undefined };
  readonly #environment: PodEnvironment;
  readonly #directory: string;
  readonly #startedAt = new Date();
  readonly #conditions = new Map<string, { status: boolean; since: Date }>();
  readonly #ending = new AbortController();
  #tokenTimer: NodeJS.Timeout | undefined;
  #life: Promise<void> | undefined;
  #report: Promise<void> = Promise.resolve();

  constructor(environment: PodEnvironment, spec: PodSpec, placement: Placement) {
    this.#environment = environment;
    this.spec = spec;
    this.placement = placement;
    this.#directory = join(environment.directory, `${spec.namespace}-${spec.name}`);
    mkdirSync(this.#directory, { recursive: true });
    this.logPath = join(this.#directory, "container.log");
  }

  start(): void {
    this.#life = this.#live();
  }

  /** Ends the process, with SIGTERM first; resolves when nothing of the Pod runs any more. */
  async end(gracePeriodSeconds: number): Promise<void> {
    this.#ending.abort();
    clearTimeout(this.#tokenTimer);
    await this.process?.stop(gracePeriodSeconds * 1000);
    await this.#life;
    await this.#report;
  }

  async #live(): Promise<void> {
    try {
      if (this.spec.nodeName === undefined) await this.#bind();
      await this.#refreshToken();
      for (let attempt = 0; !isOver(this.#ending.signal); attempt += 1) {
        if (attempt > 0) await this.#pause(Math.min(FIRST_BACKOFF_MS * 2 ** (attempt - 1), LONGEST_BACKOFF_MS));
        if (!isOver(this.#ending.signal)) await this.#runOnce();
      }
    } catch (error) {
      if (!isOver(this.#ending.signal))
        this.#environment.report(`Pod ${this.spec.namespace}/${this.spec.name}: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  async #bind(): Promise<void> {
    const { namespace, name, uid } = this.spec;
    const target = { apiVersion: "v1", kind: "Node", name: this.placement.nodeName };
    await this.#environment.client.create(pods, { apiVersion: "v1", kind: "Binding", metadata: { namespace, name, uid }, target }, { subresource: "binding" });
  }

  async #refreshToken(): Promise<void> {
    const { namespace, name, uid, serviceAccount } = this.spec;
    const { client, server, certificateAuthority } = this.#environment;
    const answer = await client.create(
      serviceAccounts,
      {
        apiVersion: "authentication.k8s.io/v1",
        kind: "TokenRequest",
        metadata: { namespace, name: serviceAccount },
        // Bound to the Pod as a kubelet does it: the audit log and the fault proxy then know which Pod asked.
        spec: { expirationSeconds: TOKEN_SECONDS, boundObjectRef: { apiVersion: "v1", kind: "Pod", name, uid } },
      },
      { subresource: "token" },
    );
    const tokenFile = join(this.#directory, "token");
    writeFileSync(`${tokenFile}.new`, tokenStatus.parse(answer["status"]).token, { mode: 0o600 });
    renameSync(`${tokenFile}.new`, tokenFile);
    writeFileSync(this.#kubeconfigPath, kubeconfigOf({ server, certificateAuthority, user: { tokenFile }, namespace }));
    this.#tokenTimer = setTimeout(() => {
      this.#refreshToken().catch((error: unknown) => this.#environment.report(`Pod ${name}: its token could not be renewed: ${String(error)}`));
    }, TOKEN_REFRESH_MS).unref();
  }

  get #kubeconfigPath(): string {
    return join(this.#directory, "kubeconfig");
  }

  async #runOnce(): Promise<void> {
    const { container } = this.spec;
    const own = environmentOf(this.spec, this.placement);
    const [program, ...args] = commandLineOf(container, own, this.#environment.entrypoint).map((word) => this.#environment.files[word] ?? word);
    if (program !== "node") throw new Error(`the pod runner runs node only, not ${program ?? "an empty command"}`);
    const startedAt = new Date();
    this.process = startProcess({
      name: this.spec.name,
      command: process.execPath,
      args,
      logPath: this.logPath,
      directory: this.#directory,
      environment: { PATH: process.env["PATH"], HOME: this.#directory, ...own, KUBECONFIG: this.#kubeconfigPath },
    });
    this.run.startedAt = startedAt;
    this.#setReady(container.readinessProbe === undefined);
    const over = new AbortController();
    const probing = Promise.all([this.#probeReadiness(over.signal), this.#probeLiveness(over.signal, this.process)]);
    const exit = await this.process.exited;
    over.abort();
    await probing;
    this.run.startedAt = undefined;
    this.run.lastExit = { exit, startedAt, finishedAt: new Date() };
    if (!isOver(this.#ending.signal)) this.run.restarts += 1;
    this.#setReady(false);
  }

  async #probeReadiness(signal: AbortSignal): Promise<void> {
    const probe = this.spec.container.readinessProbe;
    if (probe === undefined) return;
    await this.#pause(probe.initialDelaySeconds * 1000, signal);
    let failures = 0;
    while (!isOver(signal)) {
      const ok = await this.#ask(probe, signal);
      if (isOver(signal)) return;
      failures = ok ? 0 : failures + 1;
      if (ok !== this.run.ready && (ok || failures >= probe.failureThreshold)) this.#setReady(ok);
      await this.#pause(this.run.ready ? probe.periodSeconds * 1000 : UNREADY_PERIOD_MS, signal);
    }
  }

  async #probeLiveness(signal: AbortSignal, process: RunningProcess): Promise<void> {
    const probe = this.spec.container.livenessProbe;
    if (probe === undefined) return;
    await this.#pause(probe.initialDelaySeconds * 1000, signal);
    let failures = 0;
    while (!isOver(signal)) {
      await this.#pause(probe.periodSeconds * 1000, signal);
      if (isOver(signal)) return;
      failures = (await this.#ask(probe, signal)) ? 0 : failures + 1;
      if (isOver(signal)) return;
      if (failures < probe.failureThreshold) continue;
      await process.stop(this.spec.gracePeriodSeconds * 1000);
      return;
    }
  }

  async #ask(probe: Probe, over: AbortSignal): Promise<boolean> {
    const { path, port } = probe.httpGet;
    try {
      const answer = await fetch(`http://${this.placement.ip}:${probePort(this.spec.container, port)}${path}`, {
        signal: AbortSignal.any([over, AbortSignal.timeout(probe.timeoutSeconds * 1000)]),
        headers: { "user-agent": "kube-probe", connection: "close" },
        redirect: "manual",
      });
      await answer.arrayBuffer();
      return answer.status < 400;
    } catch {
      return false;
    }
  }

  #setReady(ready: boolean): void {
    this.run.ready = ready;
    // One after the other, each with what holds when its turn comes.
    this.#report = this.#report.then(async () => this.#writeStatus());
  }

  async #writeStatus(): Promise<void> {
    const { namespace, name, container } = this.spec;
    const status = podStatus(container, this.placement.ip, this.#startedAt, this.run, (type, state) => this.#since(type, state));
    try {
      await this.#environment.client.patch(pods, { namespace, name }, "merge", { metadata: { uid: this.spec.uid }, status }, { subresource: "status" });
    } catch (error) {
      if (isClusterError(error, "notFound", "conflict")) return;
      this.#environment.report(`Pod ${namespace}/${name}: its status could not be written: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  #since(type: string, status: boolean): Date {
    const known = this.#conditions.get(type);
    if (known?.status === status) return known.since;
    const since = new Date();
    this.#conditions.set(type, { status, since });
    return since;
  }

  async #pause(milliseconds: number, signal: AbortSignal = this.#ending.signal): Promise<void> {
    if (isOver(signal) || milliseconds <= 0) return;
    await new Promise<void>((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, milliseconds);
      signal.addEventListener("abort", done);
    });
  }
}
