import * as pulumi from "@pulumi/pulumi";

import { changeAt } from "./inputs.ts";
import { poolReference } from "./machineInventoryPool.ts";
import { DynamicResource } from "./resource.ts";
import type { AsOutputs } from "./resource.ts";
import type { Bootstrap, Infrastructure, Rollout, WorkerGroupArgs, WorkerGroupOutputs } from "./types.generated.ts";

/**
 * A group of worker machines of a Cluster API cluster: a MachineDeployment with its templates. Previews name the hosts
 * that will be taken, the machines that will go, and those that will be replaced one by one.
 */
export class WorkerGroup extends DynamicResource implements AsOutputs<WorkerGroupOutputs> {
  /** Name of the Cluster API Cluster. */
  declare public readonly clusterName: pulumi.Output<string>;
  /** Kubernetes version of the machines. */
  declare public readonly version: pulumi.Output<string>;
  /** Number of machines. */
  declare public readonly replicas: pulumi.Output<number>;
  /** Name of the MachineDeployment where the program gave one. */
  declare public readonly name: pulumi.Output<string | undefined>;
  /** Namespace of the MachineDeployment. */
  declare public readonly namespace: pulumi.Output<string>;
  /** Where the machines run. */
  declare public readonly infrastructure: pulumi.Output<Infrastructure>;
  /** How a machine becomes a Node. */
  declare public readonly bootstrap: pulumi.Output<Bootstrap>;
  /** How machines are replaced. */
  declare public readonly rollout: pulumi.Output<Rollout | undefined>;
  /** How long a Node that goes is drained. */
  declare public readonly nodeDrainTimeout: pulumi.Output<string>;
  /** How long volumes of a Node that goes may take to detach. */
  declare public readonly nodeVolumeDetachTimeout: pulumi.Output<string>;
  /** Machines or Nodes that go when `replicas` is lowered. */
  declare public readonly removeMachines: pulumi.Output<string[] | undefined>;
  /** Further labels of the Machines. */
  declare public readonly labels: pulumi.Output<Record<string, string> | undefined>;
  /** How long a change may take until all machines are ready, or gone. */
  declare public readonly waitTimeout: pulumi.Output<string>;
  /** Whether objects of the same name are taken over. */
  declare public readonly adopt: pulumi.Output<boolean | undefined>;
  /** Name of the MachineDeployment. */
  declare public readonly machineDeployment: pulumi.Output<string>;
  /** Name of the infrastructure template that machines are made from. */
  declare public readonly infrastructureTemplate: pulumi.Output<string>;
  /** Name of the bootstrap template that machines are made from. */
  declare public readonly bootstrapTemplate: pulumi.Output<string>;

  constructor(name: string, args: WorkerGroupArgs, options: pulumi.CustomResourceOptions = {}) {
    const properties = {
      ...args,
      infrastructure: changeAt(args.infrastructure, ["machineInventory", "pool"], poolReference),
      namespace: args.namespace,
      machineDeployment: undefined,
      infrastructureTemplate: undefined,
      bootstrapTemplate: undefined,
    };
    super("WorkerGroup", name, properties, options);
  }
}

/** A group of this program as another resource needs it. */
export function groupReference(group: unknown): unknown {
  if (!(group instanceof WorkerGroup)) return group;
  return { clusterName: group.clusterName, machineDeployment: group.machineDeployment, namespace: group.namespace, replicas: group.replicas };
}
