/** The part of `check` that looks at the cluster: what fails there fails the check with words to act on. */
import type { Cluster } from "../cluster/cluster.ts";
import { isClusterError } from "../cluster/errors.ts";
import { explain, MissingKindError } from "./failures.ts";
import type { CheckFailure, VerbContext } from "./lifecycle.ts";

/** Runs `look`; a cluster that cannot be asked becomes a failure of the whole resource. */
export async function lookingAt(context: VerbContext, look: (cluster: Cluster) => Promise<CheckFailure[]>): Promise<CheckFailure[]> {
  let cluster: Cluster | undefined;
  try {
    cluster = await context.cluster();
    return await look(cluster);
  } catch (error) {
    if (!isClusterError(error) && !(error instanceof MissingKindError)) throw error;
    return [{ property: "", reason: explain(error, cluster?.server) }];
  }
}
