/**
 * A `Cluster` in memory, for unit and property tests. It keeps what code under test may lean on: resourceVersions and their conflicts,
 * generations, status as a subresource, finalizers, watches with bookmarks and lost positions, kinds that are not served, and answers
 * that go wrong before or after the write went through. It knows no schemas, field managers or garbage collection.
 */
import { randomUUID } from "node:crypto";
import { isDeepStrictEqual } from "node:util";

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
} from "../../../provider/cluster/cluster.ts";
import { ClusterError, type ClusterErrorKind } from "../../../provider/cluster/errors.ts";
import type { KubernetesObject, LiveObject, ObjectKey, ObjectMeta, ResourceKind } from "../../../provider/cluster/objects.ts";
import { apiVersionOf, keyOf, qualifiedName } from "../../../provider/cluster/objects.ts";
import { jsonPatch, mergePatch } from "./patching.ts";

export type FakeVerb = "get" | "list" | "watch" | "create" | "replace" | "patch" | "apply" | "delete" | "discover";

export interface FakeRequest {
  verb: FakeVerb;
  /** `machines.cluster.x-k8s.io` */
  resource: string;
  /** `namespace/name`, the namespace of a list, or empty. */
  key: string;
  subresource?: string;
  body?: unknown;
  write: boolean;
}

interface Happening {
  resourceVersion: number;
  resource: string;
  type: "ADDED" | "MODIFIED" | "DELETED";
  object: LiveObject;
}

interface Watcher {
  resource: string;
  wake(): void;
  end?: "closed" | ClusterError;
  silent: boolean;
}

interface Fault {
  matches(request: FakeRequest): boolean;
  error: ClusterError;
  after: boolean;
  left: number;
}

const withoutStatusSubresource = new Set([
  "secrets",
  "configmaps",
  "serviceaccounts",
  "events",
  "leases.coordination.k8s.io",
  "customresourcedefinitions.apiextensions.k8s.io",
]);
const writes = new Set<FakeVerb>(["create", "replace", "patch", "apply", "delete"]);

const statusOf: Partial<Record<ClusterErrorKind, number>> = {
  notFound: 404,
  kindNotServed: 404,
  alreadyExists: 409,
  conflict: 409,
  fieldConflict: 409,
  unauthorized: 401,
  forbidden: 403,
  invalid: 422,
  gone: 410,
  throttled: 429,
  server: 500,
};

export function fakeError(kind: ClusterErrorKind, request = "fake request", message = `fake ${kind}`): ClusterError {
  const status = statusOf[kind];
  return new ClusterError(kind, request, message, status === undefined ? {} : { status });
}

function without(object: KubernetesObject, ...fields: string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([field]) => !fields.includes(field)));
}

function matchesSelector(values: Record<string, string>, selector: string | undefined): boolean {
  if (selector === undefined || selector === "") return true;
  return selector.split(",").every((term) => {
    const unequal = /^(.*?)!=(.*)$/.exec(term);
    if (unequal) return values[unequal[1] ?? ""] !== unequal[2];
    const equal = /^(.*?)==?(.*)$/.exec(term);
    return equal ? values[equal[1] ?? ""] === equal[2] : term in values;
  });
}

function fieldOf(object: LiveObject, path: string): string {
  let value: unknown = object;
  for (const part of path.split(".")) value = typeof value === "object" && value !== null ? Reflect.get(value, part) : undefined;
  return typeof value === "string" ? value : "";
}

export class FakeCluster implements Cluster {
  readonly server = "https://fake.invalid";
  /** Everything that was asked, in order; `clear` it with `requests.length = 0`. */
  readonly requests: FakeRequest[] = [];
  /** Called before each request takes effect: a test may change the world in between, or throw. */
  before: ((request: FakeRequest) => void | Promise<void>) | undefined;
  /** Called after a write went through and before its answer is seen: throw to lose the answer. */
  after: ((request: FakeRequest) => void | Promise<void>) | undefined;

