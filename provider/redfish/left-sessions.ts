/** Sessions that a process of ours left behind when it was killed: told by the context that each of ours carries, and ended when the table is full. */
import { randomBytes } from "node:crypto";

import { z } from "zod";

import { isBmcError } from "./bmc.ts";
import type { BmcConnection } from "./connection.ts";
import { collection } from "./models.ts";
import type { serviceRoot } from "./models.ts";
import { isSessionPath } from "./session.ts";

const OURS = "pulumi-baremetal/";
/** More than any BMC's table holds. */
const MAXIMUM_SESSIONS = 32;
/** Redfish has known the context of a session since then. */
const CONTEXT_SINCE = [1, 16] as const;

const session = z.object({ Context: z.string().optional() });

export function newSessionContext(): string {
  return `${OURS}${randomBytes(6).toString("hex")}`;
}

/** Whether the BMC is of a version that keeps a context with each session; older ones may refuse it. */
export function keepsContext(root: z.infer<typeof serviceRoot> | undefined): boolean {
  const [major = 0, minor = 0] = (root?.RedfishVersion ?? "").split(".").map(Number);
  return major > CONTEXT_SINCE[0] || (major === CONTEXT_SINCE[0] && minor >= CONTEXT_SINCE[1]);
}

/** Ends those of other processes of ours; one that still runs logs in again. Sessions of anybody else stay. `refused`: the credentials were. */
export async function endLeftSessions(
  connection: BmcConnection,
  path: string,
  headers: Record<string, string>,
  ownContext: string,
  signal: AbortSignal | undefined,
): Promise<"ended" | "none" | "refused"> {
  let ended = false;
  try {
    const list = await connection.send({ method: "GET", path, headers }, signal);
    if (list.status === 401) return "refused";
    const members = list.status === 200 ? (collection.safeParse(list.body).data?.Members ?? []) : [];
    for (const member of members.slice(0, MAXIMUM_SESSIONS)) {
      const memberPath = connection.pathOf(member["@odata.id"], path);
      if (!isSessionPath(memberPath)) continue;
      const answer = await connection.send({ method: "GET", path: memberPath, headers }, signal);
      const context = answer.status === 200 ? session.safeParse(answer.body).data?.Context : undefined;
      if (context === undefined || !context.startsWith(OURS) || context === ownContext) continue;
      const gone = await connection.send({ method: "DELETE", path: memberPath, headers }, signal);
      ended ||= gone.status < 300;
    }
  } catch (error) {
    // Only tidying up: what was asked for goes on without a session.
    if (!isBmcError(error) || signal?.aborted === true) throw error;
  }
  return ended ? "ended" : "none";
}
