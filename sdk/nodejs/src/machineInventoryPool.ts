import * as pulumi from "@pulumi/pulumi";

import { DynamicResource } from "./resource.ts";
import type { AsOutputs } from "./resource.ts";
import type { BmcCredentials, MachineInventoryPoolArgs, MachineInventoryPoolOutputs, PoolMember } from "./types.generated.ts";

/**
 * An ordered set of registered machines (MachineInventory) that worker groups take their hosts from, and how their
 * BMCs are reached.
 *
 * The objects are made in the management cluster of `baremetal:kubeconfig`, else of KUBECONFIG. The RemediationController
 * brings the kind; let the pool depend on it.
 */
export class MachineInventoryPool extends DynamicResource implements AsOutputs<MachineInventoryPoolOutputs> {
  /** Name of the Cluster API Cluster. */
  declare public readonly clusterName: pulumi.Output<string>;
  /** Name of the pool where the program gave one. */
  declare public readonly name: pulumi.Output<string | undefined>;
  /** Namespace of the MachineInventoryPool object. */
  declare public readonly namespace: pulumi.Output<string>;
  /** Hosts of the pool, in the order in which they are taken. */
  declare public readonly machineInventories: pulumi.Output<PoolMember[]>;
  /** BMC credentials by inventory name; a secret. */
  declare public readonly bmcCredentials: pulumi.Output<Record<string, BmcCredentials> | undefined>;
  /** Whether each BMC's power state is read in preview. */
  declare public readonly verifyBmc: pulumi.Output<boolean | undefined>;
  /** How long a change may wait for hosts to be released. */
  declare public readonly waitTimeout: pulumi.Output<string>;
  /** Whether objects of the same name are taken over. */
  declare public readonly adopt: pulumi.Output<boolean | undefined>;
  /** Name of the MachineInventoryPool object. */
  declare public readonly poolName: pulumi.Output<string>;
  /** Declared inventories that had not registered at the last run. */
  declare public readonly pending: pulumi.Output<string[]>;

  constructor(name: string, args: MachineInventoryPoolArgs, options: pulumi.CustomResourceOptions = {}) {
    const properties = {
      ...args,
      bmcCredentials: args.bmcCredentials === undefined ? undefined : pulumi.secret(args.bmcCredentials),
      namespace: args.namespace,
      poolName: undefined,
      pending: undefined,
    };
    super("MachineInventoryPool", name, properties, pulumi.mergeOptions(options, { additionalSecretOutputs: ["bmcCredentials"] }));
  }
}

/** A pool of this program as another resource needs it: what a preview plans from, without its BMCs. */
export function poolReference(pool: unknown): unknown {
  if (!(pool instanceof MachineInventoryPool)) return pool;
  return {
    poolName: pool.poolName,
    namespace: pool.namespace,
    machineInventories: pool.machineInventories.apply((members) => members.map(({ name, hostname }) => ({ name, hostname }))),
  };
}
