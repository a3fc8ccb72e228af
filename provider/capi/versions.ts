/** Which Cluster API versions a management cluster serves. */
import type { Cluster, RequestOptions } from "../cluster/cluster.ts";
import type { ResourceKind } from "../cluster/objects.ts";
import type { CapiVersion } from "./kinds.ts";
import { machineDeployments } from "./kinds.ts";

const PREFERRED: readonly CapiVersion[] = ["v1beta2", "v1beta1"];

/** The newest version of the kind that both sides know, or undefined where the cluster does not serve it. */
export async function servedVersion(cluster: Cluster, kind: ResourceKind, options: RequestOptions = {}): Promise<CapiVersion | undefined> {
  const served = await cluster.discover(kind.group, options);
  return PREFERRED.find((version) => served.some((candidate) => candidate.plural === kind.plural && candidate.version === version));
}

/** Version in which Cluster API's own kinds are written; undefined where Cluster API is not installed. */
export async function capiVersion(cluster: Cluster, options: RequestOptions = {}): Promise<CapiVersion | undefined> {
  return servedVersion(cluster, machineDeployments, options);
}
