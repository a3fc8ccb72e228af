/** The one door to a Kubernetes API: what the rest of the code may ask of a cluster. */
import type { KubernetesObject, LiveObject, ObjectKey, ResourceKind } from "./objects.ts";

export type PatchType = "merge" | "json" | "strategic";

export interface JsonPatchOperation {
  op: "add" | "remove" | "replace" | "test";
  path: string;
  value?: unknown;
}

export interface RequestOptions {
  signal?: AbortSignal;
  /** Milliseconds until an unanswered request fails with kind `timeout`; 15,000 by default. */
  timeoutMs?: number;
}

export interface WriteOptions extends RequestOptions {
  /** Let the API server check and default the object without storing it. */
  dryRun?: boolean;
  fieldManager?: string;
  /** A subresource to write in place of the object, such as `status`. */
  subresource?: string;
}

export interface ApplyOptions extends WriteOptions {
  fieldManager: string;
  /** Take over fields that another manager owns. Never set for fields that a user may own. */
  force?: boolean;
}

export interface ListOptions extends RequestOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
}

export interface ObjectList {
  resourceVersion: string;
  items: LiveObject[];
}

export type WatchEvent = { type: "ADDED" | "MODIFIED" | "DELETED"; object: LiveObject } | { type: "BOOKMARK"; resourceVersion: string };

export interface WatchOptions extends ListOptions {
  resourceVersion?: string;
  /** Milliseconds of silence (bookmarks count as sound) after which the watch fails with kind `timeout`; 90,000 by default. */
  idleTimeoutMs?: number;
}

export interface DeleteOptions extends RequestOptions {
  /** Delete only this very object, or this version of it; otherwise kind `conflict`. */
  uid?: string;
  resourceVersion?: string;
  propagation?: "Background" | "Foreground" | "Orphan";
  gracePeriodSeconds?: number;
}

/** Every method throws `ClusterError`, and nothing else, when the request does not succeed. */
export interface Cluster {
  /** Address of the API server, for messages. */
  readonly server: string;
  get(kind: ResourceKind, key: ObjectKey, options?: RequestOptions): Promise<LiveObject>;
  /** Follows the server's pages to the end. */
  list(kind: ResourceKind, options?: ListOptions): Promise<ObjectList>;
  create(kind: ResourceKind, object: KubernetesObject, options?: WriteOptions): Promise<LiveObject>;
  /** Replaces the object; fails with `conflict` unless its resourceVersion is the stored one. */
  replace(kind: ResourceKind, object: KubernetesObject, options?: WriteOptions): Promise<LiveObject>;
  patch(kind: ResourceKind, key: ObjectKey, type: PatchType, body: object | JsonPatchOperation[], options?: WriteOptions): Promise<LiveObject>;
  /** Server-side apply with strict field validation. */
  apply(kind: ResourceKind, object: KubernetesObject, options: ApplyOptions): Promise<LiveObject>;
  delete(kind: ResourceKind, key: ObjectKey, options?: DeleteOptions): Promise<void>;
  /** Ends when the server closes it; throws `ClusterError` (kind `gone`, `timeout`, `unreachable`…) otherwise. */
  watch(kind: ResourceKind, options?: WatchOptions): AsyncIterable<WatchEvent>;
  /** The kinds that the group serves in its preferred version first; empty where the group is unknown. */
  discover(group: string, options?: RequestOptions): Promise<ResourceKind[]>;
  /** The server's own version, for example `v1.34.2`. */
  serverVersion(options?: RequestOptions): Promise<string>;
  /** Closes all connections; requests under way fail with kind `unreachable`. */
  close(): Promise<void>;
}
