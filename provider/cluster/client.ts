/** `Cluster` over undici: generic JSON requests, so that no generated model of any kind has to be loaded. */
import { Agent, request as send } from "undici";
import type { Dispatcher } from "undici";

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
} from "./cluster.ts";
import type { Connection } from "./connection.ts";
import { ClusterError, errorOfAnswer, isClusterError } from "./errors.ts";
import type { KubernetesObject, LiveObject, ObjectKey, ResourceKind } from "./objects.ts";
import { decodeWatch } from "./watch.ts";

const DEFAULT_TIMEOUT_MS = 15_000;
const DEFAULT_IDLE_TIMEOUT_MS = 90_000;
const CONNECT_TIMEOUT_MS = 10_000;
const PAGE_SIZE = 500;

const patchContentType: Record<PatchType | "apply", string> = {
  merge: "application/merge-patch+json",
  json: "application/json-patch+json",
  strategic: "application/strategic-merge-patch+json",
  apply: "application/apply-patch+yaml",
};

interface Call {
  method: Dispatcher.HttpMethod;
  path: string;
  query?: Record<string, string | undefined>;
  body?: unknown;
  contentType?: string;
}

export interface ClientOptions {
  /** Shown to the API server, and so in its audit log, in front of the version of Node. */
  userAgent?: string;
}

function collectionPath(kind: ResourceKind, namespace: string | undefined): string {
  const root = kind.group === "" ? `/api/${kind.version}` : `/apis/${kind.group}/${kind.version}`;
  const scope = kind.namespaced && namespace !== undefined ? `/namespaces/${encodeURIComponent(namespace)}` : "";
  return `${root}${scope}/${kind.plural}`;
}

function objectPath(kind: ResourceKind, key: ObjectKey, subresource?: string): string {
  if (kind.namespaced && key.namespace === undefined) throw new TypeError(`${kind.kind} ${key.name}: the namespace is missing`);
  const path = `${collectionPath(kind, key.namespace)}/${encodeURIComponent(key.name)}`;
  return subresource === undefined ? path : `${path}/${subresource}`;
}

function keyOfObject(object: KubernetesObject): ObjectKey {
  const { namespace, name } = object.metadata;
  return namespace === undefined ? { name } : { namespace, name };
}

function writeQuery(options: WriteOptions): Record<string, string | undefined> {
  return { fieldManager: options.fieldManager, dryRun: options.dryRun ? "All" : undefined };
}

/** The kind of a failure below HTTP, from the code that Node or undici gives it. */
function errorOfTransport(request: string, error: unknown, timedOut: boolean): ClusterError {
  if (isClusterError(error)) return error;
  const code = error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
  if (timedOut || code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT") {
    return new ClusterError("timeout", request, "the API server did not answer in time", { cause: error });
  }
  const reason = code ?? (error instanceof Error ? error.message : String(error));
  return new ClusterError("unreachable", request, `the API server cannot be reached (${reason})`, { cause: error });
}

export class ClusterClient implements Cluster {
  readonly server: string;
  readonly #connection: Connection;
  readonly #agent: Agent;
  readonly #userAgent: string;

