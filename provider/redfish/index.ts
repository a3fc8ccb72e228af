/** The one door to BMCs. */
import { RedfishAccess } from "./access.ts";
import type { RedfishOptions } from "./access.ts";
import type { BmcAccess } from "./bmc.ts";

export { probeBmc } from "./probe.ts";
export type { BmcDescription } from "./describe.ts";
export type { RedfishOptions } from "./access.ts";

/** Opens nothing until a BMC is first asked; close it to end the sessions. */
export function createBmcAccess(options: RedfishOptions = {}): BmcAccess {
  return new RedfishAccess(options);
}
