/** Reads in which absence is an answer. */
import type { Cluster, DeleteOptions } from "../cluster/cluster.ts";
import { isClusterError } from "../cluster/errors.ts";
import type { LiveObject, ObjectKey, ResourceKind } from "../cluster/objects.ts";
import { onKind } from "./failures.ts";

/** Undefined where the object does not exist while its kind is served. */
export async function findObject(cluster: Cluster, kind: ResourceKind, key: ObjectKey): Promise<LiveObject | undefined> {
  try {
    return await onKind(kind, cluster.get(kind, key));
  } catch (error) {
    if (isClusterError(error, "notFound")) return undefined;
    throw error;
  }
}

/** Undefined where the cluster does not serve the kind. */
export async function listServed(cluster: Cluster, kind: ResourceKind, namespace: string, labelSelector?: string): Promise<LiveObject[] | undefined> {
  try {
    return (await cluster.list(kind, labelSelector === undefined ? { namespace } : { namespace, labelSelector })).items;
  } catch (error) {
    if (isClusterError(error, "kindNotServed")) return undefined;
    throw error;
  }
}

/** Deletes the object unless it is gone already. */
export async function deleteIfThere(
  cluster: Cluster,
  kind: ResourceKind,
  key: ObjectKey,
  uid?: string,
  propagation?: DeleteOptions["propagation"],
): Promise<void> {
  try {
    await cluster.delete(kind, key, { ...(uid === undefined ? {} : { uid }), ...(propagation === undefined ? {} : { propagation }) });
  } catch (error) {
    if (!isClusterError(error, "notFound")) throw error;
  }
}
