/** Keeps a view of one kind in one namespace: lists it, then follows its watch, through everything that can happen to either. */
import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { keyOf, type LiveObject, qualifiedName, type ResourceKind } from "../../cluster/objects.ts";
import { backoffAfter, type BackoffLimits } from "./backoff.ts";
import type { Log, Store } from "./reconciler.ts";

/** An API server sends a bookmark about once a minute. */
const STALENESS_LIMIT_MS = 90_000;
const LOOK_AGAIN_MS = 30_000;
const BACKOFF: BackoffLimits = { first: 500, most: 15_000 };

/**
 * - `starting`: not listed yet
 * - `live`: listed, and the watch runs
 * - `broken`: listed before, but the watch failed and has not been made good
 * - `missing`: the API server does not serve the kind
 */
export type InformerState = "starting" | "live" | "broken" | "missing";

export interface InformerOptions {
  cluster: Cluster;
  kind: ResourceKind;
  /** All namespaces, or a kind without them, where absent. */
  namespace?: string;
  clock: Clock;
  log: Log;
  random?: () => number;
}

/** Managed fields are a third of many objects, and nobody reads them here. */
function slim(object: LiveObject): LiveObject {
  delete object.metadata.managedFields;
  return object;
}

export class Informer implements Store {
  readonly kind: ResourceKind;
  readonly namespace: string | undefined;
  readonly #cluster: Cluster;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #random: () => number;
  readonly #objects = new Map<string, LiveObject>();
  readonly #listeners: ((object: LiveObject) => void)[] = [];
  #state: InformerState = "starting";
  #lastSign = 0;
  #settled: () => void = () => undefined;
  readonly #attempted: Promise<void>;

  constructor(options: InformerOptions) {
    this.kind = options.kind;
    this.namespace = options.namespace;
    this.#cluster = options.cluster;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#random = options.random ?? Math.random;
    this.#attempted = new Promise((resolve) => {
      this.#settled = resolve;
    });
  }

  get(key: string): LiveObject | undefined {
    return this.#objects.get(key);
  }

  list(): readonly LiveObject[] {
    return [...this.#objects.values()];
  }

  fresh(): boolean {
    return this.#state === "live" && this.#clock.now() - this.#lastSign <= STALENESS_LIMIT_MS;
  }

  get state(): InformerState {
    return this.#state;
  }

  /** Called with each object that appears, changes or goes; for the last with the object as it was last seen. */
  subscribe(listener: (object: LiveObject) => void): void {
    this.#listeners.push(listener);
  }

  /** Resolves once the kind has been listed, or found not to be served. */
  async settled(): Promise<void> {
    return this.#attempted;
  }

  async run(signal: AbortSignal): Promise<void> {
    const ended = (): boolean => signal.aborted;
    let failures = 0;
    while (!ended()) {
      try {
        let resourceVersion = await this.#relist(signal);
        failures = 0;
        while (!ended()) resourceVersion = await this.#follow(resourceVersion, signal);
      } catch (error) {
        if (ended()) return;
        let wait: number;
        if (isClusterError(error, "kindNotServed")) {
          if (this.#state !== "missing")
            this.#log.warn("the API server does not serve this kind; looking again every 30 s", { kind: qualifiedName(this.kind) });
          this.#state = "missing";
          this.#settled();
          wait = LOOK_AGAIN_MS;
        } else {
          if (this.#state === "live") this.#state = "broken";
          failures++;
          // A position that the server has forgotten is no fault of the server: list again without delay, once.
          wait = isClusterError(error, "gone") && failures === 1 ? 0 : backoffAfter(failures, BACKOFF, this.#random());
          this.#log.warn("the view is being read anew", { kind: qualifiedName(this.kind), namespace: this.namespace, inMs: wait, error });
        }
        await this.#clock.sleep(wait, signal).catch(() => undefined);
      }
    }
  }

  async #relist(signal: AbortSignal): Promise<string> {
    const asked = this.#clock.now();
    const { items, resourceVersion } = await this.#cluster.list(this.kind, { signal, ...this.#scope() });
    const present = new Set<string>();
    for (const object of items) {
      const key = keyOf(object);
      present.add(key);
      if (this.#objects.get(key)?.metadata.resourceVersion === object.metadata.resourceVersion) continue;
      this.#objects.set(key, slim(object));
      this.#tell(object);
    }
    for (const [key, object] of this.#objects) {
      if (present.has(key)) continue;
      this.#objects.delete(key);
      this.#tell(object);
    }
    this.#state = "live";
    this.#lastSign = asked;
    this.#settled();
    return resourceVersion;
  }

  /** Follows one watch until the server ends it; returns the position to go on from. */
  async #follow(from: string, signal: AbortSignal): Promise<string> {
    let resourceVersion = from;
    const opened = this.#clock.now();
    for await (const event of this.#cluster.watch(this.kind, { signal, resourceVersion, ...this.#scope() })) {
      this.#lastSign = this.#clock.now();
      if (event.type === "BOOKMARK") {
        resourceVersion = event.resourceVersion;
        continue;
      }
      const { object } = event;
      resourceVersion = object.metadata.resourceVersion;
      if (event.type === "DELETED") this.#objects.delete(keyOf(object));
      else this.#objects.set(keyOf(object), slim(object));
      this.#tell(object);
    }
    // A server that ends each watch at once must not be asked in a tight loop.
    if (this.#clock.now() - opened < 1_000) await this.#clock.sleep(1_000, signal).catch(() => undefined);
    return resourceVersion;
  }

  #scope(): { namespace?: string } {
    return this.namespace === undefined ? {} : { namespace: this.namespace };
  }

  #tell(object: LiveObject): void {
    for (const listener of this.#listeners) listener(object);
  }
}
