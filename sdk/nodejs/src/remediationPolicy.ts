import * as pulumi from "@pulumi/pulumi";

import { changeAt } from "./inputs.ts";
import { DynamicResource } from "./resource.ts";
import type { AsOutputs } from "./resource.ts";
import type {
  GroupReference,
  RemediationPolicyArgs,
  RemediationPolicyEngine,
  RemediationPolicyOutputs,
  RemediationStrategy,
  UnhealthyNodeCondition,
} from "./types.generated.ts";
import { groupReference } from "./workerGroup.ts";

/**
 * When and how the machines of a WorkerGroup are repaired: a MachineHealthCheck with its remediation template. The
 * repairs themselves are the RemediationController's.
 */
export class RemediationPolicy extends DynamicResource implements AsOutputs<RemediationPolicyOutputs> {
  /** The WorkerGroup whose machines are watched. */
  declare public readonly workerGroup: pulumi.Output<GroupReference>;
  /** Name of the MachineHealthCheck where the program gave one. */
  declare public readonly name: pulumi.Output<string | undefined>;
  /** Nothing is repaired while more machines than this are unhealthy. */
  declare public readonly maxUnhealthy: pulumi.Output<number | string>;
  /** Conditions of a Node that count as unhealthy. */
  declare public readonly unhealthyNodeConditions: pulumi.Output<UnhealthyNodeCondition[]>;
  /** How long a machine may take to join before it counts as unhealthy. */
  declare public readonly nodeStartupTimeout: pulumi.Output<string>;
  /** How a host is repaired. */
  declare public readonly strategy: pulumi.Output<RemediationStrategy>;
  /** Who repairs. */
  declare public readonly engine: pulumi.Output<RemediationPolicyEngine>;
  /** How long a change may wait for the cluster. */
  declare public readonly waitTimeout: pulumi.Output<string>;
  /** Whether objects of the same name are taken over. */
  declare public readonly adopt: pulumi.Output<boolean | undefined>;
  /** Name of the Cluster API Cluster. */
  declare public readonly clusterName: pulumi.Output<string>;
  /** Namespace of the MachineHealthCheck. */
  declare public readonly namespace: pulumi.Output<string>;
  /** Name of the MachineHealthCheck. */
  declare public readonly machineHealthCheck: pulumi.Output<string>;
  /** Name of the remediation template that repairs are made from. */
  declare public readonly remediationTemplate: pulumi.Output<string>;
  /** Kind of that template. */
  declare public readonly remediationKind: pulumi.Output<string>;

  constructor(name: string, args: RemediationPolicyArgs, options: pulumi.CustomResourceOptions = {}) {
    const properties = {
      ...args,
      workerGroup: changeAt(args.workerGroup, [], groupReference),
      clusterName: undefined,
      namespace: undefined,
      machineHealthCheck: undefined,
      remediationTemplate: undefined,
      remediationKind: undefined,
    };
    super("RemediationPolicy", name, properties, options);
  }
}
