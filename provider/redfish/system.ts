/** Finds the one System that an address means, reads it, and knows what it offers. */
import type { Answer } from "./answers.ts";
import type { AuthenticatedConnection } from "./authentication.ts";
import { BmcError } from "./bmc.ts";
import type { PowerReading } from "./bmc.ts";
import { actionInfo, collection, computerSystem } from "./models.ts";
import type { ComputerSystem } from "./models.ts";

const SHOWN_LITERAL_LENGTH = 40;
const SHOWN_SYSTEMS = 10;
const MAXIMUM_PAGES = 20;
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

/** Where the reset of this very System goes. */
export function resetTarget(connection: AuthenticatedConnection, state: SystemState): string {
  const target = state.resource.Actions?.["#ComputerSystem.Reset"]?.target;
  if (target === undefined) throw refuse("unsupported", connection.address, `System ${state.path} offers no reset`);
  const path = connection.pathOf(target, state.path);
  // Several hosts may hang on one chassis.
  if (path.toLowerCase().includes("/chassis/"))
    throw refuse("unsupported", connection.address, `System ${state.path} offers a reset of its chassis only (${path}), which would stop its neighbours`);
  return path;
}

/** Whether the two are known to be different hardware; what either leaves out says nothing. */
export function isOtherSystem(before: ComputerSystem, now: ComputerSystem): boolean {
  const differs = (one: string | undefined, other: string | undefined): boolean =>
    one !== undefined && one !== "" && other !== undefined && other !== "" && one.toLowerCase() !== other.toLowerCase();
  return differs(before.UUID, now.UUID) || differs(before.SerialNumber, now.SerialNumber);
}

async function read(connection: AuthenticatedConnection, path: string, signal: AbortSignal | undefined): Promise<Answer> {
  const exchange = { method: "GET", path } as const;
  let answer = await connection.send(exchange, signal);
  // A few BMCs lose sight of a resource for a moment.
  if (answer.status === 404) answer = await connection.send(exchange, signal);
  if (answer.status !== 200) throw connection.error(exchange, answer);
  return answer;
}

/** The path of the only System. */
async function onlySystem(connection: AuthenticatedConnection, signal: AbortSignal | undefined): Promise<string> {
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
  const [only] = members;
  if (only === undefined) throw refuse("notFound", connection.address, "it has no System");
  if (members.length > 1) {
    throw refuse(
      "ambiguous",
      connection.address,
      `it has ${members.length} Systems (${members.slice(0, SHOWN_SYSTEMS).join(", ")}); name one of them in the address`,
    );
  }
  return only;
}

/** Reads the System named by the address, or the only one there is. */
export async function readSystem(connection: AuthenticatedConnection, given: string | undefined, signal?: AbortSignal): Promise<SystemState> {
  const path = given ?? (await onlySystem(connection, signal));
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

/** The reset types that the System says it offers: inline, else by its ActionInfo, else the two that all have. */
export async function resetTypesOf(connection: AuthenticatedConnection, state: SystemState, signal?: AbortSignal): Promise<readonly string[]> {
  const reset = state.resource.Actions?.["#ComputerSystem.Reset"];
  if (reset === undefined) return [];
  const inline = reset["ResetType@Redfish.AllowableValues"];
  if (inline !== undefined && inline.length > 0) return inline;
  const link = reset["@Redfish.ActionInfo"];
  if (link === undefined) return ASSUMED_RESET_TYPES;
  const answer = await read(connection, connection.pathOf(link, state.path), signal);
  const listed = actionInfo.safeParse(answer.body).data?.Parameters.find(({ Name }) => Name === "ResetType")?.AllowableValues;
  return listed === undefined || listed.length === 0 ? ASSUMED_RESET_TYPES : listed;
}
