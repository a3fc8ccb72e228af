/** Annotations, labels and marks on hosts and on the objects around them; each has exactly one writer. */

/** Field manager of everything that the resources apply. */
export const FIELD_MANAGER = "pulumi-baremetal";
export const MANAGED_BY_LABEL = "app.kubernetes.io/managed-by";
export const MANAGED_BY = "pulumi-baremetal";
/** Which program an object belongs to: `<project>/<stack>/<name>`. */
export const OWNER_ANNOTATION = "pulumi-baremetal.dev/owner";

/** Inventory → BMC, written by the pool resource. */
export const bmcAnnotations = {
  address: "pulumi-baremetal.dev/bmc-address",
  secret: "pulumi-baremetal.dev/bmc-secret",
  caSecret: "pulumi-baremetal.dev/bmc-ca-secret",
  /** `"true"` turns certificate verification off. */
  insecure: "pulumi-baremetal.dev/bmc-insecure",
} as const;

/** On the host while a remediation holds it off: JSON, enough to undo the hold without the remediation object. */
export const POWER_HOLD_ANNOTATION = "pulumi-baremetal.dev/power-hold";
/** On an inventory that must not be allocated: JSON `{reason, at, by}`. */
export const UNHEALTHY_ANNOTATION = "pulumi-baremetal.dev/unhealthy";
/** On the host: failures and the last fencing record, at most 4 KiB of JSON. */
export const HISTORY_ANNOTATION = "pulumi-baremetal.dev/history";
/** Written by a person: the uid of the Machine for which the host is confirmed to be off. Used once, removed by the write that uses it. */
export const CONFIRMED_OFF_ANNOTATION = "pulumi-baremetal.dev/confirmed-off";
/** Written by a person: the uid of a quarantined inventory that is to be cleaned and offered again. */
export const RELEASE_ANNOTATION = "pulumi-baremetal.dev/release";
/** On an inventory without a machine that is being cleaned to be offered again: since when, ISO 8601; the name of this one attempt. */
export const RELEASING_ANNOTATION = "pulumi-baremetal.dev/releasing";

/** On a BareMetalHost that must not be chosen; the older name is still read. */
export const BMH_UNHEALTHY_ANNOTATION = "capm3.metal3.io/unhealthy";
export const BMH_UNHEALTHY_ANNOTATION_OLD = "capi.metal3.io/unhealthy";
/** Holds a BareMetalHost off while present; ours only with `POWER_HOLD_ANNOTATION` beside it. */
export const BMH_REBOOT_KEY = "reboot.metal3.io/capm3-remediation-v1";
export const BMH_LINK_ANNOTATION = "metal3.io/BareMetalHost";

export const allocationAnnotations = {
  state: "baremetal.alauda.io/allocation-state",
  ownerKind: "baremetal.alauda.io/owner-kind",
  ownerNamespace: "baremetal.alauda.io/owner-namespace",
  ownerName: "baremetal.alauda.io/owner-name",
  ownerUid: "baremetal.alauda.io/owner-uid",
  pool: "baremetal.alauda.io/pool",
} as const;

export type AllocationState = "Available" | "Allocated" | "Preparing" | "Quarantined";

/** On the plan Secret: what the plan in it does. */
export const PLAN_TYPE_ANNOTATION = "baremetal.alauda.io/plan.type";
export type PlanType = "clean" | "reprovision" | "storage-prepare" | "storage-release";

/** The document's label on a group's Machines: `<cluster>-<name>`. */
export const POOL_NAME_LABEL = "pool.name";

export function providerIdOf(inventory: string): string {
  return `baremetal:///${inventory}`;
}
