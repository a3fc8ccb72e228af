/** Inputs of a WorkerGroup. */
import { z } from "zod";

import { adoptInput, clusterNameInput, duration, hiddenInputs, labelName, namespaceInput, objectName } from "../inputs.ts";
import { kubeadmInput } from "./kubeadm.ts";

const poolHost = z
  .object({
    name: objectName.meta({ description: "Name of the MachineInventory." }),
    hostname: z.string().optional().meta({ description: "Host name of the machine on it." }),
  })
  .meta({ id: "PoolHost", description: "One host of a pool, as far as a group has to know it." });

export const poolReference = z
  .object({
    poolName: labelName.meta({ description: "Name of the MachineInventoryPool object." }),
    namespace: labelName.meta({ description: "Namespace of the pool; it must be the group's." }),
    machineInventories: z.array(poolHost).meta({ description: "The pool's declared hosts; what a preview plans from." }),
  })
  .meta({ id: "PoolReference", description: "A MachineInventoryPool of this program, or one described by hand." });

const machineInventoryInfrastructure = z
  .strictObject({
    pool: z
      .union([labelName, poolReference])
      .meta({ description: "The MachineInventoryPool that hosts are taken from: the resource, or the name of an existing one." }),
  })
  .meta({ id: "MachineInventoryInfrastructure", description: "Machines on hosts of a MachineInventoryPool." });

export const templateReference = z
  .strictObject({
    apiGroup: z.string().min(1).meta({ description: "API group of the template, for example `infrastructure.cluster.x-k8s.io`." }),
    kind: z
      .string()
      .regex(/^[A-Z]\w*Template$/, "must be a kind that ends in Template")
      .meta({ description: "Kind of the template." }),
    name: objectName.meta({ description: "Name of the template, in the group's namespace." }),
  })
  .meta({ id: "TemplateReference", description: "A template that somebody else keeps." });

function exactlyOne(alternatives: object): boolean {
  return Object.values(alternatives).filter((value) => value !== undefined).length === 1;
}

const infrastructureInput = z
  .strictObject({
    machineInventory: machineInventoryInfrastructure.optional().meta({ description: "Machines on hosts of a MachineInventoryPool." }),
    templateRef: templateReference.optional().meta({
      description: "Machines of any other infrastructure provider, from a template that you keep. A change of the reference replaces the machines one by one.",
    }),
  })
  .refine(exactlyOne, "must have exactly one of `machineInventory` and `templateRef`")
  .meta({ id: "Infrastructure", description: "Where the machines run." });

const bootstrapInput = z
  .strictObject({
    kubeadm: kubeadmInput.optional().meta({ description: "Bootstrap by kubeadm. A change replaces the machines one by one." }),
    templateRef: templateReference.optional().meta({ description: "A bootstrap template that you keep." }),
  })
  .refine(exactlyOne, "must have exactly one of `kubeadm` and `templateRef`")
  .meta({ id: "Bootstrap", description: "How a machine becomes a Node." });

const countOrPercent = z.union([z.int().min(0), z.string().regex(/^\d{1,3}%$/, 'must be a number or a percentage such as "25%"')]);

const rolloutInput = z
  .strictObject({
    maxSurge: countOrPercent.default(0).meta({ description: "Machines above `replicas` during a rollout; each needs a free host." }),
    maxUnavailable: countOrPercent.default(1).meta({ description: "Machines below `replicas` during a rollout." }),
  })
  .refine(
    ({ maxSurge, maxUnavailable }) => !(isZero(maxSurge) && isZero(maxUnavailable)),
    "must allow at least one of `maxSurge` and `maxUnavailable`, else a rollout cannot begin",
  )
  .meta({ id: "Rollout", description: "How machines are replaced." });

function isZero(count: number | string): boolean {
  return Number.parseInt(String(count), 10) === 0;
}

export const versionInput = z
  .string()
  .regex(/^v\d+\.\d+\.\d+([-+][0-9A-Za-z.+-]+)?$/, 'must be a full Kubernetes version with a leading v, such as "v1.34.2"')
  .meta({ description: "Kubernetes version of the machines, with a leading `v`. A change replaces the machines one by one." });

export const groupArgs = z.strictObject({
  clusterName: clusterNameInput,
  version: versionInput,
  replicas: z
    .int()
    .min(0, "must not be negative")
    .meta({ description: "Number of machines. Lowering it lets Cluster API choose which go, unless `removeMachines` names them." }),
  name: labelName.optional().meta({
    description: "Name of the MachineDeployment. Changing it replaces the resource.",
    defaultNote: "`<clusterName>-<logical name>`",
    replaceOnChanges: true,
  }),
  namespace: namespaceInput,
  infrastructure: infrastructureInput.meta({ description: "Where the machines run. Another pool replaces the machines one by one." }),
  bootstrap: bootstrapInput.meta({ description: "How a machine becomes a Node." }),
  rollout: rolloutInput
    .optional()
    .meta({ description: "How machines are replaced.", defaultNote: "`{ maxSurge: 0, maxUnavailable: 1 }`: one by one, as a pool has no hosts to spare" }),
  nodeDrainTimeout: duration.default("5m").meta({ description: "How long a Node that goes is drained. A change replaces nothing." }),
  nodeVolumeDetachTimeout: duration.default("5m").meta({ description: "How long volumes of a Node that goes may take to detach. A change replaces nothing." }),
  removeMachines: z.array(z.string().min(1)).optional().meta({
    description: "Machines or Nodes that go when `replicas` is lowered, by exactly their number. Names that are gone already are left out of account.",
  }),
  labels: z.record(z.string(), z.string()).optional().meta({ description: "Further labels of the Machines. A change replaces nothing." }),
  waitTimeout: duration.default("60m").meta({ description: "How long a change may take until all machines are ready, or gone." }),
  adopt: adoptInput,
});

// Inputs as they are stored may hold more, from another version of this package.
export const groupInputs = z.object(groupArgs.shape).extend({ ...hiddenInputs, namespace: labelName, machineDeployment: labelName });
export type GroupInputs = z.output<typeof groupInputs>;

export const groupOutputs = z.object({
  machineDeployment: z.string().meta({ description: "Name of the MachineDeployment." }),
  namespace: z.string().meta({ description: "Namespace of the MachineDeployment." }),
  infrastructureTemplate: z.string().meta({ description: "Name of the infrastructure template that machines are made from." }),
  bootstrapTemplate: z.string().meta({ description: "Name of the bootstrap template that machines are made from." }),
});

export const groupState = groupInputs.extend(groupOutputs.shape);
export type GroupState = z.output<typeof groupState>;
export type TemplateReference = z.output<typeof templateReference>;
