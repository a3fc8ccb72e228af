/** Plays the kubelet for Pods of the management cluster: their containers are local processes with the Pods' own arguments and identities. */
import { randomInt } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { ClusterClient } from "../../provider/cluster/client.ts";
import { isClusterError } from "../../provider/cluster/errors.ts";
import { pods } from "../../provider/cluster/kinds.ts";
import type { LiveObject } from "../../provider/cluster/objects.ts";
import { issueClientCertificate } from "./bed.ts";
import type { Bed } from "./bed.ts";
import { ADMINISTRATORS } from "./control-plane.ts";
import { parsePod, terminationGraceOf } from "./pod.ts";
import type { PodSpec } from "./pod.ts";
import { RunningPod } from "./running-pod.ts";
import type { PodEnvironment } from "./running-pod.ts";

const RUNNER_USER = "pod-runner";
const RELIST_PAUSE_MS = 200;

export interface PodRunnerOptions {
  /** Namespaces whose Pods are run; all of them by default. */
  namespaces?: readonly string[];
  /** Local files for paths inside the image, such as `{ "/app/controller.cjs": "<checkout>/sdk/nodejs/dist/controller.cjs" }`. */
  files: Record<string, string>;
  /** What the image runs where a container has no command; `node /app/controller.cjs` by default. */
  entrypoint?: readonly string[];
  /** Address under which the Pods reach the API server; the server's own by default. `bed.management.proxy.server` puts the fault proxy between. */
  server?: string;
  /** The made-up Node that a Pod is bound to; `control-plane-1` by default. */
  nodeName?: (pod: { namespace: string; name: string }) => string;
}

export interface PodInfo {
  namespace: string;
  name: string;
  uid: string;
  ip: string;
  nodeName: string;
  /** Undefined while no process runs. */
  pid: number | undefined;
  ready: boolean;
  restarts: number;
  logPath: string;
}

export interface PodRunner {
  pods(): PodInfo[];
  /** Sends a signal to the Pod's process; throws where there is no such Pod or no process of it. */
  kill(podName: string, signal: NodeJS.Signals): void;
  /** Ends every process; the Pods stay as objects. */
  stop(): Promise<void>;
}

/** A loopback address that no Pod of any bed is likely to have: out of some ten million. */
function randomAddress(): string {
  return `127.${randomInt(64, 224)}.${randomInt(0, 256)}.${randomInt(1, 255)}`;
}

async function pauseUnless(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await new Promise((resolve) => setTimeout(resolve, RELIST_PAUSE_MS));
}

class Runner implements PodRunner {
  readonly #environment: PodEnvironment;
  readonly #nodeName: (pod: PodSpec) => string;
  readonly #pods = new Map<string, RunningPod>();
  readonly #ending = new Map<string, Promise<void>>();
  readonly #stop = new AbortController();
  readonly #watching: Promise<unknown>;

  constructor(environment: PodEnvironment, options: PodRunnerOptions) {
    this.#environment = environment;
    this.#nodeName = options.nodeName ?? (() => "control-plane-1");
    this.#watching = Promise.all((options.namespaces ?? [undefined]).map(async (namespace) => this.#watch(namespace)));
  }

