/** How the BMC of an inventory is reached, from its annotations and the Secrets that they name. */
import { z } from "zod";

import type { Cluster, RequestOptions } from "../cluster/cluster.ts";
import { isClusterError } from "../cluster/errors.ts";
import { secrets } from "../cluster/kinds.ts";
import type { LiveObject } from "../cluster/objects.ts";
import type { BmcTarget } from "../redfish/bmc.ts";
import { bmcAnnotations } from "./names.ts";

/** The inventory names a BMC that cannot be used as it is written; the message says what to change. */
export class BmcTargetError extends Error {
  override readonly name = "BmcTargetError";
}

const secret = z.object({ data: z.record(z.string(), z.string()).optional() });

async function secretValues(cluster: Cluster, inventory: LiveObject, name: string, keys: readonly string[], options: RequestOptions): Promise<string[]> {
  const where = `${inventory.metadata.namespace ?? ""}/${name}`;
  let data: Record<string, string>;
  try {
    data = secret.parse(await cluster.get(secrets, { namespace: inventory.metadata.namespace ?? "", name }, options)).data ?? {};
  } catch (error) {
    if (!isClusterError(error, "notFound")) throw error;
    throw new BmcTargetError(
      `the Secret ${where} that MachineInventory ${inventory.metadata.name} names for its BMC does not exist; create it with the keys ${keys.join(" and ")}`,
    );
  }
  return keys.map((key) => {
    const value = data[key];
    if (value === undefined || value === "") throw new BmcTargetError(`the Secret ${where} has no key ${key}; add it`);
    return Buffer.from(value, "base64").toString("utf8");
  });
}

/**
 * Undefined where the inventory names no BMC. Throws `BmcTargetError` where what it names is missing or incomplete,
 * and `ClusterError` where the Secrets cannot be read.
 */
export async function bmcTargetOf(inventory: LiveObject, cluster: Cluster, options: RequestOptions = {}): Promise<BmcTarget | undefined> {
  const annotations = inventory.metadata.annotations ?? {};
  const address = annotations[bmcAnnotations.address];
  if (address === undefined || address === "") return undefined;
  const secretName = annotations[bmcAnnotations.secret];
  if (secretName === undefined || secretName === "") {
    throw new BmcTargetError(`MachineInventory ${inventory.metadata.name} names a BMC but no Secret; set the annotation ${bmcAnnotations.secret}`);
  }
  const [username = "", password = ""] = await secretValues(cluster, inventory, secretName, ["username", "password"], options);
  const target: BmcTarget = { address, username, password };
  const caSecret = annotations[bmcAnnotations.caSecret];
  if (caSecret !== undefined && caSecret !== "") {
    const [certificateAuthority = ""] = await secretValues(cluster, inventory, caSecret, ["ca.crt"], options);
    target.certificateAuthority = certificateAuthority;
  }
  if (annotations[bmcAnnotations.insecure] === "true") target.insecure = true;
  return target;
}
