/** Offering a Machine for replacement: the condition that its owner acts on, as both versions of Cluster API read it. */
import { z } from "zod";

import type { LiveObject } from "../../cluster/objects.ts";
import { OWNER_REMEDIATED } from "./views.ts";

const REASON = "WaitingForRemediation";

const list = z.array(z.looseObject({ type: z.string(), status: z.string() }));
const statusSchema = z.looseObject({
  conditions: list.optional(),
  deprecated: z.looseObject({ v1beta1: z.looseObject({ conditions: list.optional() }).optional() }).optional(),
});

/**
 * The status fields to merge, or undefined where `OwnerRemediated` is False already: then its owner may have written why
 * it waits, and that stays. Both lists are written whole, so the write needs the version that they were read in.
 */
export function offerPatch(machine: LiveObject, message: string, at: string): object | undefined {
  const status = statusSchema.parse(machine["status"] ?? {});
  const offered = (conditions: z.infer<typeof list>): boolean => conditions.some(({ type, status: value }) => type === OWNER_REMEDIATED && value === "False");
  const conditions = status.conditions ?? [];
  const older = status.deprecated?.v1beta1?.conditions ?? [];
  if (offered(conditions) && offered(older)) return undefined;
  const others = (all: z.infer<typeof list>): z.infer<typeof list> => all.filter(({ type }) => type !== OWNER_REMEDIATED);
  const common = { type: OWNER_REMEDIATED, status: "False", reason: REASON, message, lastTransitionTime: at };
  return {
    ...(offered(conditions) ? {} : { conditions: [...others(conditions), common] }),
    ...(offered(older) ? {} : { deprecated: { v1beta1: { conditions: [...others(older), { ...common, severity: "Warning" }] } } }),
  };
}
