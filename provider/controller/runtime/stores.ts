/** The informers of a process: one a kind and namespace, shared by all its reconcilers. */
import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { type LiveObject, qualifiedName, type ResourceKind } from "../../cluster/objects.ts";
import { Informer } from "./informer.ts";
import type { Log, Store, Stores } from "./reconciler.ts";

/** The informers of one kind, seen as one store. */
export class KindStore implements Store {
  readonly kind: ResourceKind;
  readonly informers: readonly Informer[];

  constructor(kind: ResourceKind, informers: readonly Informer[]) {
    this.kind = kind;
    this.informers = informers;
  }

  get(key: string): LiveObject | undefined {
    for (const informer of this.informers) {
      const found = informer.get(key);
      if (found !== undefined) return found;
    }
    return undefined;
  }

  list(): readonly LiveObject[] {
    const [only, ...others] = this.informers;
    return only !== undefined && others.length === 0 ? only.list() : this.informers.flatMap((informer) => informer.list());
  }

  fresh(): boolean {
    return this.informers.every((informer) => informer.fresh());
  }

  subscribe(listener: (object: LiveObject) => void): void {
    for (const informer of this.informers) informer.subscribe(listener);
  }
}

export class InformerStores implements Stores {
  readonly #parts: { cluster: Cluster; namespaces: readonly string[]; clock: Clock; log: Log };
  readonly #stores = new Map<string, KindStore>();

  constructor(parts: { cluster: Cluster; namespaces: readonly string[]; clock: Clock; log: Log }) {
    this.#parts = parts;
  }

  of(kind: ResourceKind): KindStore {
    const found = this.#stores.get(qualifiedName(kind));
    if (found === undefined) throw new TypeError(`no reconciler watches ${qualifiedName(kind)}`);
    return found;
  }

  /** Makes the store of a kind; to be called for every watched kind before `run`. */
  watch(kind: ResourceKind): KindStore {
    const name = qualifiedName(kind);
    let store = this.#stores.get(name);
    if (store === undefined) {
      const { cluster, clock, log, namespaces } = this.#parts;
      const informers = kind.namespaced
        ? namespaces.map((namespace) => new Informer({ cluster, kind, namespace, clock, log }))
        : [new Informer({ cluster, kind, clock, log })];
      this.#stores.set(name, (store = new KindStore(kind, informers)));
    }
    return store;
  }

  all(): readonly KindStore[] {
    return [...this.#stores.values()];
  }

  /** Qualified names of the kinds that the API server does not serve. */
  missing(): string[] {
    return this.all()
      .filter(({ informers }) => informers.some(({ state }) => state === "missing"))
      .map(({ kind }) => qualifiedName(kind));
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.all().flatMap(({ informers }) => informers.map(async (informer) => informer.run(signal))));
  }

  /** Resolves once every kind has been listed, or found not to be served. */
  async settled(): Promise<void> {
    await Promise.all(this.all().flatMap(({ informers }) => informers.map(async (informer) => informer.settled())));
  }
}
