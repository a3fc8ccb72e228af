/** One look at a BMC, for previews and by hand. */
import { RedfishAccess } from "./access.ts";
import type { RedfishOptions } from "./access.ts";
import type { BmcTarget } from "./bmc.ts";
import type { BmcDescription } from "./describe.ts";

/** Asks a BMC once and leaves nothing open. Throws `BmcError`. */
export async function probeBmc(target: BmcTarget, options: RedfishOptions & { signal?: AbortSignal } = {}): Promise<BmcDescription> {
  const access = new RedfishAccess(options);
  try {
    return await access.bmc(target).describe(options.signal);
  } finally {
    await access.close();
  }
}