  constructor(connection: Connection, options: ClientOptions = {}) {
    this.server = connection.server;
    this.#connection = connection;
    this.#userAgent = `${options.userAgent ?? "pulumi-baremetal"} node/${process.versions.node}`;
    this.#agent = new Agent({
      connect: {
        timeout: CONNECT_TIMEOUT_MS,
        rejectUnauthorized: connection.insecureSkipTlsVerify !== true,
        ...(connection.certificateAuthority === undefined ? {} : { ca: connection.certificateAuthority }),
        ...(connection.clientCertificate === undefined ? {} : { cert: connection.clientCertificate }),
        ...(connection.clientKey === undefined ? {} : { key: connection.clientKey }),
        ...(connection.serverName === undefined ? {} : { servername: connection.serverName }),
      },
      headersTimeout: 0,
      bodyTimeout: 0,
    });
  }

  async get(kind: ResourceKind, key: ObjectKey, options: RequestOptions = {}): Promise<LiveObject> {
    return this.#object({ method: "GET", path: objectPath(kind, key) }, options);
  }

  async list(kind: ResourceKind, options: ListOptions = {}): Promise<ObjectList> {
    const items: LiveObject[] = [];
    let resourceVersion = "";
    let next: string | undefined;
    do {
      const page = await this.#json<{ items?: LiveObject[]; metadata: { resourceVersion: string; continue?: string } }>(
        {
          method: "GET",
          path: collectionPath(kind, options.namespace),
          query: { limit: String(PAGE_SIZE), continue: next, labelSelector: options.labelSelector, fieldSelector: options.fieldSelector },
        },
        options,
      );
      // Items of a list come without apiVersion and kind.
      for (const item of page.items ?? []) {
        items.push({ ...item, apiVersion: kind.group === "" ? kind.version : `${kind.group}/${kind.version}`, kind: kind.kind });
      }
      resourceVersion = page.metadata.resourceVersion;
      next = page.metadata.continue === "" ? undefined : page.metadata.continue;
    } while (next !== undefined);
    return { resourceVersion, items };
  }

  async create(kind: ResourceKind, object: KubernetesObject, options: WriteOptions = {}): Promise<LiveObject> {
    const path =
      options.subresource === undefined ? collectionPath(kind, object.metadata.namespace) : objectPath(kind, keyOfObject(object), options.subresource);
    return this.#object({ method: "POST", path, query: { ...writeQuery(options), fieldValidation: "Strict" }, body: object }, options);
  }

  async replace(kind: ResourceKind, object: KubernetesObject, options: WriteOptions = {}): Promise<LiveObject> {
    return this.#object({ method: "PUT", path: objectPath(kind, keyOfObject(object), options.subresource), query: writeQuery(options), body: object }, options);
  }

  async patch(kind: ResourceKind, key: ObjectKey, type: PatchType, body: object | JsonPatchOperation[], options: WriteOptions = {}): Promise<LiveObject> {
    return this.#object(
      { method: "PATCH", path: objectPath(kind, key, options.subresource), query: writeQuery(options), body, contentType: patchContentType[type] },
      options,
    );
  }

  async apply(kind: ResourceKind, object: KubernetesObject, options: ApplyOptions): Promise<LiveObject> {
    return this.#object(
      {
        method: "PATCH",
        path: objectPath(kind, keyOfObject(object), options.subresource),
        query: { ...writeQuery(options), force: options.force ? "true" : undefined, fieldValidation: "Strict" },
        body: object,
        contentType: patchContentType.apply,
      },
      options,
    );
  }

  async delete(kind: ResourceKind, key: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    const { uid, resourceVersion, propagation, gracePeriodSeconds } = options;
    await this.#json<unknown>(
      {
        method: "DELETE",
        path: objectPath(kind, key),
        body: {
          apiVersion: "v1",
          kind: "DeleteOptions",
          propagationPolicy: propagation ?? "Background",
          ...(gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds }),
          ...(uid === undefined && resourceVersion === undefined ? {} : { preconditions: { uid, resourceVersion } }),
        },
      },
      options,
    );
  }

  async *watch(kind: ResourceKind, options: WatchOptions = {}): AsyncGenerator<WatchEvent> {
    const path = collectionPath(kind, options.namespace);
    const request = `WATCH ${path}`;
    const idle = new AbortController();
    const idleTimeoutMs = options.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS;
    const timer = setTimeout(() => idle.abort(), idleTimeoutMs);
    const signal = options.signal === undefined ? idle.signal : AbortSignal.any([idle.signal, options.signal]);
    try {
      const answer = await this.#send(
        {
          method: "GET",
          path,
          query: {
            watch: "true",
            allowWatchBookmarks: "true",
            resourceVersion: options.resourceVersion,
            labelSelector: options.labelSelector,
            fieldSelector: options.fieldSelector,
          },
        },
        signal,
      );
      if (answer.statusCode >= 400) throw errorOfAnswer("WATCH", request, answer.statusCode, undefined, await answer.body.text());
      for await (const event of decodeWatch(request, answer.body)) {
        timer.refresh();
        yield event;
      }
    } catch (error) {
      throw errorOfTransport(request, error, idle.signal.aborted);
    } finally {
      clearTimeout(timer);
      idle.abort();
    }
  }

  async discover(group: string, options: RequestOptions = {}): Promise<ResourceKind[]> {
    const versions = group === "" ? ["v1"] : await this.#versionsOf(group, options);
    const kinds: ResourceKind[] = [];
    for (const version of versions) {
      const path = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
      const served = await this.#json<{ resources: { name: string; kind: string; namespaced: boolean }[] }>({ method: "GET", path }, options);
      for (const { name, kind, namespaced } of served.resources) {
        if (!name.includes("/")) kinds.push({ group, version, plural: name, kind, namespaced });
      }
    }
    return kinds;
  }

  async serverVersion(options: RequestOptions = {}): Promise<string> {
    return (await this.#json<{ gitVersion: string }>({ method: "GET", path: "/version" }, options)).gitVersion;
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #versionsOf(group: string, options: RequestOptions): Promise<string[]> {
    try {
      const found = await this.#json<{ versions: { version: string }[]; preferredVersion: { version: string } }>(
        { method: "GET", path: `/apis/${group}` },
        options,
      );
      const preferred = found.preferredVersion.version;
      return [preferred, ...found.versions.map(({ version }) => version).filter((version) => version !== preferred)];
    } catch (error) {
      if (isClusterError(error, "kindNotServed", "notFound")) return [];
      throw error;
    }
  }

  async #object(call: Call, options: RequestOptions): Promise<LiveObject> {
    return this.#json<LiveObject>(call, options);
  }

  async #json<T>(call: Call, options: RequestOptions): Promise<T> {
    const request = `${call.method} ${call.path}`;
    const deadline = AbortSignal.timeout(options.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    const signal = options.signal === undefined ? deadline : AbortSignal.any([deadline, options.signal]);
    let status: number;
    let retryAfter: string | undefined;
    let text: string;
    try {
      const answer = await this.#send(call, signal);
      status = answer.statusCode;
      const header = answer.headers["retry-after"];
      retryAfter = Array.isArray(header) ? header[0] : header;
      text = await answer.body.text();
    } catch (error) {
      throw errorOfTransport(request, error, deadline.aborted);
    }
    if (status >= 300) throw errorOfAnswer(call.method, request, status, retryAfter, text);
    try {
      return JSON.parse(text) as T;
    } catch (error) {
      throw new ClusterError("server", request, "the API server's answer is not JSON", { status, cause: error });
    }
  }

  async #send(call: Call, signal: AbortSignal): Promise<Dispatcher.ResponseData> {
    const url = new URL(this.#connection.server + call.path);
    for (const [name, value] of Object.entries(call.query ?? {})) {
      if (value !== undefined) url.searchParams.set(name, value);
    }
    const headers: Record<string, string> = { accept: "application/json", "user-agent": this.#userAgent, ...(await this.#connection.authorize?.()) };
    if (call.body !== undefined) headers["content-type"] = call.contentType ?? "application/json";
    return send(url, { dispatcher: this.#agent, method: call.method, headers, signal, body: call.body === undefined ? null : JSON.stringify(call.body) });
  }
}
