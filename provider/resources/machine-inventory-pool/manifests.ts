/** The objects of a pool, and what it writes on the inventories. */
import type { KubernetesObject } from "../../cluster/objects.ts";
import { apiVersionOf } from "../../cluster/objects.ts";
import { secrets } from "../../cluster/kinds.ts";
import { capiLabels } from "../../capi/kinds.ts";
import { machineInventoryPools } from "../../hosts/kinds.ts";
import { allocationAnnotations, bmcAnnotations } from "../../hosts/names.ts";
import type { PoolEntry } from "../../hosts/pool.ts";
import { ownAnnotations, ownLabels } from "../ownership.ts";
import type { PoolInputs, PoolMember } from "./inputs.ts";

export function inlineSecretName(inventory: string): string {
  return `${inventory}-bmc`;
}

/** The list that the pool object holds. */
export function entriesOf({ machineInventories: members }: Pick<PoolInputs, "machineInventories">): PoolEntry[] {
  return members.map(({ name, hostname }) => (hostname === undefined ? { name } : { name, hostname }));
}

export function renderPool(inputs: PoolInputs): KubernetesObject {
  return {
    apiVersion: apiVersionOf(machineInventoryPools),
    kind: machineInventoryPools.kind,
    metadata: {
      name: inputs.poolName,
      namespace: inputs.namespace,
      labels: { ...ownLabels, [capiLabels.clusterName]: inputs.clusterName },
      annotations: ownAnnotations(inputs.owner),
    },
    spec: { machineInventories: entriesOf(inputs) },
  };
}

export function renderBmcSecret(inputs: PoolInputs, inventory: string, credentials: { username: string; password: string }): KubernetesObject {
  const encode = (text: string): string => Buffer.from(text, "utf8").toString("base64");
  return {
    apiVersion: apiVersionOf(secrets),
    kind: secrets.kind,
    metadata: { name: inlineSecretName(inventory), namespace: inputs.namespace, labels: { ...ownLabels }, annotations: ownAnnotations(inputs.owner) },
    type: "Opaque",
    data: { username: encode(credentials.username), password: encode(credentials.password) },
  };
}

type Wanted = Record<string, string | null>;

/** Annotations of a member; null where one must not be there. */
export function memberAnnotations(poolName: string, member: PoolMember): Wanted {
  const { bmc } = member;
  return {
    [allocationAnnotations.pool]: poolName,
    [bmcAnnotations.address]: bmc?.address ?? null,
    [bmcAnnotations.secret]: bmc === undefined ? null : (bmc.secretName ?? inlineSecretName(member.name)),
    [bmcAnnotations.caSecret]: bmc?.caSecretName ?? null,
    [bmcAnnotations.insecure]: bmc?.insecure === true ? "true" : null,
  };
}

/** Annotations of a host that leaves the pool. A quarantined one keeps its BMC, by which it is released. */
export function leavingAnnotations(keepBmc: boolean): Wanted {
  const bmc = keepBmc ? {} : Object.fromEntries(Object.values(bmcAnnotations).map((key) => [key, null]));
  return { [allocationAnnotations.pool]: null, ...bmc };
}

/** The part of the wanted annotations that is not so yet. */
export function annotationChanges(present: Readonly<Record<string, string>>, wanted: Wanted): Wanted {
  return Object.fromEntries(Object.entries(wanted).filter(([key, value]) => (present[key] ?? null) !== value));
}
