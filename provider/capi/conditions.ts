/** Conditions as both Cluster API versions store them. */
import { z } from "zod";

export const conditionModel = z.object({
  type: z.string(),
  status: z.string(),
  reason: z.string().optional(),
  message: z.string().optional(),
});

export type Condition = z.output<typeof conditionModel>;

export const conditionsModel = z.array(conditionModel).optional().catch(undefined);

export function conditionOf(conditions: readonly Condition[], type: string): Condition | undefined {
  return conditions.find((condition) => condition.type === type);
}

/** Newer conditions of an object: in v1beta1 they stand under `status.v1beta2`. Older Cluster API knows only the old ones. */
export function conditionsOf(status: unknown): Condition[] {
  const parsed = z
    .object({ conditions: conditionsModel, v1beta2: z.object({ conditions: conditionsModel }).optional().catch(undefined) })
    .optional()
    .catch(undefined)
    .parse(status);
  return parsed?.v1beta2?.conditions ?? parsed?.conditions ?? [];
}
