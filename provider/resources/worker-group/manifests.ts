/** The objects of a group: two templates that are named by their content and never edited, and the MachineDeployment. */
import { createHash } from "node:crypto";

import type { KubeadmConfigModel } from "../../capi/kubeadm-config-template.ts";
import { renderKubeadmConfigTemplate } from "../../capi/kubeadm-config-template.ts";
import { capiLabels, inVersion, kubeadmConfigTemplates } from "../../capi/kinds.ts";
import type { CapiVersion } from "../../capi/kinds.ts";
import type { MachineDeploymentModel } from "../../capi/machine-deployment.ts";
import type { TemplateRef } from "../../capi/references.ts";
import type { KubernetesObject, ObjectMeta, ResourceKind } from "../../cluster/objects.ts";
import { apiVersionOf } from "../../cluster/objects.ts";
import { baremetalMachineTemplates } from "../../hosts/kinds.ts";
import { POOL_NAME_LABEL } from "../../hosts/names.ts";
import { canonical, secondsOf } from "../inputs.ts";
import { ownAnnotations, ownLabels } from "../ownership.ts";
import { completeBootstrap } from "./bootstrap.ts";
import type { GroupInputs, TemplateReference } from "./inputs.ts";

export const DEFAULT_ROLLOUT = { maxSurge: 0, maxUnavailable: 1 } as const;

/** Whose objects they are. */
export type GroupIdentity = Pick<GroupInputs, "clusterName" | "namespace" | "machineDeployment" | "owner">;

export interface Template {
  kind: ResourceKind;
  object: KubernetesObject;
}

export interface RenderedGroup {
  /** Templates that the group keeps itself; a referenced one is not among them. */
  templates: Template[];
  infrastructureTemplate: string;
  bootstrapTemplate: string;
}

/** A name that says what is in it: equal content, equal name, whatever version of Cluster API it is written in. */
export function contentName(prefix: string, content: unknown): string {
  return `${prefix}-${createHash("sha256").update(canonical(content)).digest("hex").slice(0, 8)}`;
}

export function poolNameOf(infrastructure: GroupInputs["infrastructure"]): string | undefined {
  const pool = infrastructure.machineInventory?.pool;
  return typeof pool === "string" ? pool : pool?.poolName;
}

function metadataOf(identity: GroupIdentity, name: string): ObjectMeta {
  return {
    name,
    namespace: identity.namespace,
    labels: { ...ownLabels, [capiLabels.clusterName]: identity.clusterName, [capiLabels.deploymentName]: identity.machineDeployment },
    annotations: ownAnnotations(identity.owner),
  };
}

/** Names of the templates: `<machine deployment>-<8 hex of content>`, or those that are referred to. */
export function templateNames({
  machineDeployment,
  infrastructure,
  bootstrap,
  version,
}: Pick<GroupInputs, "machineDeployment" | "infrastructure" | "bootstrap" | "version">): {
  infrastructure: string;
  bootstrap: string;
} {
  return {
    infrastructure: infrastructure.templateRef?.name ?? contentName(machineDeployment, { pool: poolNameOf(infrastructure) }),
    bootstrap: bootstrap.templateRef?.name ?? contentName(machineDeployment, { kubeadm: completeBootstrap(bootstrap.kubeadm ?? {}, version) }),
  };
}

function infrastructureTemplate(identity: GroupIdentity, name: string, pool: string): Template {
  return {
    kind: baremetalMachineTemplates,
    object: {
      apiVersion: apiVersionOf(baremetalMachineTemplates),
      kind: baremetalMachineTemplates.kind,
      metadata: metadataOf(identity, name),
      spec: { template: { spec: { machineInventoryPoolRef: { name: pool } } } },
    },
  };
}

function bootstrapTemplate(identity: GroupIdentity, name: string, model: KubeadmConfigModel, version: CapiVersion): Template {
  return { kind: inVersion(kubeadmConfigTemplates, version), object: renderKubeadmConfigTemplate(metadataOf(identity, name), model, version) };
}

export function renderGroup(inputs: GroupInputs, bootstrapVersion: CapiVersion): RenderedGroup {
  const names = templateNames(inputs);
  const pool = poolNameOf(inputs.infrastructure);
  const { kubeadm } = inputs.bootstrap;
  return {
    templates: [
      ...(pool === undefined ? [] : [infrastructureTemplate(inputs, names.infrastructure, pool)]),
      ...(kubeadm === undefined ? [] : [bootstrapTemplate(inputs, names.bootstrap, completeBootstrap(kubeadm, inputs.version), bootstrapVersion)]),
    ],
    infrastructureTemplate: names.infrastructure,
    bootstrapTemplate: names.bootstrap,
  };
}

/** References of the MachineDeployment. `versionOf` says in which version a foreign template is served. */
export function referencesOf(
  inputs: GroupInputs,
  bootstrapVersion: CapiVersion,
  versionOf: (reference: TemplateReference) => string,
): { infrastructure: TemplateRef; bootstrap: TemplateRef } {
  const names = templateNames(inputs);
  const foreignInfrastructure = inputs.infrastructure.templateRef;
  const foreignBootstrap = inputs.bootstrap.templateRef;
  const own = (kind: ResourceKind, version: string, name: string): TemplateRef => ({ apiGroup: kind.group, version, kind: kind.kind, name });
  return {
    infrastructure:
      foreignInfrastructure === undefined
        ? own(baremetalMachineTemplates, baremetalMachineTemplates.version, names.infrastructure)
        : { ...foreignInfrastructure, version: versionOf(foreignInfrastructure) },
    bootstrap:
      foreignBootstrap === undefined
        ? own(kubeadmConfigTemplates, bootstrapVersion, names.bootstrap)
        : { ...foreignBootstrap, version: versionOf(foreignBootstrap) },
  };
}

export function deploymentModel(inputs: GroupInputs, references: { infrastructure: TemplateRef; bootstrap: TemplateRef }): MachineDeploymentModel {
  const { maxSurge, maxUnavailable } = inputs.rollout ?? DEFAULT_ROLLOUT;
  return {
    name: inputs.machineDeployment,
    namespace: inputs.namespace,
    clusterName: inputs.clusterName,
    labels: { ...ownLabels },
    annotations: ownAnnotations(inputs.owner),
    replicas: inputs.replicas,
    version: inputs.version,
    maxSurge,
    maxUnavailable,
    machineLabels: { ...inputs.labels, [POOL_NAME_LABEL]: inputs.machineDeployment },
    nodeDrainSeconds: secondsOf(inputs.nodeDrainTimeout),
    nodeVolumeDetachSeconds: secondsOf(inputs.nodeVolumeDetachTimeout),
    ...references,
  };
}
