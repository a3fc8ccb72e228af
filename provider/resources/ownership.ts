/** Which program an object belongs to. */
import type { LiveObject } from "../cluster/objects.ts";
import { keyOf } from "../cluster/objects.ts";
import { MANAGED_BY, MANAGED_BY_LABEL, OWNER_ANNOTATION } from "../hosts/names.ts";

export const ownLabels: Readonly<Record<string, string>> = { [MANAGED_BY_LABEL]: MANAGED_BY };

export function ownAnnotations(owner: string): Record<string, string> {
  return { [OWNER_ANNOTATION]: owner };
}

export function ownerOf(object: { metadata: { annotations?: Record<string, string> } }): string | undefined {
  return object.metadata.annotations?.[OWNER_ANNOTATION];
}

/** Why this program may not write the object, or undefined where it may. */
export function foreign(live: LiveObject, owner: string, adopt: boolean | undefined): string | undefined {
  const present = ownerOf(live);
  if (present === owner || adopt === true) return undefined;
  const whose = present === undefined ? "was not made by this program (it names no owner)" : `belongs to ${present}`;
  return `${live.kind} ${keyOf(live)} already exists and ${whose}; give this resource another \`name\`, or set \`adopt: true\` to take it over`;
}

/** What another program has taken over since, in words; undefined where the object is this program's, or names no owner. */
export function takenOver(live: LiveObject, owner: string): string | undefined {
  const present = ownerOf(live);
  return present === undefined || present === owner ? undefined : `${live.kind} ${keyOf(live)} belongs to ${present} now`;
}