  readonly #now: () => number;
  readonly #objects = new Map<string, Map<string, LiveObject>>();
  readonly #unserved = new Set<string>();
  readonly #kinds = new Map<string, ResourceKind>();
  readonly #watchers = new Set<Watcher>();
  readonly #faults: Fault[] = [];
  #happenings: Happening[] = [];
  #version = 100;
  #compacted = 0;

  constructor(options: { now?: () => number; kinds?: readonly ResourceKind[] } = {}) {
    this.#now = options.now ?? Date.now;
    for (const kind of options.kinds ?? []) this.#kinds.set(`${qualifiedName(kind)}/${kind.version}`, kind);
  }

  // ---- what tests do to it

  /** Stores an object as it is, status included, and tells watchers. */
  seed(kind: ResourceKind, object: { metadata: ObjectMeta; [field: string]: unknown }): LiveObject {
    const complete: KubernetesObject = { ...object, apiVersion: apiVersionOf(kind), kind: kind.kind };
    const existing = this.#of(kind).get(keyOf(complete));
    return this.#store(
      kind,
      { ...structuredClone(complete), metadata: { ...this.#born(complete), ...structuredClone(complete.metadata) } },
      existing === undefined ? "ADDED" : "MODIFIED",
    );
  }

  /** The stored object, without counting as a request. */
  peek(kind: ResourceKind, key: string): LiveObject | undefined {
    const found = this.#of(kind).get(key);
    return found === undefined ? undefined : structuredClone(found);
  }

  all(kind: ResourceKind): LiveObject[] {
    return [...this.#of(kind).values()].map((object) => structuredClone(object));
  }

  /** Changes a stored object as another client would, status included. */
  edit(kind: ResourceKind, key: string, change: (object: LiveObject) => void): LiveObject {
    const object = this.peek(kind, key);
    if (object === undefined) throw new Error(`${kind.kind} ${key} does not exist`);
    change(object);
    return this.#settleChange(kind, object);
  }

  /** Takes the object away at once, whatever its finalizers. */
  remove(kind: ResourceKind, key: string): void {
    const object = this.#of(kind).get(key);
    if (object !== undefined) this.#store(kind, object, "DELETED");
  }

  unserve(kind: ResourceKind): void {
    this.#unserved.add(qualifiedName(kind));
    this.#endWatches(qualifiedName(kind), "closed");
  }

  serve(kind: ResourceKind): void {
    this.#unserved.delete(qualifiedName(kind));
  }

  /** The next `times` matching requests fail: before they take effect, or `after` it, as a lost answer does. */
  fail(matches: (request: FakeRequest) => boolean, kind: ClusterErrorKind, options: { times?: number; after?: boolean } = {}): void {
    this.#faults.push({ matches, error: fakeError(kind), after: options.after ?? false, left: options.times ?? 1 });
  }

  heal(): void {
    this.#faults.length = 0;
  }

  /** Ends running watches: as the server does now and then, or with an error. */
  cutWatches(kind?: ResourceKind, error?: ClusterErrorKind): void {
    this.#endWatches(kind === undefined ? undefined : qualifiedName(kind), error === undefined ? "closed" : fakeError(error));
  }

  /** Running watches stay open and say nothing any more. */
  silenceWatches(): void {
    for (const watcher of this.#watchers) watcher.silent = true;
  }

  /** Forgets the past, so that watches from an older resourceVersion fail with `gone`. */
  compact(): void {
    this.#compacted = this.#version;
    this.#happenings = [];
  }

  get watching(): number {
    return this.#watchers.size;
  }

  /** Sends a bookmark on every running watch. */
  bookmark(): void {
    this.#version++;
    for (const watcher of this.#watchers) watcher.wake();
  }

  // ---- Cluster

  async get(kind: ResourceKind, key: ObjectKey, _options: RequestOptions = {}): Promise<LiveObject> {
    const name = keyOf({ metadata: key });
    return this.#request({ verb: "get", resource: qualifiedName(kind), key: name, write: false }, () => this.#found(kind, name));
  }

  async list(kind: ResourceKind, options: ListOptions = {}): Promise<ObjectList> {
    return this.#request({ verb: "list", resource: qualifiedName(kind), key: options.namespace ?? "", write: false }, () => ({
      resourceVersion: String(this.#version),
      items: [...this.#of(kind).values()].filter((object) => this.#selected(object, options)).map((object) => this.#shown(kind, object)),
    }));
  }

  async create(kind: ResourceKind, object: KubernetesObject, options: WriteOptions = {}): Promise<LiveObject> {
    return this.#request(this.#writeOf("create", kind, object.metadata, options, object), () => {
      if (this.#of(kind).has(keyOf(object)))
        throw fakeError("alreadyExists", `POST ${qualifiedName(kind)}`, `${kind.plural} "${object.metadata.name}" already exists`);
      const metadata = { ...structuredClone(object.metadata), ...this.#born(object) };
      const stored = { ...structuredClone(object), metadata };
      if (this.#hasStatus(kind)) Reflect.deleteProperty(stored, "status");
      return options.dryRun ? stored : this.#shown(kind, this.#store(kind, stored, "ADDED"));
    });
  }

  async replace(kind: ResourceKind, object: KubernetesObject, options: WriteOptions = {}): Promise<LiveObject> {
    return this.#request(this.#writeOf("replace", kind, object.metadata, options, object), () =>
      this.#change(kind, keyOf(object), options, object.metadata, (old) => ({
        ...structuredClone(object),
        metadata: { ...old.metadata, ...structuredClone(object.metadata) },
      })),
    );
  }

