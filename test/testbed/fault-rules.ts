/** Which requests a fault meets, and what it does to them. */
import type { RequestInfo } from "./request-info.ts";

/** Who asks, as far as the request says: the certificate's or token's user, the Pod a token is bound to, the user agent. */
export interface Client {
  user: string;
  groups: readonly string[];
  pod?: string;
  userAgent: string;
}

export interface ProxiedRequest extends RequestInfo, Client {
  /** When it arrived, milliseconds since the epoch. */
  at: number;
  method: string;
  path: string;
  /** The status that the client was answered, `cut` or `held` where it was not; absent while under way. */
  outcome?: number | "cut" | "held";
}

/** What is absent matches everything. */
export interface Match {
  /** `system:serviceaccount:<namespace>:<name>` or a certificate's common name; `system:anonymous` for neither. */
  user?: string;
  pod?: string;
  userAgent?: RegExp;
  only?: "writes" | "reads" | "watches";
  verb?: string;
  resource?: string;
  /** Leaves these out, so that writes which come by the clock do not disturb a count: `["leases", "events"]`. */
  exceptResources?: readonly string[];
  namespace?: string;
  name?: string;
  subresource?: string;
}

export type Fault =
  /** The connection is cut before the request is passed on, or once the server has carried it out but before its answer is passed back. */
  | { kind: "cut"; when: "before" | "after" }
  /** Answered by the proxy alone. */
  | { kind: "answer"; status: 409 | 429 | 500 | 503; retryAfterSeconds?: number }
  | { kind: "delay"; milliseconds: number }
  /** Watches stay open and fall silent, those already open too; nothing else is touched. */
  | { kind: "stall" }
  /** Nothing is passed on or answered; open watches fall silent. */
  | { kind: "blackHole" };

export interface Rule {
  match?: Match;
  /** Counts matching requests from 1 since the rule was added: only from the n-th on does the fault meet them. 1 by default. */
  nth?: number;
  /** How many requests it meets; one where `nth` is given, otherwise all. */
  times?: number;
  fault: Fault;
  /** Runs when the fault meets a request: before a cut, an answer or a delay takes effect. To kill a process before or after its n-th write. */
  act?: (request: ProxiedRequest) => void | Promise<void>;
}

export function matches(match: Match | undefined, request: ProxiedRequest): boolean {
  if (match === undefined) return true;
  const kinds = { writes: request.write, watches: request.verb === "watch", reads: !request.write && request.verb !== "watch" };
  if (match.only !== undefined && !kinds[match.only]) return false;
  if (match.userAgent !== undefined && !match.userAgent.test(request.userAgent)) return false;
  if (request.resource !== undefined && (match.exceptResources ?? []).includes(request.resource)) return false;
  return (["user", "pod", "verb", "resource", "namespace", "name", "subresource"] as const).every(
    (field) => match[field] === undefined || match[field] === request[field],
  );
}

export class RuleBook {
  readonly #rules = new Map<Rule, { seen: number; met: number }>();

  /** Returns what removes the rule. */
  add(rule: Rule): () => void {
    this.#rules.set(rule, { seen: 0, met: 0 });
    return () => this.#rules.delete(rule);
  }

  /** Counts the request for every rule and returns the first whose fault meets it. */
  meet(request: ProxiedRequest): Rule | undefined {
    let first: Rule | undefined;
    for (const [rule, count] of this.#rules) {
      if (!matches(rule.match, request)) continue;
      count.seen += 1;
      const times = rule.times ?? (rule.nth === undefined ? Infinity : 1);
      if (first !== undefined || count.seen < (rule.nth ?? 1) || count.met >= times) continue;
      // A stall is a state of watches, not something that happens to a request.
      if (rule.fault.kind === "stall") continue;
      count.met += 1;
      first = rule;
    }
    return first;
  }

  /** Whether an open watch is to be silent now. */
  silences(request: ProxiedRequest): boolean {
    return [...this.#rules.keys()].some(({ fault, match }) => (fault.kind === "stall" || fault.kind === "blackHole") && matches(match, request));
  }
}
