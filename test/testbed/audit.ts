/** An API server's audit log as typed requests: what was really asked of it, by whom. */
import { createReadStream } from "node:fs";
import { createInterface } from "node:readline";

import { z } from "zod";

export interface AuditedRequest {
  user: string;
  /** Name of the Pod that the user's token is bound to. */
  pod: string | undefined;
  userAgent: string;
  verb: string;
  /** Empty for the core group. */
  group: string;
  /** Plural; empty for requests that name no resource, such as `/version`. */
  resource: string;
  subresource: string | undefined;
  namespace: string | undefined;
  name: string | undefined;
  /** HTTP status of the answer. */
  code: number;
  /** When the request arrived, milliseconds since the epoch with a fraction. */
  time: number;
  /** When it was answered; a watch is answered when it begins. */
  answeredAt: number;
  uri: string;
  /** Of writes; absent where the object may hold a secret. */
  requestBody: unknown;
}

/** What is absent matches everything. */
export interface AuditFilter {
  user?: string;
  pod?: string;
  userAgent?: RegExp;
  verb?: string | readonly string[];
  group?: string;
  resource?: string;
  /** `undefined` given explicitly asks for the object itself. */
  subresource?: string | undefined;
  namespace?: string;
  name?: string;
  /** Only answers of this status. */
  code?: number;
  /** Only requests that arrived at or after this time, milliseconds since the epoch. */
  since?: number;
}

const WRITE_VERBS: ReadonlySet<string> = new Set(["create", "update", "patch", "delete", "deletecollection"]);
const REVIEW_GROUPS: ReadonlySet<string> = new Set(["authorization.k8s.io", "authentication.k8s.io"]);
const POD_CLAIM = "authentication.kubernetes.io/pod-name";

const line = z.looseObject({
  auditID: z.string(),
  stage: z.string(),
  requestURI: z.string(),
  verb: z.string(),
  user: z.looseObject({ username: z.string().optional(), extra: z.record(z.string(), z.array(z.string())).optional() }),
  userAgent: z.string().optional(),
  objectRef: z
    .looseObject({
      apiGroup: z.string().optional(),
      resource: z.string().optional(),
      subresource: z.string().optional(),
      namespace: z.string().optional(),
      name: z.string().optional(),
    })
    .optional(),
  responseStatus: z.looseObject({ code: z.number().optional() }).optional(),
  requestObject: z.unknown().optional(),
  requestReceivedTimestamp: z.string(),
  stageTimestamp: z.string(),
});

/** Keeps the microseconds that Date drops. */
function milliseconds(timestamp: string): number {
  const micros = /\.(\d{3})(\d{3})Z$/.exec(timestamp)?.[2];
  return Date.parse(timestamp) + Number(micros ?? 0) / 1000;
}

function requestOf(entry: z.infer<typeof line>): AuditedRequest {
  return {
    user: entry.user.username ?? "",
    pod: entry.user.extra?.[POD_CLAIM]?.[0],
    userAgent: entry.userAgent ?? "",
    verb: entry.verb,
    group: entry.objectRef?.apiGroup ?? "",
    resource: entry.objectRef?.resource ?? "",
    subresource: entry.objectRef?.subresource,
    namespace: entry.objectRef?.namespace,
    name: entry.objectRef?.name,
    code: entry.responseStatus?.code ?? 0,
    time: milliseconds(entry.requestReceivedTimestamp),
    answeredAt: milliseconds(entry.stageTimestamp),
    uri: entry.requestURI,
    requestBody: entry.requestObject,
  };
}

/**
 * All answered requests in the order of their arrival; a watch counts from its beginning. The server writes an entry with its answer, so one
 * that has just been answered may be missing for a moment: wait for it.
 */
export async function readAuditLog(path: string, filter: AuditFilter = {}): Promise<AuditedRequest[]> {
  const requests = new Map<string, AuditedRequest>();
  for await (const text of createInterface({ input: createReadStream(path, "utf8"), crlfDelay: Infinity })) {
    let parsed: unknown;
    try {
      parsed = JSON.parse(text);
    } catch {
      // The last line, while it is being written.
      continue;
    }
    const entry = line.parse(parsed);
    // The end of a watch says nothing new.
    if (entry.stage === "RequestReceived" || requests.has(entry.auditID)) continue;
    requests.set(entry.auditID, requestOf(entry));
  }
  return [...requests.values()].filter((request) => passes(request, filter)).sort((one, other) => one.time - other.time);
}

function passes(request: AuditedRequest, filter: AuditFilter): boolean {
  const verbs = filter.verb === undefined ? undefined : [filter.verb].flat();
  if (verbs !== undefined && !verbs.includes(request.verb)) return false;
  if (filter.userAgent !== undefined && !filter.userAgent.test(request.userAgent)) return false;
  if (filter.since !== undefined && request.time < filter.since) return false;
  if ("subresource" in filter && filter.subresource !== request.subresource) return false;
  return (["user", "pod", "group", "resource", "namespace", "name", "code"] as const).every(
    (field) => filter[field] === undefined || filter[field] === request[field],
  );
}

/** Whether the request asks for a change that is stored: reviews, token requests and dry runs do not. */
export function isWrite(request: AuditedRequest): boolean {
  const dryRun = new URL(request.uri, "https://api").searchParams.get("dryRun") === "All";
  return WRITE_VERBS.has(request.verb) && !REVIEW_GROUPS.has(request.group) && request.subresource !== "token" && !dryRun;
}

/** Every write of one user, whatever its answer. */
export async function writesBy(path: string, user: string, filter: Omit<AuditFilter, "user"> = {}): Promise<AuditedRequest[]> {
  return (await readAuditLog(path, { ...filter, user })).filter(isWrite);
}

export function serviceAccountUser(namespace: string, name: string): string {
  return `system:serviceaccount:${namespace}:${name}`;
}
