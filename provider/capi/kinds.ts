/** Cluster API's kinds in its newer version, and the remediation kinds that its MachineHealthCheck creates. */
import type { ResourceKind } from "../cluster/objects.ts";

export type CapiVersion = "v1beta1" | "v1beta2";

function core(plural: string, kind: string): ResourceKind {
  return { group: "cluster.x-k8s.io", version: "v1beta2", plural, kind, namespaced: true };
}

export const clusters = core("clusters", "Cluster");
export const machines = core("machines", "Machine");
export const machineSets = core("machinesets", "MachineSet");
export const machineDeployments = core("machinedeployments", "MachineDeployment");
export const machineHealthChecks = core("machinehealthchecks", "MachineHealthCheck");
export const kubeadmConfigTemplates: ResourceKind = {
  group: "bootstrap.cluster.x-k8s.io",
  version: "v1beta2",
  plural: "kubeadmconfigtemplates",
  kind: "KubeadmConfigTemplate",
  namespaced: true,
};

export function inVersion(kind: ResourceKind, version: CapiVersion): ResourceKind {
  return { ...kind, version };
}

function remediation(plural: string, kind: string): ResourceKind {
  return { group: "infrastructure.cluster.x-k8s.io", version: "v1beta2", plural, kind, namespaced: true };
}

export const metal3Remediations = remediation("metal3remediations", "Metal3Remediation");
export const metal3RemediationTemplates = remediation("metal3remediationtemplates", "Metal3RemediationTemplate");
export const hostRemediations = remediation("hostremediations", "HostRemediation");
export const hostRemediationTemplates = remediation("hostremediationtemplates", "HostRemediationTemplate");

export const capiLabels = {
  clusterName: "cluster.x-k8s.io/cluster-name",
  deploymentName: "cluster.x-k8s.io/deployment-name",
  setName: "cluster.x-k8s.io/set-name",
} as const;

export const capiAnnotations = {
  /** Presence makes a Machine the first to go when replicas are lowered. */
  deleteMachine: "cluster.x-k8s.io/delete-machine",
  paused: "cluster.x-k8s.io/paused",
  skipRemediation: "cluster.x-k8s.io/skip-remediation",
  clonedFromName: "cluster.x-k8s.io/cloned-from-name",
} as const;
