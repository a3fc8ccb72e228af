/** Opens sessions: where a BMC keeps them, and what it answers to a login. */
import { z } from "zod";

import type { Answer } from "./answers.ts";
import type { Credentials } from "./breaker.ts";
import type { BmcConnection, Exchange } from "./connection.ts";
import type { serviceRoot } from "./models.ts";

/** A BMC that has just started takes its time over the first login. */
const LOGIN_TIMEOUT_MS = 30_000;

export interface Session {
  token: string;
  /** Path of the session, where the BMC told it. */
  path?: string;
}

export type LoginAnswer = { outcome: "session"; session: Session } | { outcome: "refused" } | { outcome: "failed"; answer: Answer };

const sessionBody = z.object({ "@odata.id": z.string() });
const sessionService = z.object({ Sessions: z.object({ "@odata.id": z.string() }) });

/** Linked by the root, which is open to all; else by the session service, where that is open too. */
export async function sessionsPath(connection: BmcConnection, root: z.infer<typeof serviceRoot>, signal: AbortSignal | undefined): Promise<string | undefined> {
  const linked = root.Links?.Sessions?.["@odata.id"];
  if (linked !== undefined) return collectionPath(connection.pathOf(linked));
  const service = root.SessionService?.["@odata.id"];
  if (service === undefined) return undefined;
  const path = connection.pathOf(service);
  const answer = await connection.send({ method: "GET", path }, signal);
  const found = answer.status === 200 ? sessionService.safeParse(answer.body).data?.Sessions["@odata.id"] : undefined;
  return found === undefined ? undefined : collectionPath(connection.pathOf(found, path));
}

/** The password goes to a collection of sessions and to nothing else that a link may lead to. */
function collectionPath(path: string): string | undefined {
  return /\/sessions\/?$/i.test(path) ? path : undefined;
}

export function isSessionPath(path: string): boolean {
  return /\/sessions\/[^/?]+\/?$/i.test(path);
}

/** `context` is kept with the session by BMCs that know it, for whoever finds the session later. */
export async function login(
  connection: BmcConnection,
  path: string,
  credentials: Credentials,
  context: string | undefined,
  signal: AbortSignal | undefined,
): Promise<LoginAnswer> {
  const exchange: Exchange = {
    method: "POST",
    path,
    body: { UserName: credentials.username, Password: credentials.password, ...(context === undefined ? {} : { Context: context }) },
    isLogin: true,
    timeoutMs: LOGIN_TIMEOUT_MS,
  };
  const answer = await connection.send(exchange, signal);
  const token = answer.headers["x-auth-token"];
  if (answer.status < 300 && token !== undefined && token !== "") {
    const location = answer.headers["location"] ?? sessionBody.safeParse(answer.body).data?.["@odata.id"];
    const sessionPath = location === undefined ? undefined : connection.pathOf(location, path);
    // It is deleted in the end: nothing else may be, whatever a BMC calls its session.
    return { outcome: "session", session: { token, ...(sessionPath === undefined || !isSessionPath(sessionPath) ? {} : { path: sessionPath }) } };
  }
  return answer.status === 401 ? { outcome: "refused" } : { outcome: "failed", answer };
}
