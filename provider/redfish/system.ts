/** Finds the one System that an address means, reads it, and knows what it offers. */
import type { Answer } from "./answers.ts";
import type { AuthenticatedConnection } from "./authentication.ts";
import { BmcError } from "./bmc.ts";
import type { HardwareIdentity, PowerReading } from "./bmc.ts";
import { identityOf, isSame } from "./identity.ts";
import { actionInfo, collection, computerSystem } from "./models.ts";
import type { ComputerSystem } from "./models.ts";

const SHOWN_LITERAL_LENGTH = 40;
const SHOWN_SYSTEMS = 10;
const MAXIMUM_PAGES = 20;
const MAXIMUM_SYSTEMS = 32;
/** What every System has to offer where it does not say what it offers. */
const ASSUMED_RESET_TYPES = ["On", "ForceOff"] as const;

export interface SystemState {
  path: string;
  /** ETag from header or body, as the BMC wrote it. */
  etag: string | undefined;
  resource: ComputerSystem;
}

function refuse(kind: BmcError["kind"], address: string, reason: string): BmcError {
  return new BmcError(kind, address, `BMC ${address}: ${reason}`);
}

/** Only the exact literals count: transitional, empty and unknown values are `other`. */
export function readingOf(state: SystemState, at: number): PowerReading {
  const value = state.resource.PowerState;
  const literal = typeof value === "string" ? value : value === undefined ? "" : JSON.stringify(value);
  return { power: value === "On" ? "on" : value === "Off" ? "off" : "other", literal: literal.slice(0, SHOWN_LITERAL_LENGTH), at, system: state.path };
}

/** The System that a path is in, if it is in one. */
function systemIn(path: string): string | undefined {
  return /^(.*\/systems\/[^/]+)(\/|$)/i.exec(path)?.[1]?.toLowerCase();
}

/** Where the reset of this very System goes. A target that belongs to anything else is refused: it would hit a neighbour, or the BMC. */
export function resetTarget(connection: AuthenticatedConnection, state: SystemState): string {
  const target = state.resource.Actions?.["#ComputerSystem.Reset"]?.target;
  if (target === undefined) throw refuse("unsupported", connection.address, `System ${state.path} offers no reset`);
  const path = connection.pathOf(target, state.path);
  // Several hosts may hang on one chassis.
  if (path.toLowerCase().includes("/chassis/"))
    throw refuse("unsupported", connection.address, `System ${state.path} offers a reset of its chassis only (${path}), which would stop its neighbours`);
  const own = [state.path, state.resource["@odata.id"]].flatMap((own) => (own === undefined ? [] : [systemIn(own)]));
  if (!path.includes("/Actions/") || !own.includes(systemIn(path)))
    throw refuse("unsupported", connection.address, `System ${state.path} names ${path} as its reset, which is no action of its own`);
  return path;
}

async function read(connection: AuthenticatedConnection, path: string, signal: AbortSignal | undefined): Promise<Answer> {
  const exchange = { method: "GET", path } as const;
  let answer = await connection.send(exchange, signal);
  // A few BMCs lose sight of a resource for a moment, and a few insist on the slash at the end, or on none.
  if (answer.status === 404) answer = await connection.send(exchange, signal);
  if (answer.status === 404) answer = await connection.send({ method: "GET", path: path.endsWith("/") ? path.slice(0, -1) : `${path}/` }, signal);
  if (answer.status !== 200) throw connection.error(exchange, answer);
  return answer;
}

/** The paths of all Systems. */
async function systemPaths(connection: AuthenticatedConnection, signal: AbortSignal | undefined): Promise<string[]> {
  const systems = (await connection.root(signal)).Systems?.["@odata.id"];
  if (systems === undefined) throw refuse("notFound", connection.address, "its service root has no Systems");
  const members: string[] = [];
  let next: string | undefined = connection.pathOf(systems);
  for (let page = 0; next !== undefined && page < MAXIMUM_PAGES; page += 1) {
    const answer = await read(connection, next, signal);
    const parsed = collection.safeParse(answer.body);
    if (!parsed.success) throw refuse("invalid", connection.address, `${next} is not a collection of Systems`);
    members.push(...parsed.data.Members.map((member) => connection.pathOf(member["@odata.id"], answer.path)));
    const link: string | undefined = parsed.data["Members@odata.nextLink"];
    next = link === undefined ? undefined : connection.pathOf(link, answer.path);
  }
  if (next !== undefined) throw refuse("invalid", connection.address, "its collection of Systems has no end");
  return [...new Set(members)];
}

