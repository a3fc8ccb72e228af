/** A BaremetalMachine as its controller sees it, and its status as the controller writes it. */
import { z } from "zod";

import { capiAnnotations, capiLabels } from "../../capi/kinds.ts";
import type { LiveObject } from "../../cluster/objects.ts";
import { CONFIRMED_OFF_ANNOTATION } from "../../hosts/names.ts";

export const MACHINE_FINALIZER = "baremetalmachine.infrastructure.cluster.x-k8s.io";

export const phases = ["Pending", "Allocated", "Reprovisioning", "Running", "Preparing", "Failed"] as const;
export type Phase = (typeof phases)[number];

/**
 * - `Ready`: the machine is provisioned; otherwise the reason for which it waits
 * - `HostGivenUp`: once deleted, whether its host is clean or proven off, so that the Machine may go
 * - `Paused`: the Cluster or the object is paused and nothing is done
 */
export type ConditionType = "Ready" | "HostGivenUp" | "Paused";

export interface Condition {
  type: string;
  status: "True" | "False" | "Unknown";
  reason: string;
  message: string;
  lastTransitionTime: string;
}

export type ConditionIntent = Omit<Condition, "lastTransitionTime" | "type"> & { type: ConditionType };

export interface BaremetalMachine {
  name: string;
  namespace: string;
  uid: string;
  resourceVersion: string;
  deleting: boolean;
  /** By its own annotation; its Cluster may be paused besides. */
  paused: boolean;
  finalizers: readonly string[];
  /** The Cluster API Machine that owns it. */
  machine: { name: string; uid: string } | undefined;
  clusterName: string | undefined;
  poolName: string;
  providerId: string | undefined;
  /** What the status says: once true, a Node lives on the host. */
  provisioned: boolean;
  /** The uid of the Machine for which a person confirmed that its host is off, where the inventory is gone. */
  confirmedOff: string | undefined;
  phase: Phase | undefined;
  /** The inventory that was chosen; it is this machine's only once it names this machine as its owner. */
  inventory: { name: string; uid: string } | undefined;
  conditions: readonly Condition[];
}

const condition = z.object({
  type: z.string(),
  status: z.enum(["True", "False", "Unknown"]),
  reason: z.string().default(""),
  message: z.string().default(""),
  lastTransitionTime: z.string().default(""),
});

const schema = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
    deletionTimestamp: z.string().optional(),
    annotations: z.record(z.string(), z.string()).optional(),
    labels: z.record(z.string(), z.string()).optional(),
    finalizers: z.array(z.string()).optional(),
    ownerReferences: z.array(z.object({ apiVersion: z.string(), kind: z.string(), name: z.string(), uid: z.string() })).optional(),
  }),
  spec: z.object({ providerID: z.string().optional(), machineInventoryPoolRef: z.object({ name: z.string() }) }),
  status: z
    .object({
      phase: z.enum(phases).optional(),
      machineInventoryRef: z.object({ name: z.string(), uid: z.string() }).optional(),
      initialization: z.object({ provisioned: z.boolean().optional() }).optional(),
      conditions: z.array(condition).optional(),
    })
    .optional(),
});

/** Throws a ZodError for an object that the CRD would not have let in. */
export function parseMachine(object: LiveObject): BaremetalMachine {
  const { metadata, spec, status } = schema.parse(object);
  const owner = (metadata.ownerReferences ?? []).find(({ apiVersion, kind }) => kind === "Machine" && apiVersion.startsWith("cluster.x-k8s.io/"));
  return {
    name: metadata.name,
    namespace: metadata.namespace,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    deleting: metadata.deletionTimestamp !== undefined,
    paused: metadata.annotations?.[capiAnnotations.paused] !== undefined,
    finalizers: metadata.finalizers ?? [],
    machine: owner === undefined ? undefined : { name: owner.name, uid: owner.uid },
    clusterName: metadata.labels?.[capiLabels.clusterName],
    poolName: spec.machineInventoryPoolRef.name,
    providerId: spec.providerID,
    provisioned: status?.initialization?.provisioned === true,
    confirmedOff: metadata.annotations?.[CONFIRMED_OFF_ANNOTATION],
    phase: status?.phase,
    inventory: status?.machineInventoryRef,
    conditions: status?.conditions ?? [],
  };
}

/** Whether its host has been brought up for it: the provider id is set before the status says so, and outlives a status that is lost. */
export function wasProvisioned(machine: Pick<BaremetalMachine, "provisioned" | "providerId">): boolean {
  return machine.provisioned || machine.providerId !== undefined;
}

export function conditionOf(machine: Pick<BaremetalMachine, "conditions">, type: ConditionType): Condition | undefined {
  return machine.conditions.find((candidate) => candidate.type === type);
}

/** What the status is to say. Fields that are absent stay as they are. */
export interface Report {
  phase?: Phase;
  /** Undefined in here takes the choice back. */
  inventory?: { name: string; uid: string } | undefined;
  /** Set once the machine is provisioned. */
  provisioned?: { hostname: string };
  conditions: readonly ConditionIntent[];
}

/** The conditions after the report; a time changes only with the status, as Kubernetes has it. */
export function mergeConditions(before: readonly Condition[], intents: readonly ConditionIntent[], now: number): Condition[] {
  const merged = [...before];
  for (const intent of intents) {
    const at = merged.findIndex(({ type }) => type === intent.type);
    const old = merged[at];
    const lastTransitionTime = old?.status === intent.status ? old.lastTransitionTime : new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
    const next: Condition = { ...intent, lastTransitionTime };
    if (old === undefined) merged.push(next);
    else merged[at] = next;
  }
  return merged;
}

function equalConditions(a: readonly Condition[], b: readonly Condition[]): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** The merge patch of the status subresource, or undefined where the status says all that already. */
export function statusPatch(machine: BaremetalMachine, report: Report, now: number): object | undefined {
  const status: Record<string, unknown> = {};
  if (report.phase !== undefined && report.phase !== machine.phase) status["phase"] = report.phase;
  if ("inventory" in report && JSON.stringify(report.inventory) !== JSON.stringify(machine.inventory)) status["machineInventoryRef"] = report.inventory ?? null;
  const conditions = mergeConditions(machine.conditions, report.conditions, now);
  if (!equalConditions(conditions, machine.conditions)) status["conditions"] = conditions;
  if (Object.keys(status).length === 0) return undefined;
  if (report.provisioned !== undefined) {
    // Both contracts: `ready` is v1beta1's, `initialization.provisioned` v1beta2's.
    Object.assign(status, { ready: true, initialization: { provisioned: true }, addresses: [{ type: "Hostname", address: report.provisioned.hostname }] });
  }
  return { metadata: { resourceVersion: machine.resourceVersion }, status };
}
