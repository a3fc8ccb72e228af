/** What a request to an API server is about, read from its method and URL as the server itself does. */

export interface RequestInfo {
  /** `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; the method in lower case for other paths. */
  verb: string;
  /** Empty for the core group and for paths that name no resource. */
  group: string;
  /** Plural, `machines`; absent for paths that name no resource, such as `/version`. */
  resource?: string;
  subresource?: string;
  namespace?: string;
  name?: string;
  /** Whether it asks for a change that is stored: reviews and dry runs do not. */
  write: boolean;
}

const verbs: Record<string, string> = { POST: "create", PUT: "update", PATCH: "patch", DELETE: "delete", GET: "get", HEAD: "get" };
const REVIEW_GROUPS = new Set(["authorization.k8s.io", "authentication.k8s.io"]);
const READS = new Set(["get", "list", "watch"]);

function resourcePath(segments: readonly string[]): { group: string; rest: readonly string[] } | undefined {
  if (segments[0] === "api" && segments.length > 2) return { group: "", rest: segments.slice(2) };
  if (segments[0] === "apis" && segments.length > 3) return { group: segments[1] ?? "", rest: segments.slice(3) };
  return undefined;
}

export function requestInfo(method: string, url: string): RequestInfo {
  const { pathname, searchParams } = new URL(url, "https://api");
  const found = resourcePath(pathname.split("/").filter(Boolean).map(decodeURIComponent));
  const plain = verbs[method] ?? method.toLowerCase();
  if (found === undefined) return { verb: method.toLowerCase(), group: "", write: false };
  // `/namespaces/<n>/<resource>` is a resource in a namespace; `/namespaces/<n>` and its own subresources are the namespace itself.
  const inNamespace = found.rest[0] === "namespaces" && found.rest.length > 2 && found.rest[2] !== "status" && found.rest[2] !== "finalize";
  const namespace = inNamespace ? found.rest[1] : undefined;
  const [resource, name, subresource] = inNamespace ? found.rest.slice(2) : found.rest;
  let verb = plain;
  if (verb === "get" && name === undefined) verb = ["true", "1"].includes(searchParams.get("watch") ?? "") ? "watch" : "list";
  if (verb === "delete" && name === undefined) verb = "deletecollection";
  return {
    verb,
    group: found.group,
    ...(resource === undefined ? {} : { resource }),
    ...(subresource === undefined ? {} : { subresource }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    write: !READS.has(verb) && !REVIEW_GROUPS.has(found.group) && subresource !== "token" && searchParams.get("dryRun") !== "All",
  };
}
