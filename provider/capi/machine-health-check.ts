/** MachineHealthCheck: one model, two shapes. */
import { z } from "zod";

import type { KubernetesObject, LiveObject } from "../cluster/objects.ts";
import { apiVersionOf } from "../cluster/objects.ts";
import { goSeconds } from "./go-duration.ts";
import type { CapiVersion } from "./kinds.ts";
import { capiLabels, inVersion, machineHealthChecks } from "./kinds.ts";
import type { CountOrPercent } from "./machine-deployment.ts";

export interface UnhealthyCondition {
  type: string;
  status: string;
  timeoutSeconds: number;
}

export interface MachineHealthCheckModel {
  name: string;
  namespace: string;
  clusterName: string;
  /** MachineDeployment whose Machines are watched. */
  deployment: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  unhealthyConditions: UnhealthyCondition[];
  /** 0: never give up on a Machine that does not join. */
  nodeStartupSeconds: number;
  maxUnhealthy: CountOrPercent;
  template: { apiVersion: string; kind: string; name: string };
}

export function renderMachineHealthCheck(model: MachineHealthCheckModel, version: CapiVersion): KubernetesObject {
  const { name, namespace, clusterName } = model;
  const own =
    version === "v1beta2"
      ? {
          checks: { nodeStartupTimeoutSeconds: model.nodeStartupSeconds, unhealthyNodeConditions: model.unhealthyConditions },
          remediation: { triggerIf: { unhealthyLessThanOrEqualTo: model.maxUnhealthy }, templateRef: model.template },
        }
      : {
          nodeStartupTimeout: `${model.nodeStartupSeconds}s`,
          unhealthyConditions: model.unhealthyConditions.map(({ type, status, timeoutSeconds }) => ({ type, status, timeout: `${timeoutSeconds}s` })),
          maxUnhealthy: model.maxUnhealthy,
          remediationTemplate: { ...model.template, namespace },
        };
  return {
    apiVersion: apiVersionOf(inVersion(machineHealthChecks, version)),
    kind: machineHealthChecks.kind,
    metadata: { name, namespace, labels: { ...model.labels, [capiLabels.clusterName]: clusterName }, annotations: model.annotations },
    spec: { clusterName, selector: { matchLabels: { [capiLabels.clusterName]: clusterName, [capiLabels.deploymentName]: model.deployment } }, ...own },
  };
}

const countOrPercent = z.union([z.number(), z.string()]);
const templateRef = z.object({ kind: z.string().default(""), name: z.string().default("") });

const conditionModel = z.object({ type: z.string(), status: z.string(), timeoutSeconds: z.number().optional(), timeout: z.string().optional() });

const model = z.object({
  spec: z.object({
    nodeStartupTimeout: z.string().optional(),
    unhealthyConditions: z.array(conditionModel).optional(),
    checks: z.object({ nodeStartupTimeoutSeconds: z.number().optional(), unhealthyNodeConditions: z.array(conditionModel).optional() }).optional(),
    maxUnhealthy: countOrPercent.optional(),
    remediationTemplate: templateRef.optional(),
    remediation: z
      .object({ triggerIf: z.object({ unhealthyLessThanOrEqualTo: countOrPercent.optional() }).optional(), templateRef: templateRef.optional() })
      .optional(),
  }),
});

export interface MachineHealthCheckView {
  name: string;
  annotations: Record<string, string>;
  maxUnhealthy: CountOrPercent | undefined;
  unhealthyConditions: UnhealthyCondition[];
  nodeStartupSeconds: number | undefined;
  template: { kind: string; name: string } | undefined;
}

export function readMachineHealthCheck(live: LiveObject): MachineHealthCheckView {
  const { spec } = model.parse(live);
  return {
    name: live.metadata.name,
    annotations: live.metadata.annotations ?? {},
    unhealthyConditions: (spec.checks?.unhealthyNodeConditions ?? spec.unhealthyConditions ?? []).map(({ type, status, timeoutSeconds, timeout }) => ({
      type,
      status,
      timeoutSeconds: timeoutSeconds ?? goSeconds(timeout) ?? 0,
    })),
    nodeStartupSeconds: spec.checks?.nodeStartupTimeoutSeconds ?? goSeconds(spec.nodeStartupTimeout),
    maxUnhealthy: spec.remediation?.triggerIf?.unhealthyLessThanOrEqualTo ?? spec.maxUnhealthy,
    template: spec.remediation?.templateRef ?? spec.remediationTemplate,
  };
}
