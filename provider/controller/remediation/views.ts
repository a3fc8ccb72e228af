/** The watched objects as a remediation sees them. What it does not need is not parsed, and what is odd counts as absent. */
import { z } from "zod";

import { capiAnnotations, capiLabels } from "../../capi/kinds.ts";
import type { LiveObject } from "../../cluster/objects.ts";
import type { MachineView, NodeView } from "./snapshot.ts";
import { type RemediationStatus, remediationStatusSchema } from "./status.ts";

export const REMEDIATION_FINALIZER = "metal3remediation.infrastructure.cluster.x-k8s.io";
export const OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service";
export const OUT_OF_SERVICE_VALUE = "pulumi-baremetal";
export const OWNER_REMEDIATED = "OwnerRemediated";

const conditions = z
  .array(z.object({ type: z.string(), status: z.string() }))
  .optional()
  .catch(undefined);

const machineSchema = z.object({
  spec: z.object({
    clusterName: z.string(),
    providerID: z.string().optional(),
    infrastructureRef: z.object({ kind: z.string(), name: z.string() }).optional(),
  }),
  status: z
    .object({ nodeRef: z.object({ name: z.string() }).optional().catch(undefined), conditions })
    .optional()
    .catch(undefined),
});

export interface ParsedMachine extends MachineView {
  clusterName: string;
  infrastructure: { kind: string; name: string } | undefined;
}

export function parseMachine(object: LiveObject): ParsedMachine {
  const { spec, status } = machineSchema.parse(object);
  const { metadata } = object;
  return {
    namespace: metadata.namespace ?? "",
    name: metadata.name,
    uid: metadata.uid,
    deleting: metadata.deletionTimestamp !== undefined,
    paused: isPaused(object),
    skipsRemediation: metadata.annotations?.[capiAnnotations.skipRemediation] !== undefined,
    nodeName: status?.nodeRef?.name,
    providerID: spec.providerID,
    offered: status?.conditions?.some(({ type, status: value }) => type === OWNER_REMEDIATED && value === "False") ?? false,
    clusterName: spec.clusterName,
    infrastructure: spec.infrastructureRef,
  };
}

export function isPaused(object: LiveObject): boolean {
  return object.metadata.annotations?.[capiAnnotations.paused] !== undefined;
}

const clusterSchema = z.object({ spec: z.object({ paused: z.boolean().optional() }).optional() });

export function clusterPaused(object: LiveObject | undefined): boolean {
  return object !== undefined && (isPaused(object) || clusterSchema.parse(object).spec?.paused === true);
}

const infrastructureMachineSchema = z.object({
  status: z
    .object({ machineInventoryRef: z.object({ name: z.string(), uid: z.string().optional() }).optional() })
    .optional()
    .catch(undefined),
});

export function inventoryRefOf(object: LiveObject): { name: string; uid?: string | undefined } | undefined {
  return infrastructureMachineSchema.parse(object).status?.machineInventoryRef;
}

/** The Machine that an object names as its owner. */
export function ownerMachine(object: LiveObject): { name: string; uid: string } | undefined {
  return object.metadata.ownerReferences?.find(({ kind, apiVersion }) => kind === "Machine" && apiVersion.startsWith("cluster.x-k8s.io/"));
}

export function clusterNameOf(object: LiveObject): string | undefined {
  return object.metadata.labels?.[capiLabels.clusterName];
}

/** A status that is not one of ours, say of another controller before, counts as none: the hold on the host tells the rest. */
export function parseStatus(object: LiveObject): RemediationStatus {
  const parsed = remediationStatusSchema.safeParse(object["status"] ?? {});
  return parsed.success ? parsed.data : {};
}

const taint = z.looseObject({ key: z.string(), value: z.string().optional(), effect: z.string() });
export type Taint = z.infer<typeof taint>;

const nodeSchema = z.object({
  spec: z.object({ providerID: z.string().optional(), taints: z.array(taint).optional() }).optional(),
  status: z
    .object({
      nodeInfo: z.object({ bootID: z.string().optional() }).optional(),
      conditions: z.array(z.object({ type: z.string(), status: z.string(), lastHeartbeatTime: z.string().nullish() })).optional(),
    })
    .optional(),
});

export function taintsOf(object: LiveObject): Taint[] {
  return nodeSchema.parse(object).spec?.taints ?? [];
}

/** The API server keeps one taint of a key and effect, so another's takes the place that ours would have. */
export function isOutOfService({ key, effect }: Taint): boolean {
  return key === OUT_OF_SERVICE_TAINT && effect === "NoExecute";
}

export function parseNode(object: LiveObject): NodeView {
  const { spec, status } = nodeSchema.parse(object);
  const { metadata } = object;
  const ready = status?.conditions?.find(({ type }) => type === "Ready");
  // The node lifecycle controller writes Unknown in place of a kubelet that is silent; the heartbeat stays the kubelet's.
  const heartbeat = Date.parse(ready?.lastHeartbeatTime ?? "");
  const bootID = status?.nodeInfo?.bootID;
  const found = spec?.taints?.find(isOutOfService);
  return {
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    deleting: metadata.deletionTimestamp !== undefined,
    providerID: spec?.providerID === "" ? undefined : spec?.providerID,
    bootID: bootID === "" ? undefined : bootID,
    ready: ready?.status === "True",
    heartbeatAt: Number.isNaN(heartbeat) ? undefined : heartbeat,
    outOfService: found === undefined ? "none" : found.value === OUT_OF_SERVICE_VALUE ? "ours" : "foreign",
    labels: metadata.labels ?? {},
    annotations: metadata.annotations ?? {},
  };
}
