/** MachineDeployment and MachineSet: one model inside, each Cluster API version in its own shape at this edge. */
import { z } from "zod";

import type { KubernetesObject, LiveObject } from "../cluster/objects.ts";
import { apiVersionOf } from "../cluster/objects.ts";
import type { Condition } from "./conditions.ts";
import { conditionsOf } from "./conditions.ts";
import type { CapiVersion } from "./kinds.ts";
import { goSeconds } from "./go-duration.ts";
import { capiLabels, inVersion, machineDeployments } from "./kinds.ts";
import type { Reference, TemplateRef } from "./references.ts";
import { referenceModel, renderReference } from "./references.ts";

export type CountOrPercent = number | string;

export interface MachineDeploymentModel {
  name: string;
  namespace: string;
  clusterName: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  replicas: number;
  version: string;
  maxSurge: CountOrPercent;
  maxUnavailable: CountOrPercent;
  /** Labels of the Machines, beside those that tie them to the MachineDeployment. */
  machineLabels: Record<string, string>;
  /** 0: for ever. */
  nodeDrainSeconds: number;
  nodeVolumeDetachSeconds: number;
  bootstrap: TemplateRef;
  infrastructure: TemplateRef;
}

export function renderMachineDeployment(model: MachineDeploymentModel, version: CapiVersion): KubernetesObject {
  const { name, namespace, clusterName } = model;
  const own = { [capiLabels.clusterName]: clusterName, [capiLabels.deploymentName]: name };
  const strategy = { type: "RollingUpdate", rollingUpdate: { maxSurge: model.maxSurge, maxUnavailable: model.maxUnavailable } };
  const timeouts =
    version === "v1beta2"
      ? { deletion: { nodeDrainTimeoutSeconds: model.nodeDrainSeconds, nodeVolumeDetachTimeoutSeconds: model.nodeVolumeDetachSeconds } }
      : { nodeDrainTimeout: `${model.nodeDrainSeconds}s`, nodeVolumeDetachTimeout: `${model.nodeVolumeDetachSeconds}s` };
  return {
    apiVersion: apiVersionOf(inVersion(machineDeployments, version)),
    kind: machineDeployments.kind,
    metadata: { name, namespace, labels: { ...model.labels, [capiLabels.clusterName]: clusterName }, annotations: model.annotations },
    spec: {
      clusterName,
      replicas: model.replicas,
      ...(version === "v1beta2" ? { rollout: { strategy } } : { strategy }),
      selector: { matchLabels: own },
      template: {
        metadata: { labels: { ...model.machineLabels, ...own } },
        spec: {
          clusterName,
          version: model.version,
          ...timeouts,
          bootstrap: { configRef: renderReference(model.bootstrap, namespace, version) },
          infrastructureRef: renderReference(model.infrastructure, namespace, version),
        },
      },
    },
  };
}

const templateModel = z.object({
  metadata: z.object({ labels: z.record(z.string(), z.string()).optional() }).optional(),
  spec: z.object({
    version: z.string().optional(),
    nodeDrainTimeout: z.string().optional(),
    nodeVolumeDetachTimeout: z.string().optional(),
    deletion: z.object({ nodeDrainTimeoutSeconds: z.number().optional(), nodeVolumeDetachTimeoutSeconds: z.number().optional() }).optional(),
    bootstrap: z.object({ configRef: referenceModel.optional() }),
    infrastructureRef: referenceModel,
  }),
});

const countOrPercent = z.union([z.number(), z.string()]);
const strategyModel = z.object({ rollingUpdate: z.object({ maxSurge: countOrPercent.optional(), maxUnavailable: countOrPercent.optional() }).optional() });

const deploymentModel = z.object({
  spec: z.object({
    clusterName: z.string(),
    replicas: z.number().default(1),
    strategy: strategyModel.optional(),
    rollout: z.object({ strategy: strategyModel.optional() }).optional(),
    template: templateModel,
  }),
  status: z
    .object({
      observedGeneration: z.number().optional(),
      availableReplicas: z.number().optional(),
      updatedReplicas: z.number().optional(),
      deprecated: z.object({ v1beta1: z.object({ updatedReplicas: z.number().optional() }).optional() }).optional(),
    })
    .optional(),
});

export interface MachineDeploymentView {
  name: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
  deleting: boolean;
  clusterName: string;
  replicas: number;
  version: string | undefined;
  maxSurge: CountOrPercent | undefined;
  maxUnavailable: CountOrPercent | undefined;
  nodeDrainSeconds: number | undefined;
  nodeVolumeDetachSeconds: number | undefined;
  machineLabels: Record<string, string>;
  bootstrap: Reference | undefined;
  infrastructure: Reference;
  /** Whether the controller has seen the present spec. */
  observed: boolean;
  availableReplicas: number;
  /** Replicas of the newest MachineSet as counted from MachineSets; absent where the cluster no longer says so. */
  updatedReplicas: number | undefined;
  conditions: Condition[];
}

export function readMachineDeployment(live: LiveObject): MachineDeploymentView {
  const { spec, status } = deploymentModel.parse(live);
  const rolling = (spec.rollout?.strategy ?? spec.strategy)?.rollingUpdate;
  const machine = spec.template.spec;
  return {
    name: live.metadata.name,
    labels: live.metadata.labels ?? {},
    annotations: live.metadata.annotations ?? {},
    deleting: live.metadata.deletionTimestamp !== undefined,
    clusterName: spec.clusterName,
    replicas: spec.replicas,
    version: machine.version,
    maxSurge: rolling?.maxSurge,
    maxUnavailable: rolling?.maxUnavailable,
    nodeDrainSeconds: machine.deletion?.nodeDrainTimeoutSeconds ?? goSeconds(machine.nodeDrainTimeout),
    nodeVolumeDetachSeconds: machine.deletion?.nodeVolumeDetachTimeoutSeconds ?? goSeconds(machine.nodeVolumeDetachTimeout),
    machineLabels: spec.template.metadata?.labels ?? {},
    bootstrap: machine.bootstrap.configRef,
    infrastructure: machine.infrastructureRef,
    observed: status?.observedGeneration !== undefined && status.observedGeneration === live.metadata.generation,
    availableReplicas: status?.availableReplicas ?? 0,
    updatedReplicas: status?.deprecated?.v1beta1?.updatedReplicas ?? status?.updatedReplicas,
    conditions: conditionsOf(live["status"]),
  };
}

export interface MachineSetView {
  name: string;
  deleting: boolean;
  replicas: number;
  version: string | undefined;
  bootstrap: Reference | undefined;
  infrastructure: Reference;
  conditions: Condition[];
}

const setModel = z.object({ spec: z.object({ replicas: z.number().default(1), template: templateModel }) });

export function readMachineSet(live: LiveObject): MachineSetView {
  const { spec } = setModel.parse(live);
  return {
    name: live.metadata.name,
    deleting: live.metadata.deletionTimestamp !== undefined,
    replicas: spec.replicas,
    version: spec.template.spec.version,
    bootstrap: spec.template.spec.bootstrap.configRef,
    infrastructure: spec.template.spec.infrastructureRef,
    conditions: conditionsOf(live["status"]),
  };
}
