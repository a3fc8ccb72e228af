/** Inputs of a RemediationPolicy. */
import { z } from "zod";

import { parseDuration } from "../durations.ts";
import { adoptInput, duration, hiddenInputs, labelName } from "../inputs.ts";

const DEFAULT_CONDITIONS = [
  { type: "Ready", status: "Unknown" as const, timeout: "300s" },
  { type: "Ready", status: "False" as const, timeout: "300s" },
];

export const groupReference = z
  .object({
    clusterName: labelName.meta({ description: "Name of the Cluster API Cluster." }),
    machineDeployment: labelName.meta({ description: "Name of the MachineDeployment." }),
    namespace: labelName.meta({ description: "Namespace of the MachineDeployment." }),
    replicas: z.int().min(0).optional().meta({ description: "Number of machines; only to warn of a percentage that never allows a repair." }),
  })
  .meta({ id: "GroupReference", description: "A WorkerGroup of this program, or the names of an existing MachineDeployment." });

export const conditionStatus = z.enum(["True", "False", "Unknown"]);

const nodeCondition = z
  .strictObject({
    type: z.string().min(1).meta({ description: "Type of the Node's condition." }),
    status: conditionStatus.meta({ description: "Status that counts as unhealthy." }),
    timeout: duration.meta({ description: "How long the status must last." }),
  })
  .meta({ id: "UnhealthyNodeCondition", description: "A condition of a Node that counts as unhealthy." });

function atLeast(seconds: number): typeof duration {
  return duration.refine((text) => (parseDuration(text) ?? seconds) >= seconds, `must be at least ${seconds}s`);
}

export const strategyInput = z
  .strictObject({
    type: z.literal("Reboot").default("Reboot").meta({ description: "How a host is repaired: by a power cycle, with its Node fenced while it is off." }),
    retryLimit: z
      .int()
      .min(1, "must be at least 1")
      .default(1)
      .meta({ description: "Further power cycles after the first before the machine is offered for replacement." }),
    timeout: atLeast(100).default("10m").meta({ description: "How long the Node may take to be Ready once its host is on again. At least 100s." }),
    powerOffTimeout: atLeast(1).default("5m").meta({ description: "How long the host may take until it is proven off." }),
    powerOnTimeout: atLeast(1).default("5m").meta({ description: "How long the host may take until it is on." }),
    drainTimeout: atLeast(1).default("5m").meta({ description: "How long fencing and draining of the Node may take." }),
    offConfirmation: duration.default("2s").meta({ description: "Time between the two readings that prove a host off." }),
    drainConfirmation: duration.default("5s").meta({ description: "Time between the two looks that find a Node drained." }),
  })
  .meta({ id: "RemediationStrategy", description: "How a host is repaired." });

export const policyArgs = z.strictObject({
  workerGroup: groupReference.meta({ description: "The WorkerGroup whose machines are watched." }),
  name: labelName.optional().meta({
    description: "Name of the MachineHealthCheck. Changing it replaces the resource.",
    defaultNote: "`<clusterName>-<logical name>`",
    replaceOnChanges: true,
  }),
  maxUnhealthy: z
    .union([
      z.int().min(1, "must be at least 1, or nothing would ever be repaired"),
      z.string().regex(/^\d{1,3}%$/, 'must be a number or a percentage such as "40%"'),
    ])
    .default("100%")
    .meta({
      description:
        "Nothing is repaired while more machines than this are unhealthy. A percentage is rounded down; machines that are still being provisioned count as unhealthy.",
    }),
  unhealthyNodeConditions: z
    .array(nodeCondition)
    .min(1, "must hold at least one condition")
    .default(DEFAULT_CONDITIONS)
    .meta({ description: "Conditions of a Node that count as unhealthy." }),
  nodeStartupTimeout: duration
    .refine((text) => {
      const seconds = parseDuration(text);
      return seconds === undefined || seconds === 0 || seconds >= 30;
    }, 'must be at least 30s, or "0s" to never give up on a machine that does not join')
    .default("20m")
    .meta({
      description: 'How long a machine may take to join before it counts as unhealthy; "0s" for ever. Give it the time that a bare-metal install takes.',
    }),
  strategy: strategyInput.prefault({}).meta({ description: "How a host is repaired." }),
  engine: z.enum(["bundled", "capm3"]).default("bundled").meta({
    description: "Who repairs: the controller of this package, or the one of cluster-api-provider-metal3 where that is installed.",
  }),
  waitTimeout: duration.default("2m").meta({ description: "How long a change may wait for the cluster." }),
  adopt: adoptInput,
});

// Inputs as they are stored may hold more, from another version of this package.
export const policyInputs = z.object(policyArgs.shape).extend({ ...hiddenInputs, namespace: labelName, clusterName: labelName, machineHealthCheck: labelName });
export type PolicyInputs = z.output<typeof policyInputs>;
export type RemediationStrategy = z.output<typeof strategyInput>;

export const policyOutputs = z.object({
  clusterName: z.string().meta({ description: "Name of the Cluster API Cluster." }),
  namespace: z.string().meta({ description: "Namespace of the MachineHealthCheck." }),
  machineHealthCheck: z.string().meta({ description: "Name of the MachineHealthCheck." }),
  remediationTemplate: z.string().meta({ description: "Name of the remediation template that repairs are made from." }),
  remediationKind: z.string().meta({ description: "Kind of that template." }),
});

export const policyState = policyInputs.extend(policyOutputs.shape);
export type PolicyState = z.output<typeof policyState>;
