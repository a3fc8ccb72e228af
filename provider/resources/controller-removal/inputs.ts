/** Inputs of the component's last step. No program writes this resource; the RemediationController component does. */
import { z } from "zod";

import { duration, labelName, objectName } from "../inputs.ts";

export const removalInputs = z.strictObject({
  namespaces: z.array(labelName).min(1, "must name at least one namespace"),
  settings: z.strictObject({ namespace: labelName, name: objectName }),
  waitTimeout: duration.default("2m"),
  owner: z.string().optional(),
  resourceName: z.string().optional(),
});
export type RemovalInputs = z.output<typeof removalInputs>;

export const removalState = removalInputs.extend({
  /** Whether the stop switch was on when last looked at; on while the resource lives means that a removal was begun and not ended. */
  stopped: z.boolean().default(false),
});
export type RemovalState = z.output<typeof removalState>;
