/** Whether two descriptions are of the same hardware. */
import type { HardwareIdentity } from "./bmc.ts";
import type { ComputerSystem } from "./models.ts";

export function identityOf({ UUID, SerialNumber }: ComputerSystem): HardwareIdentity {
  return {
    ...(UUID === undefined || UUID.trim() === "" ? {} : { uuid: UUID.trim().toLowerCase() }),
    ...(SerialNumber === undefined || SerialNumber.trim() === "" ? {} : { serialNumber: SerialNumber.trim() }),
  };
}

/** SMBIOS writes the first three fields of a UUID in the other byte order than most. */
function swapped(uuid: string): string {
  const swap = (field: string): string => (field.match(/../g) ?? []).toReversed().join("");
  const [first = "", second = "", third = "", ...rest] = uuid.split("-");
  return [swap(first), swap(second), swap(third), ...rest].join("-");
}

function uuidsDiffer(one: string, other: string): boolean {
  const [a, b] = [one.toLowerCase(), other.toLowerCase()];
  return a !== b && swapped(a) !== b;
}

function textsDiffer(one: string, other: string): boolean {
  return one.trim().toLowerCase() !== other.trim().toLowerCase();
}

/** Whether the two are known to be different; what either leaves out says nothing. */
export function differs(one: HardwareIdentity, other: HardwareIdentity): boolean {
  return (
    (one.uuid !== undefined && other.uuid !== undefined && uuidsDiffer(one.uuid, other.uuid)) ||
    (one.serialNumber !== undefined && other.serialNumber !== undefined && textsDiffer(one.serialNumber, other.serialNumber))
  );
}

/** Whether the two are known to be the same. */
export function isSame(one: HardwareIdentity, other: HardwareIdentity): boolean {
  const shared = (one.uuid !== undefined && other.uuid !== undefined) || (one.serialNumber !== undefined && other.serialNumber !== undefined);
  return shared && !differs(one, other);
}

/** For messages. */
export function shownIdentity({ uuid, serialNumber }: HardwareIdentity): string {
  const parts = [...(uuid === undefined ? [] : [`UUID ${uuid}`]), ...(serialNumber === undefined ? [] : [`serial number ${serialNumber}`])];
  return parts.length === 0 ? "unknown" : parts.join(", ");
}
