/** A cluster that comes back later when it is asked to: an API server refuses requests for a moment after a new kind appears, or under load. */
import type { Clock } from "../clock.ts";
import type {
  ApplyOptions,
  Cluster,
  DeleteOptions,
  JsonPatchOperation,
  ListOptions,
  ObjectList,
  PatchType,
  RequestOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from "../cluster/cluster.ts";
import { isClusterError } from "../cluster/errors.ts";
import type { KubernetesObject, LiveObject, ObjectKey, ResourceKind } from "../cluster/objects.ts";

const PATIENCE_MS = 15_000;
const PAUSE_SECONDS = 1;

export class PatientCluster implements Cluster {
  readonly #cluster: Cluster;
  readonly #clock: Clock;
  readonly #signal: AbortSignal;

  constructor(cluster: Cluster, clock: Clock, signal: AbortSignal) {
    this.#cluster = cluster;
    this.#clock = clock;
    this.#signal = signal;
  }

  get server(): string {
    return this.#cluster.server;
  }

  get(kind: ResourceKind, key: ObjectKey, options?: RequestOptions): Promise<LiveObject> {
    return this.#patiently(() => this.#cluster.get(kind, key, options));
  }

  list(kind: ResourceKind, options?: ListOptions): Promise<ObjectList> {
    return this.#patiently(() => this.#cluster.list(kind, options));
  }

  create(kind: ResourceKind, object: KubernetesObject, options?: WriteOptions): Promise<LiveObject> {
    return this.#patiently(() => this.#cluster.create(kind, object, options));
  }

  replace(kind: ResourceKind, object: KubernetesObject, options?: WriteOptions): Promise<LiveObject> {
    return this.#patiently(() => this.#cluster.replace(kind, object, options));
  }

  patch(kind: ResourceKind, key: ObjectKey, type: PatchType, body: object | JsonPatchOperation[], options?: WriteOptions): Promise<LiveObject> {
    return this.#patiently(() => this.#cluster.patch(kind, key, type, body, options));
  }

  apply(kind: ResourceKind, object: KubernetesObject, options: ApplyOptions): Promise<LiveObject> {
    return this.#patiently(() => this.#cluster.apply(kind, object, options));
  }

  delete(kind: ResourceKind, key: ObjectKey, options?: DeleteOptions): Promise<void> {
    return this.#patiently(() => this.#cluster.delete(kind, key, options));
  }

  watch(kind: ResourceKind, options?: WatchOptions): AsyncIterable<WatchEvent> {
    return this.#cluster.watch(kind, options);
  }

  discover(group: string, options?: RequestOptions): Promise<ResourceKind[]> {
    return this.#patiently(() => this.#cluster.discover(group, options));
  }

  serverVersion(options?: RequestOptions): Promise<string> {
    return this.#patiently(() => this.#cluster.serverVersion(options));
  }

  close(): Promise<void> {
    return this.#cluster.close();
  }

  /** A request that was throttled did nothing, so that even a write may be sent again. */
  async #patiently<T>(request: () => Promise<T>): Promise<T> {
    const end = this.#clock.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await request();
      } catch (error) {
        if (!isClusterError(error, "throttled")) throw error;
        const pause = (error.retryAfterSeconds ?? PAUSE_SECONDS) * 1000;
        if (this.#clock.now() + pause > end) throw error;
        await this.#clock.sleep(pause, this.#signal);
      }
    }
  }
}