/** The only System, or the one that is the expected hardware. Their order means nothing. */
async function findSystem(connection: AuthenticatedConnection, expected: HardwareIdentity | undefined, signal: AbortSignal | undefined): Promise<string> {
  const paths = await systemPaths(connection, signal);
  const [only] = paths;
  if (only === undefined) throw refuse("notFound", connection.address, "it has no System");
  if (paths.length === 1) return only;
  const shown = paths.slice(0, SHOWN_SYSTEMS).join(", ");
  if (expected === undefined) throw refuse("ambiguous", connection.address, `it has ${paths.length} Systems (${shown}); name one of them in the address`);
  const matching: string[] = [];
  for (const path of paths.slice(0, MAXIMUM_SYSTEMS)) {
    if (isSame(expected, identityOf((await readSystem(connection, path, undefined, signal)).resource))) matching.push(path);
  }
  const [match] = matching;
  if (match !== undefined && matching.length === 1) return match;
  throw refuse(
    "ambiguous",
    connection.address,
    `${matching.length} of its ${paths.length} Systems (${shown}) are the expected hardware; name one of them in the address`,
  );
}

/** Reads the System named by the address, the only one there is, or the one that is the expected hardware. */
export async function readSystem(
  connection: AuthenticatedConnection,
  given: string | undefined,
  expected: HardwareIdentity | undefined,
  signal?: AbortSignal,
): Promise<SystemState> {
  const path = given ?? (await findSystem(connection, expected, signal));
  const answer = await read(connection, path, signal);
  const parsed = computerSystem.safeParse(answer.body);
  const type = parsed.data?.["@odata.type"];
  const isSystem = parsed.success && (type === undefined ? parsed.data.Actions?.["#ComputerSystem.Reset"] !== undefined : type.startsWith("#ComputerSystem."));
  if (!parsed.success || !isSystem) {
    const found = type === undefined ? "something else" : `a ${type.slice(0, SHOWN_LITERAL_LENGTH)}`;
    throw refuse(
      given === undefined ? "invalid" : "notFound",
      connection.address,
      `${path} is not a System but ${found}; name one of the members of its Systems collection`,
    );
  }
  return { path: answer.path, etag: answer.headers["etag"] ?? parsed.data["@odata.etag"], resource: parsed.data };
}

export interface OfferedResets {
  types: readonly string[];
  /** Where they were told; `assumed` where nowhere. */
  told: "inline" | "action info" | "assumed";
}

/** The reset types that the System says it offers: inline, else by its ActionInfo, else the two that all have. `known` keeps ActionInfos by path. */
export async function offeredResets(
  connection: AuthenticatedConnection,
  state: SystemState,
  known: Map<string, readonly string[]>,
  signal?: AbortSignal,
): Promise<OfferedResets> {
  const reset = state.resource.Actions?.["#ComputerSystem.Reset"];
  if (reset === undefined) return { types: [], told: "inline" };
  const inline = reset["ResetType@Redfish.AllowableValues"];
  if (inline !== undefined && inline.length > 0) return { types: inline, told: "inline" };
  const link = reset["@Redfish.ActionInfo"];
  if (link === undefined) return { types: ASSUMED_RESET_TYPES, told: "assumed" };
  const path = connection.pathOf(link, state.path);
  let listed = known.get(path);
  if (listed === undefined) {
    const answer = await read(connection, path, signal);
    listed = actionInfo.safeParse(answer.body).data?.Parameters.find(({ Name }) => Name === "ResetType")?.AllowableValues ?? [];
    known.set(path, listed);
  }
  return listed.length === 0 ? { types: ASSUMED_RESET_TYPES, told: "assumed" } : { types: listed, told: "action info" };
}
