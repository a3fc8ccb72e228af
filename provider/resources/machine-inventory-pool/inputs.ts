/** Inputs of a MachineInventoryPool. */
import { z } from "zod";

import { adoptInput, clusterNameInput, duration, hiddenInputs, hostName, labelName, namespaceInput, objectName } from "../inputs.ts";

export const bmcInput = z
  .strictObject({
    address: z.string().meta({
      description: "Redfish address: `https://host[:port]`, with the path of one System (`/redfish/v1/Systems/<id>`) where the BMC serves several.",
    }),
    secretName: objectName.optional().meta({
      description:
        "Secret in the pool's namespace with the keys `username` and `password`. It stays yours: never written, never deleted. Give either this or an entry in `bmcCredentials`.",
    }),
    caSecretName: objectName.optional().meta({
      description: "Secret in the pool's namespace whose key `ca.crt` holds the certificates that the BMC's own must chain to.",
      defaultNote: "the system's certificates",
    }),
    insecure: z
      .boolean()
      .optional()
      .meta({ description: "Do not verify the BMC's certificate. Anyone on the path can then read the credentials.", defaultNote: "`false`" }),
  })
  .meta({ id: "Bmc", description: "How the BMC of a host is reached." });

export const machineInventoryInput = z
  .strictObject({
    name: objectName.meta({ description: "Name of the MachineInventory, as the host registered itself." }),
    hostname: hostName
      .optional()
      .meta({ description: "Host name, and so Node name, of the machine that runs on this host.", defaultNote: "the inventory's name" }),
    bmc: bmcInput
      .optional()
      .meta({ description: "BMC of the host. Without it the host can be used, but not repaired, and a host that died cannot be given up by itself." }),
  })
  .meta({ id: "PoolMember", description: "One registered host that the pool may hand out." });

export const bmcCredentialsInput = z
  .strictObject({
    username: z.string().min(1).meta({ description: "User of the BMC." }),
    password: z.string().min(1).meta({ description: "Password of that user.", secret: true }),
  })
  .meta({ id: "BmcCredentials", description: "Credentials of one BMC." });

export const poolArgs = z.strictObject({
  clusterName: clusterNameInput,
  name: labelName.optional().meta({
    description: "Name of the MachineInventoryPool object. Changing it replaces the resource.",
    defaultNote: "`<clusterName>-<logical name>-pool`",
    replaceOnChanges: true,
  }),
  namespace: namespaceInput,
  machineInventories: z
    .array(machineInventoryInput)
    .min(1, "must name at least one MachineInventory")
    .meta({ description: "Hosts of the pool, taken in this order. A host in use cannot be dropped; one that has not registered yet may be listed." }),
  bmcCredentials: z.record(z.string(), bmcCredentialsInput).optional().meta({
    description: "BMC credentials by inventory name, for entries without `bmc.secretName`; kept in a Secret `<inventory>-bmc` that goes with the pool.",
    secret: true,
  }),
  verifyBmc: z.boolean().optional().meta({ description: "Read each BMC's power state in preview and fail where that is impossible.", defaultNote: "`false`" }),
  waitTimeout: duration.default("2m").meta({ description: "How long a change may wait for hosts to be released." }),
  adopt: adoptInput,
});

// Inputs as they are stored may hold more, from another version of this package.
export const poolInputs = z.object(poolArgs.shape).extend({ ...hiddenInputs, namespace: labelName, poolName: labelName });
export type PoolInputs = z.output<typeof poolInputs>;
export type PoolMember = z.output<typeof machineInventoryInput>;

export const poolOutputs = z.object({
  poolName: z.string().meta({ description: "Name of the MachineInventoryPool object." }),
  namespace: z.string().meta({ description: "Namespace of the MachineInventoryPool object." }),
  pending: z
    .array(z.string())
    .default([])
    .meta({ description: "Declared inventories that had not registered at the last run; the next `up` after they have completes them." }),
});

export const poolState = poolInputs.extend(poolOutputs.shape);
export type PoolState = z.output<typeof poolState>;
