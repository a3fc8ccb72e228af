/** What a BMC and its System are and can do. */
import type { AuthenticatedConnection } from "./authentication.ts";
import type { PowerReading } from "./bmc.ts";
import { manager } from "./models.ts";
import { readingOf, resetTypesOf } from "./system.ts";
import type { SystemState } from "./system.ts";

export interface BmcDescription {
  vendor: string | undefined;
  model: string | undefined;
  /** Version of the BMC's own firmware. */
  firmware: string | undefined;
  uuid: string | undefined;
  serialNumber: string | undefined;
  resetTypes: readonly string[];
  power: PowerReading;
  /** Whether the BMC offers sessions; else each request carries the credentials. */
  sessions: boolean;
}

async function firmwareOf(connection: AuthenticatedConnection, state: SystemState, signal: AbortSignal | undefined): Promise<string | undefined> {
  const link = state.resource.Links?.ManagedBy?.[0]?.["@odata.id"];
  if (link === undefined) return undefined;
  const answer = await connection.send({ method: "GET", path: connection.pathOf(link, state.path) }, signal);
  return answer.status === 200 ? manager.safeParse(answer.body).data?.FirmwareVersion : undefined;
}

export async function describeSystem(connection: AuthenticatedConnection, state: SystemState, at: number, signal?: AbortSignal): Promise<BmcDescription> {
  const root = await connection.root(signal);
  return {
    vendor: state.resource.Manufacturer ?? root.Vendor,
    model: state.resource.Model,
    firmware: await firmwareOf(connection, state, signal),
    uuid: state.resource.UUID,
    serialNumber: state.resource.SerialNumber,
    resetTypes: await resetTypesOf(connection, state, signal),
    power: readingOf(state, at),
    sessions: root.Links?.Sessions !== undefined,
  };
}
