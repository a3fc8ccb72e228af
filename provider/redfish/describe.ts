/** What a BMC and its System are and can do, and what is out of the ordinary about them. */
import type { AuthenticatedConnection } from "./authentication.ts";
import type { PowerReading } from "./bmc.ts";
import { accountService, manager } from "./models.ts";
import { readingOf } from "./system.ts";
import type { OfferedResets, SystemState } from "./system.ts";

/** A clock that is further off than that makes certificates and logs lie. */
const NOTED_SKEW_MS = 60_000;

export interface BmcDescription {
  vendor: string | undefined;
  model: string | undefined;
  /** Version of the BMC's own firmware. */
  firmware: string | undefined;
  /** Version of Redfish that it speaks. */
  redfishVersion: string | undefined;
  uuid: string | undefined;
  serialNumber: string | undefined;
  resetTypes: readonly string[];
  /** `assumed`: it does not say which it offers. */
  resetTypesTold: OfferedResets["told"];
  power: PowerReading;
  /** Whether the BMC offers sessions; else each request carries the credentials. */
  sessions: boolean;
  authentication: {
    session: "offered" | "absent";
    /** As its account service says. */
    basic: "enabled" | "disabled" | "unknown";
    used: "session" | "basic" | undefined;
  };
  /** Milliseconds by which its clock is ahead of ours, to a second; `undefined` where it tells no time. */
  clockSkewMs: number | undefined;
  /** SHA-256 of its certificate, as `certificateFingerprint` takes it. */
  certificateFingerprint: string | undefined;
  /** One sentence for each thing that an operator should know of. */
  notes: readonly string[];
}

async function firmwareOf(connection: AuthenticatedConnection, state: SystemState, signal: AbortSignal | undefined): Promise<string | undefined> {
  const link = state.resource.Links?.ManagedBy?.[0]?.["@odata.id"];
  if (link === undefined) return undefined;
  const answer = await connection.send({ method: "GET", path: connection.pathOf(link, state.path) }, signal);
  return answer.status === 200 ? manager.safeParse(answer.body).data?.FirmwareVersion : undefined;
}

async function basicOf(connection: AuthenticatedConnection, signal: AbortSignal | undefined): Promise<BmcDescription["authentication"]["basic"]> {
  const link = (await connection.root(signal)).AccountService?.["@odata.id"];
  if (link === undefined) return "unknown";
  const answer = await connection.send({ method: "GET", path: connection.pathOf(link) }, signal);
  const told = answer.status === 200 ? accountService.safeParse(answer.body).data?.HTTPBasicAuth : undefined;
  return told === "Disabled" ? "disabled" : told === undefined ? "unknown" : "enabled";
}

export async function describeSystem(
  connection: AuthenticatedConnection,
  state: SystemState,
  resets: OfferedResets,
  at: number,
  signal?: AbortSignal,
): Promise<BmcDescription> {
  const root = await connection.root(signal);
  const { resource } = state;
  const firmware = await firmwareOf(connection, state, signal);
  const session = (await connection.sessionsPath(signal)) === undefined ? "absent" : "offered";
  const basic = await basicOf(connection, signal);
  const { used, clockSkewMs, fingerprint } = connection.facts;
  const description: Omit<BmcDescription, "notes"> = {
    vendor: resource.Manufacturer ?? root.Vendor,
    model: resource.Model,
    firmware,
    redfishVersion: root.RedfishVersion,
    uuid: resource.UUID,
    serialNumber: resource.SerialNumber,
    resetTypes: resets.types,
    resetTypesTold: resets.told,
    power: readingOf(state, at),
    sessions: session === "offered",
    authentication: { session, basic, used },
    clockSkewMs,
    certificateFingerprint: fingerprint,
  };
  return { ...description, notes: notesOn(description, connection) };
}

function notesOn(description: Omit<BmcDescription, "notes">, connection: AuthenticatedConnection): string[] {
  const { resetTypes, resetTypesTold, power, sessions, clockSkewMs, uuid, serialNumber } = description;
  const { verified, legacyTls, http, refusesIdentity, loginFailed, basicRefused } = connection.facts;
  const offersOff = resetTypes.includes("ForceOff");
  const all: [boolean, string][] = [
    [resetTypesTold === "assumed", "does not say which reset types it offers: On and ForceOff are assumed"],
    [!offersOff && resetTypes.includes("PowerCycle"), "does not offer ForceOff: its host can be rebooted with PowerCycle but never fenced"],
    [!offersOff && !resetTypes.includes("PowerCycle"), "offers neither ForceOff nor PowerCycle: its host cannot be repaired"],
    [!resetTypes.includes("On"), "does not offer On: a host that is off stays off"],
    [power.power === "other", `reads the power state ${JSON.stringify(power.literal)}, which proves neither on nor off`],
    [uuid === undefined && serialNumber === undefined, "tells neither UUID nor serial number: another machine in its place would not be noticed"],
    [!sessions, "offers no sessions: each request carries the credentials"],
    [loginFailed, "refused a login, perhaps because its session table is full: Basic was used"],
    [basicRefused, "refuses Basic authentication"],
    [verified === "not at all", "is not verified by its certificate (insecure)"],
    [legacyTls, "may be spoken to with TLS 1.0 and 1.1 (legacyTls)"],
    [http === "2", "speaks HTTP/2 only"],
    [refusesIdentity, "refuses to be asked for no compression"],
    [clockSkewMs !== undefined && Math.abs(clockSkewMs) > NOTED_SKEW_MS, `has a clock that is ${shownSkew(clockSkewMs ?? 0)}`],
  ];
  return all.filter(([applies]) => applies).map(([, note]) => note);
}

function shownSkew(skewMs: number): string {
  return `${Math.round(Math.abs(skewMs) / 1_000)} s ${skewMs > 0 ? "ahead" : "behind"}`;
}
