/** Workload clusters, each reached by its own kubeconfig Secret; one that does not answer is left alone for a while. */
import { z } from "zod";

import type { Clock } from "../../clock.ts";
import { ClusterClient } from "../../cluster/client.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { connectionFromKubeconfig } from "../../cluster/connection.ts";
import { ClusterError, isClusterError } from "../../cluster/errors.ts";
import { nodes, pods, secrets, volumeAttachments } from "../../cluster/kinds.ts";
import { keyOf, type LiveObject, type ObjectKey } from "../../cluster/objects.ts";

const REQUEST_TIMEOUT_MS = 10_000;
const VERSION_LIFETIME_MS = 600_000;
const LONGEST_PAUSE_MS = 30_000;

const kubeconfigSecret = z.object({ data: z.object({ value: z.string() }) });
const podSchema = z.object({ metadata: z.object({ deletionTimestamp: z.string().optional() }) });
const attachmentSchema = z.object({ spec: z.object({ nodeName: z.string() }) });

export type Opened = { state: "open"; cluster: Cluster } | { state: "error"; reason: "unreachable" | "forbidden" | "noCluster"; message: string };

export type NodeRead = { state: "read"; node: LiveObject | null; version: string | undefined } | Extract<Opened, { state: "error" }>;

interface Entry {
  cluster: Cluster;
  version: { text: string; at: number } | undefined;
}

/** Opens a client for the text of a kubeconfig. */
export type OpenKubeconfig = (kubeconfig: string) => Promise<Cluster>;

const openClient: OpenKubeconfig = async (kubeconfig) =>
  new ClusterClient(await connectionFromKubeconfig(kubeconfig), { userAgent: "pulumi-baremetal-controller" });

export class WorkloadClusters {
  readonly #management: Cluster;
  readonly #clock: Clock;
  readonly #open: OpenKubeconfig;
  readonly #entries = new Map<string, Entry>();
  readonly #silent = new Map<string, { failures: number; until: number; error: Extract<Opened, { state: "error" }> }>();

  constructor(management: Cluster, clock: Clock, open: OpenKubeconfig = openClient) {
    this.#management = management;
    this.#clock = clock;
    this.#open = open;
  }

  /** The client of a cluster, for a write. Throws `ClusterError`. */
  async open(key: ObjectKey, signal?: AbortSignal): Promise<Cluster> {
    return (await this.#entry(key, signal)).cluster;
  }

  /** Reads a Node, and the version of the cluster where it is wanted. */
  async readNode(key: ObjectKey, name: string, withVersion: boolean, signal?: AbortSignal): Promise<NodeRead> {
    const id = keyOf({ metadata: key });
    const silent = this.#silent.get(id);
    if (silent !== undefined && this.#clock.now() < silent.until) return silent.error;
    try {
      const entry = await this.#entry(key, signal);
      const options = { timeoutMs: REQUEST_TIMEOUT_MS, ...(signal === undefined ? {} : { signal }) };
      let node: LiveObject | null = null;
      try {
        node = await entry.cluster.get(nodes, { name }, options);
      } catch (error) {
        if (!isClusterError(error, "notFound")) throw error;
      }
      if (withVersion && (entry.version === undefined || this.#clock.now() - entry.version.at > VERSION_LIFETIME_MS)) {
        entry.version = { text: await entry.cluster.serverVersion(options), at: this.#clock.now() };
      }
      this.#silent.delete(id);
      return { state: "read", node, version: entry.version?.text };
    } catch (error) {
      return this.#failed(id, error, signal);
    }
  }

  /** Names of Pods that are ending on the Node, and of VolumeAttachments that name it. Throws `ClusterError`. */
  async readRemains(key: ObjectKey, name: string, signal?: AbortSignal): Promise<{ pods: string[]; attachments: string[] }> {
    const { cluster } = await this.#entry(key, signal);
    const options = { timeoutMs: REQUEST_TIMEOUT_MS, ...(signal === undefined ? {} : { signal }) };
    const [onNode, attached] = await Promise.all([
      cluster.list(pods, { ...options, fieldSelector: `spec.nodeName=${name}` }),
      cluster.list(volumeAttachments, options),
    ]);
    return {
      pods: onNode.items.filter((pod) => podSchema.parse(pod).metadata.deletionTimestamp !== undefined).map(keyOf),
      attachments: attached.items.filter((item) => attachmentSchema.parse(item).spec.nodeName === name).map(keyOf),
    };
  }

  async close(): Promise<void> {
    await Promise.all([...this.#entries.values()].map(async ({ cluster }) => cluster.close()));
    this.#entries.clear();
  }

  async #entry(key: ObjectKey, signal: AbortSignal | undefined): Promise<Entry> {
    const id = keyOf({ metadata: key });
    const found = this.#entries.get(id);
    if (found !== undefined) return found;
    const secret = await this.#management.get(secrets, { ...key, name: `${key.name}-kubeconfig` }, signal === undefined ? {} : { signal });
    const parsed = kubeconfigSecret.safeParse(secret);
    if (!parsed.success) throw new ClusterError("invalid", "read kubeconfig", `the Secret ${id}-kubeconfig has no key "value"`);
    const cluster = await this.#open(Buffer.from(parsed.data.data.value, "base64").toString("utf8"));
    const opened = { cluster, version: undefined };
    // Another pass may have been quicker; its client is in use.
    const raced = this.#entries.get(id);
    if (raced !== undefined) {
      await cluster.close();
      return raced;
    }
    this.#entries.set(id, opened);
    return opened;
  }

  #failed(id: string, error: unknown, signal: AbortSignal | undefined): NodeRead {
    if (signal?.aborted === true || !isClusterError(error)) throw error;
    if (error.kind === "forbidden") return { state: "error", reason: "forbidden", message: error.message };
    // The kubeconfig may have been renewed, or the address changed: it is read again before the next try.
    const entry = this.#entries.get(id);
    this.#entries.delete(id);
    void entry?.cluster.close();
    const reason = error.kind === "notFound" ? "noCluster" : "unreachable";
    const message =
      reason === "noCluster"
        ? `the Secret ${id}-kubeconfig does not exist`
        : `the API of workload cluster ${id} does not answer (${error.kind}: ${error.message})`;
    const failures = (this.#silent.get(id)?.failures ?? 0) + 1;
    const failed = { state: "error", reason, message } as const;
    this.#silent.set(id, { failures, until: this.#clock.now() + Math.min(LONGEST_PAUSE_MS, 1_000 * 2 ** failures), error: failed });
    return failed;
  }
}
