/** The objects of a policy: a remediation template that is named by its content and never edited, and the MachineHealthCheck. */
import type { CapiVersion } from "../../capi/kinds.ts";
import { capiLabels, hostRemediationTemplates, inVersion, metal3RemediationTemplates } from "../../capi/kinds.ts";
import type { MachineHealthCheckModel } from "../../capi/machine-health-check.ts";
import type { KubernetesObject, ResourceKind } from "../../cluster/objects.ts";
import { apiVersionOf } from "../../cluster/objects.ts";
import { secondsOf } from "../inputs.ts";
import { ownAnnotations, ownLabels } from "../ownership.ts";
import { contentName } from "../worker-group/manifests.ts";
import type { PolicyInputs, RemediationStrategy } from "./inputs.ts";

/** Whose remediation objects are made: ours, or those of an installed CAPM3. */
export interface Engine {
  kind: ResourceKind;
  /** CAPM3 knows only type, retries and one timeout. */
  capm3: boolean;
}

/** CAPM3's manager always reconciles Metal3Remediation where it is installed, so that ours has to be another kind there. */
export function engineOf(engine: PolicyInputs["engine"], capm3Installed: boolean, capm3Version: CapiVersion): Engine {
  if (engine === "capm3") return { kind: inVersion(metal3RemediationTemplates, capm3Version), capm3: true };
  return { kind: capm3Installed ? hostRemediationTemplates : metal3RemediationTemplates, capm3: false };
}

function renderStrategy(strategy: RemediationStrategy, { kind, capm3 }: Engine): Record<string, unknown> {
  const { type, retryLimit } = strategy;
  const timeout = secondsOf(strategy.timeout);
  const common = { type, retryLimit, ...(kind.version === "v1beta1" ? { timeout: `${timeout}s` } : { timeoutSeconds: timeout }) };
  if (capm3) return common;
  return {
    ...common,
    powerOffTimeoutSeconds: secondsOf(strategy.powerOffTimeout),
    powerOnTimeoutSeconds: secondsOf(strategy.powerOnTimeout),
    drainTimeoutSeconds: secondsOf(strategy.drainTimeout),
    offConfirmationSeconds: secondsOf(strategy.offConfirmation),
    drainConfirmationSeconds: secondsOf(strategy.drainConfirmation),
  };
}

export function templateName(inputs: Pick<PolicyInputs, "machineHealthCheck" | "strategy">, engine: Engine): string {
  // By the strategy in one spelling, so that another served version makes no new template.
  return contentName(inputs.machineHealthCheck, { kind: engine.kind.kind, strategy: inputs.strategy });
}

export function renderTemplate(inputs: PolicyInputs, engine: Engine): KubernetesObject {
  return {
    apiVersion: apiVersionOf(engine.kind),
    kind: engine.kind.kind,
    metadata: {
      name: templateName(inputs, engine),
      namespace: inputs.namespace,
      labels: { ...ownLabels, ...policyLabels(inputs) },
      annotations: ownAnnotations(inputs.owner),
    },
    spec: { template: { spec: { strategy: renderStrategy(inputs.strategy, engine) } } },
  };
}

/** By which a policy finds its templates again. */
export function policyLabels({ clusterName, machineHealthCheck }: Pick<PolicyInputs, "clusterName" | "machineHealthCheck">): Record<string, string> {
  return { [capiLabels.clusterName]: clusterName, "pulumi-baremetal.dev/policy": machineHealthCheck };
}

export function healthCheckModel(inputs: PolicyInputs, engine: Engine): MachineHealthCheckModel {
  return {
    name: inputs.machineHealthCheck,
    namespace: inputs.namespace,
    clusterName: inputs.clusterName,
    deployment: inputs.workerGroup.machineDeployment,
    labels: { ...ownLabels },
    annotations: ownAnnotations(inputs.owner),
    unhealthyConditions: inputs.unhealthyNodeConditions.map(({ type, status, timeout }) => ({ type, status, timeoutSeconds: secondsOf(timeout) })),
    nodeStartupSeconds: secondsOf(inputs.nodeStartupTimeout),
    maxUnhealthy: inputs.maxUnhealthy,
    template: { apiVersion: apiVersionOf(engine.kind), kind: engine.kind.kind, name: templateName(inputs, engine) },
  };
}