  pods(): PodInfo[] {
    return [...this.#pods.values()].map(({ spec, placement, process, run, logPath }) => ({
      namespace: spec.namespace,
      name: spec.name,
      uid: spec.uid,
      ip: placement.ip,
      nodeName: placement.nodeName,
      pid: process?.exit === undefined ? process?.pid : undefined,
      ready: run.ready,
      restarts: run.restarts,
      logPath,
    }));
  }

  kill(podName: string, signal: NodeJS.Signals): void {
    const found = [...this.#pods.values()].find(({ spec }) => spec.name === podName);
    if (found?.process === undefined || found.process.exit !== undefined) throw new Error(`no process of a Pod ${podName} runs here`);
    found.process.signal(signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#watching;
    await Promise.all([...this.#pods.values()].map(async (pod) => pod.end(1)));
    await Promise.all(this.#ending.values());
    await this.#environment.client.close();
  }

  async #watch(namespace: string | undefined): Promise<void> {
    const { signal } = this.#stop;
    const where = namespace === undefined ? { signal } : { namespace, signal };
    while (!signal.aborted) {
      try {
        const { items, resourceVersion } = await this.#environment.client.list(pods, where);
        const listed = new Set(items.map(({ metadata }) => metadata.uid));
        for (const { spec } of [...this.#pods.values()]) {
          if ((namespace === undefined || spec.namespace === namespace) && !listed.has(spec.uid)) this.#gone(spec.uid);
        }
        for (const item of items) this.#seen(item);
        for await (const event of this.#environment.client.watch(pods, { ...where, resourceVersion })) {
          if (event.type === "DELETED") this.#gone(event.object.metadata.uid);
          else if (event.type !== "BOOKMARK") this.#seen(event.object);
        }
      } catch (error) {
        if (!isClusterError(error)) throw error;
        await pauseUnless(signal);
      }
    }
  }

  #seen(object: LiveObject): void {
    const { uid, deletionTimestamp } = object.metadata;
    const known = this.#pods.get(uid);
    if (deletionTimestamp !== undefined) {
      this.#terminate(object);
      return;
    }
    if (known !== undefined || this.#ending.has(uid)) return;
    let spec: PodSpec;
    try {
      spec = parsePod(object);
    } catch (error) {
      this.#environment.report(`Pod ${object.metadata.name} cannot be run here: ${error instanceof Error ? error.message : String(error)}`);
      return;
    }
    const pod = new RunningPod(this.#environment, spec, { ip: randomAddress(), nodeName: spec.nodeName ?? this.#nodeName(spec) });
    this.#pods.set(uid, pod);
    pod.start();
  }

  /** The Pod object is gone: as on a real node, its process must not outlive it for long. */
  #gone(uid: string): void {
    const pod = this.#pods.get(uid);
    if (pod === undefined || this.#ending.has(uid)) return;
    this.#end(uid, pod.end(0));
  }

  #terminate(object: LiveObject): void {
    const { uid, name, namespace } = object.metadata;
    if (this.#ending.has(uid)) return;
    const pod = this.#pods.get(uid);
    const ended = async (): Promise<void> => {
      await pod?.end(terminationGraceOf(object));
      try {
        await this.#environment.client.delete(pods, namespace === undefined ? { name } : { namespace, name }, { uid, gracePeriodSeconds: 0 });
      } catch (error) {
        if (!isClusterError(error, "notFound", "conflict")) this.#environment.report(`Pod ${name} could not be deleted: ${String(error)}`);
      }
    };
    this.#end(uid, ended());
  }

  #end(uid: string, ended: Promise<void>): void {
    this.#ending.set(
      uid,
      ended.finally(() => {
        this.#pods.delete(uid);
        this.#ending.delete(uid);
      }),
    );
  }
}

/** Ends with the bed. */
export async function startPodRunner(bed: Bed, options: PodRunnerOptions): Promise<PodRunner> {
  const connection = await issueClientCertificate(bed.management, { user: RUNNER_USER, groups: [ADMINISTRATORS] });
  const directory = join(bed.directory, "pods");
  mkdirSync(directory, { recursive: true });
  const runner = new Runner(
    {
      client: new ClusterClient(connection, { userAgent: RUNNER_USER }),
      server: options.server ?? bed.management.server,
      certificateAuthority: bed.management.certificateAuthority.certificate,
      files: options.files,
      entrypoint: options.entrypoint ?? ["node", "/app/controller.cjs"],
      directory,
      report: (message) => console.error(message),
    },
    options,
  );
  bed.beforeStop(async () => runner.stop());
  return runner;
}
