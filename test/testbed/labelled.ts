/** Every object of a cluster that carries a label, whatever its kind. */
import { z } from "zod";

import type { Cluster } from "../../provider/cluster/cluster.ts";
import { isClusterError } from "../../provider/cluster/errors.ts";
import type { LiveObject, ResourceKind } from "../../provider/cluster/objects.ts";

const apiServices: ResourceKind = { group: "apiregistration.k8s.io", version: "v1", plural: "apiservices", kind: "APIService", namespaced: false };
const apiService = z.object({ spec: z.object({ group: z.string().optional() }) });

/** Each kind that is served, in the version that its group prefers. */
async function servedKinds(cluster: Cluster): Promise<ResourceKind[]> {
  const { items } = await cluster.list(apiServices);
  const groups = new Set(items.map((item) => apiService.parse(item).spec.group ?? ""));
  const kinds = (await Promise.all([...groups].map((group) => cluster.discover(group)))).flat();
  return kinds.filter((kind, index) => kinds.findIndex(({ group, plural }) => group === kind.group && plural === kind.plural) === index);
}

/** In all namespaces, and outside of them. */
export async function labelledObjects(cluster: Cluster, labelSelector: string): Promise<LiveObject[]> {
  const found: LiveObject[] = [];
  for (const kind of await servedKinds(cluster)) {
    try {
      found.push(...(await cluster.list(kind, { labelSelector })).items);
    } catch (error) {
      // Some can only be created: reviews and bindings.
      if (!isClusterError(error) || (error.status !== 405 && error.kind !== "kindNotServed")) throw error;
    }
  }
  return found;
}
