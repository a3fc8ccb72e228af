/**
 * What can go wrong with a request to a Kubernetes API server, as kinds that code can branch on.
 *
 * - `notFound`: the object does not exist although its kind is served
 * - `kindNotServed`: the API server does not know the kind (its CustomResourceDefinition is missing)
 * - `alreadyExists`, `conflict`: a create that lost, a write whose precondition did not hold
 * - `fieldConflict`: server-side apply met a field that another manager owns
 * - `unauthorized`, `forbidden`: credentials refused, permission missing
 * - `invalid`: the API server or an admission webhook refused the content
 * - `gone`: a watch or list position that the server no longer has
 * - `throttled`: asked to come back later
 * - `unreachable`, `timeout`: no answer; a write may or may not have happened
 * - `server`: any other answer of the 5xx kind
 */
export type ClusterErrorKind =
  | "notFound"
  | "kindNotServed"
  | "alreadyExists"
  | "conflict"
  | "fieldConflict"
  | "unauthorized"
  | "forbidden"
  | "invalid"
  | "gone"
  | "throttled"
  | "unreachable"
  | "timeout"
  | "server";

export class ClusterError extends Error {
  override readonly name = "ClusterError";
  readonly kind: ClusterErrorKind;
  /** What was asked: verb and object, without query or credentials. */
  readonly request: string;
  /** HTTP status, where there was an answer. */
  readonly status: number | undefined;
  /** Fields that were refused, or that another manager owns, as the API server names them. */
  readonly fields: readonly string[];
  /** Seconds after which the server wants to be asked again. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    kind: ClusterErrorKind,
    request: string,
    message: string,
    details: { status?: number; fields?: readonly string[]; retryAfterSeconds?: number; cause?: unknown } = {},
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    this.request = request;
    this.status = details.status;
    this.fields = details.fields ?? [];
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

export function isClusterError(error: unknown, ...kinds: ClusterErrorKind[]): error is ClusterError {
  return error instanceof ClusterError && (kinds.length === 0 || kinds.includes(error.kind));
}

/** Whether the same request may succeed when sent again without any change. */
export function isTransient(error: unknown): boolean {
  return isClusterError(error, "throttled", "unreachable", "timeout", "server");
}

interface StatusBody {
  reason?: string;
  message?: string;
  details?: { retryAfterSeconds?: number; causes?: { reason?: string; message?: string; field?: string }[] };
}

function parseStatus(body: string): StatusBody {
  try {
    const parsed: unknown = JSON.parse(body);
    return typeof parsed === "object" && parsed !== null ? parsed : {};
  } catch {
    return { message: body.slice(0, 300) };
  }
}

function kindOf(status: number, body: StatusBody, verb: string): ClusterErrorKind {
  const causes = body.details?.causes ?? [];
  switch (status) {
    case 400:
    case 413:
    case 415:
    case 422:
      return "invalid";
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
      // The API server answers a request for an unknown path without naming a kind.
      return body.details === undefined || Object.keys(body.details).length === 0 ? "kindNotServed" : "notFound";
    case 409:
      if (causes.some((cause) => cause.reason === "FieldManagerConflict")) return "fieldConflict";
      return body.reason === "AlreadyExists" || (body.reason === undefined && verb === "POST") ? "alreadyExists" : "conflict";
    case 410:
      return "gone";
    case 429:
      return "throttled";
    case 504:
      return "timeout";
    default:
      return status >= 500 ? "server" : "invalid";
  }
}

/** Maps an answer that is not a success. `request` is verb and path without query. */
export function errorOfAnswer(verb: string, request: string, status: number, retryAfter: string | undefined, text: string): ClusterError {
  const body = parseStatus(text);
  const fields = (body.details?.causes ?? []).flatMap((cause) => (cause.field === undefined ? [] : [cause.field]));
  const seconds = Number(retryAfter ?? body.details?.retryAfterSeconds);
  return new ClusterError(kindOf(status, body, verb), request, body.message ?? `the API server answered ${status}`, {
    status,
    fields,
    ...(Number.isFinite(seconds) && seconds > 0 ? { retryAfterSeconds: seconds } : {}),
  });
}