  async patch(kind: ResourceKind, key: ObjectKey, type: PatchType, body: object | JsonPatchOperation[], options: WriteOptions = {}): Promise<LiveObject> {
    return this.#request(this.#writeOf("patch", kind, key, options, body), () => {
      const metadata: unknown = Array.isArray(body) ? undefined : Reflect.get(body, "metadata");
      return this.#change(kind, keyOf({ metadata: key }), options, metadata, (old) =>
        Array.isArray(body) ? jsonPatch(old, body) : mergePatch(old, body, type === "strategic"),
      );
    });
  }

  async apply(kind: ResourceKind, object: KubernetesObject, options: ApplyOptions): Promise<LiveObject> {
    return this.#request(this.#writeOf("apply", kind, object.metadata, options, object), () => {
      if (this.#of(kind).has(keyOf(object))) return this.#change(kind, keyOf(object), options, object.metadata, (old) => mergePatch(old, object, false));
      const stored = { ...structuredClone(object), metadata: { ...structuredClone(object.metadata), ...this.#born(object) } };
      if (this.#hasStatus(kind)) Reflect.deleteProperty(stored, "status");
      return options.dryRun ? stored : this.#shown(kind, this.#store(kind, stored, "ADDED"));
    });
  }

  async delete(kind: ResourceKind, key: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    const name = keyOf({ metadata: key });
    await this.#request({ verb: "delete", resource: qualifiedName(kind), key: name, body: options, write: true }, () => {
      const object = this.#found(kind, name);
      this.#precondition(object, options);
      if ((object.metadata.finalizers ?? []).length === 0) {
        this.#store(kind, object, "DELETED");
      } else if (object.metadata.deletionTimestamp === undefined) {
        object.metadata.deletionTimestamp = this.#stamp();
        this.#store(kind, object, "MODIFIED");
      }
    });
  }

  async *watch(kind: ResourceKind, options: WatchOptions = {}): AsyncGenerator<WatchEvent> {
    const resource = qualifiedName(kind);
    await this.#request({ verb: "watch", resource, key: options.namespace ?? "", write: false }, () => undefined);
    let at = options.resourceVersion === undefined ? this.#version : Number(options.resourceVersion);
    if (at < this.#compacted) throw fakeError("gone", `WATCH ${resource}`, "too old resource version");
    const initial = options.resourceVersion === undefined ? [...this.#of(kind).values()].filter((object) => this.#selected(object, options)) : [];
    let wake: (() => void) | undefined;
    const watcher: Watcher = { resource, silent: false, wake: () => wake?.() };
    const abort = (): void => {
      watcher.end = fakeError("unreachable");
      watcher.wake();
    };
    this.#watchers.add(watcher);
    options.signal?.addEventListener("abort", abort, { once: true });
    try {
      for (const object of initial) yield { type: "ADDED", object: this.#shown(kind, object) };
      for (;;) {
        if (options.signal?.aborted) throw fakeError("unreachable");
        if (watcher.end instanceof ClusterError) throw watcher.end;
        if (watcher.end === "closed") return;
        if (!watcher.silent) {
          const seen = at;
          const news = this.#happenings.filter((happening) => happening.resource === resource && happening.resourceVersion > seen);
          at = this.#version;
          for (const { type, object } of news) {
            if (this.#selected(object, options)) yield { type, object: this.#shown(kind, object) };
          }
          if (news.length === 0 && at > seen) yield { type: "BOOKMARK", resourceVersion: String(at) };
          if (this.#version > at) continue;
        }
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    } finally {
      options.signal?.removeEventListener("abort", abort);
      this.#watchers.delete(watcher);
    }
  }

  async discover(group: string, _options: RequestOptions = {}): Promise<ResourceKind[]> {
    return this.#request({ verb: "discover", resource: group, key: "", write: false }, () =>
      [...this.#kinds.values()].filter((kind) => kind.group === group && !this.#unserved.has(qualifiedName(kind))),
    );
  }

  serverVersion(): Promise<string> {
    return Promise.resolve("v1.37.2");
  }

  close(): Promise<void> {
    this.#endWatches(undefined, fakeError("unreachable"));
    return Promise.resolve();
  }

  // ---- inside

  async #request<T>(request: FakeRequest, effect: () => T): Promise<T> {
    this.requests.push(request);
    await Promise.resolve();
    await this.before?.(request);
    const fault = this.#faults.find((candidate) => candidate.left > 0 && candidate.matches(request));
    if (fault !== undefined) fault.left--;
    if (fault !== undefined && !fault.after) throw fault.error;
    if (request.verb !== "discover" && this.#unserved.has(request.resource))
      throw fakeError("kindNotServed", request.verb, "the server could not find the requested resource");
    const result = effect();
    if (request.write) await this.after?.(request);
    await Promise.resolve();
    if (fault !== undefined) throw fault.error;
    return result;
  }

  #writeOf(verb: FakeVerb, kind: ResourceKind, key: ObjectKey, options: WriteOptions, body: unknown): FakeRequest {
    return {
      verb,
      resource: qualifiedName(kind),
      key: keyOf({ metadata: key }),
      body: structuredClone(body),
      write: writes.has(verb) && options.dryRun !== true,
      ...(options.subresource === undefined ? {} : { subresource: options.subresource }),
    };
  }

  #of(kind: ResourceKind): Map<string, LiveObject> {
    const resource = qualifiedName(kind);
    let objects = this.#objects.get(resource);
    if (objects === undefined) this.#objects.set(resource, (objects = new Map<string, LiveObject>()));
    if (!this.#kinds.has(`${resource}/${kind.version}`)) this.#kinds.set(`${resource}/${kind.version}`, kind);
    return objects;
  }

  #found(kind: ResourceKind, key: string): LiveObject {
    const object = this.#of(kind).get(key);
    if (object === undefined) throw fakeError("notFound", `GET ${qualifiedName(kind)}`, `${kind.plural} "${key}" not found`);
    return this.#shown(kind, object);
  }

  /** Versions of one kind share their storage, as with conversion `None`. */
  #shown(kind: ResourceKind, object: LiveObject): LiveObject {
    return { ...structuredClone(object), apiVersion: apiVersionOf(kind) };
  }

  #hasStatus(kind: ResourceKind): boolean {
    return !withoutStatusSubresource.has(qualifiedName(kind));
  }

  #stamp(): string {
    return new Date(this.#now()).toISOString().replace(/\.\d+Z$/, "Z");
  }

  #born(object: Pick<KubernetesObject, "metadata">): LiveObject["metadata"] {
    return { name: object.metadata.name, uid: randomUUID(), resourceVersion: "0", generation: 1, creationTimestamp: this.#stamp() };
  }

  #selected(object: LiveObject, options: ListOptions): boolean {
    if (options.namespace !== undefined && object.metadata.namespace !== undefined && object.metadata.namespace !== options.namespace) return false;
    if (!matchesSelector(object.metadata.labels ?? {}, options.labelSelector)) return false;
    return (options.fieldSelector ?? "")
      .split(",")
      .filter((term) => term !== "")
      .every((term) => {
        const [path = "", value = ""] = term.split("=");
        return fieldOf(object, path) === value;
      });
  }

  #precondition(old: LiveObject, wanted: unknown): void {
    if (typeof wanted !== "object" || wanted === null) return;
    for (const field of ["uid", "resourceVersion"] as const) {
      const value: unknown = Reflect.get(wanted, field);
      if (typeof value === "string" && value !== old.metadata[field]) {
        throw fakeError("conflict", `${old.kind} ${keyOf(old)}`, "the object has been modified; please apply your changes to the latest version and try again");
      }
    }
  }

  #change(kind: ResourceKind, key: string, options: WriteOptions, metadata: unknown, edit: (old: LiveObject) => KubernetesObject): LiveObject {
    const old = this.#found(kind, key);
    this.#precondition(old, metadata);
    const wanted = edit(structuredClone(old));
    const kept = { apiVersion: old.apiVersion, kind: old.kind };
    let next: LiveObject;
    if (options.subresource === "status") {
      next = { ...old, ...kept, status: wanted["status"] };
    } else {
      const { uid, resourceVersion, creationTimestamp, generation, deletionTimestamp } = old.metadata;
      const fixed = {
        uid,
        resourceVersion,
        ...(creationTimestamp === undefined ? {} : { creationTimestamp }),
        ...(generation === undefined ? {} : { generation }),
        ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      };
      next = { ...wanted, ...kept, metadata: { ...wanted.metadata, ...fixed } };
      if (this.#hasStatus(kind)) {
        if (old["status"] === undefined) Reflect.deleteProperty(next, "status");
        else next["status"] = old["status"];
      }
    }
    return options.dryRun ? next : this.#shown(kind, this.#settleChange(kind, next));
  }

  /** Stores a changed object: nothing for no change, gone where the last finalizer of a deleted one goes. */
  #settleChange(kind: ResourceKind, next: LiveObject): LiveObject {
    const old = this.#found(kind, keyOf(next));
    if (isDeepStrictEqual({ ...old, apiVersion: "" }, { ...next, apiVersion: "" })) return old;
    if (!isDeepStrictEqual(without(old, "metadata", "status", "apiVersion"), without(next, "metadata", "status", "apiVersion"))) {
      next.metadata.generation = (old.metadata.generation ?? 0) + 1;
    }
    const gone = next.metadata.deletionTimestamp !== undefined && (next.metadata.finalizers ?? []).length === 0;
    return this.#store(kind, next, gone ? "DELETED" : "MODIFIED");
  }

  #store(kind: ResourceKind, object: KubernetesObject, type: Happening["type"]): LiveObject {
    this.#version++;
    const stored: LiveObject = {
      ...structuredClone(object),
      metadata: { ...this.#born(object), ...structuredClone(object.metadata), resourceVersion: String(this.#version) },
    };
    if (type === "DELETED") this.#of(kind).delete(keyOf(stored));
    else this.#of(kind).set(keyOf(stored), stored);
    this.#happenings.push({ resourceVersion: this.#version, resource: qualifiedName(kind), type, object: structuredClone(stored) });
    for (const watcher of this.#watchers) watcher.wake();
    return structuredClone(stored);
  }

  #endWatches(resource: string | undefined, end: "closed" | ClusterError): void {
    for (const watcher of this.#watchers) {
      if (resource !== undefined && watcher.resource !== resource) continue;
      watcher.end = end;
      watcher.wake();
    }
  }
}
