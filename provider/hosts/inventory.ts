/** A MachineInventory as the project sees it: who owns it, what state it is in, and where its plan lies. */
import { z } from "zod";

import type { LiveObject, ObjectKey } from "../cluster/objects.ts";
import {
  type AllocationState,
  allocationAnnotations,
  CONFIRMED_OFF_ANNOTATION,
  POWER_HOLD_ANNOTATION,
  RELEASE_ANNOTATION,
  UNHEALTHY_ANNOTATION,
} from "./names.ts";

export interface InventoryOwner {
  kind: string;
  namespace: string;
  name: string;
  uid: string;
}

/** Why a host must not be chosen, as `UNHEALTHY_ANNOTATION` holds it. */
export interface UnhealthyMark {
  reason: string;
  /** ISO 8601, UTC. */
  at: string;
  by: string;
}

export interface Inventory {
  name: string;
  namespace: string;
  uid: string;
  resourceVersion: string;
  deleting: boolean;
  annotations: Readonly<Record<string, string>>;
  /** `Available` where nothing has been written yet. */
  state: AllocationState;
  owner: InventoryOwner | undefined;
  /** The pool that it was last allocated from. */
  pool: string | undefined;
  unhealthy: UnhealthyMark | undefined;
  /** Whether something holds the host off. */
  held: boolean;
  /** The uid of the Machine for which a person confirmed that the host is off. */
  confirmedOff: string | undefined;
  /** The uid that a person wrote to have the host cleaned and offered again. */
  release: string | undefined;
  ready: boolean;
  /** What the Ready condition says where it is not True. */
  notReadyReason: string | undefined;
  storage: "none" | "prepared" | "notPrepared";
  planSecret: ObjectKey;
}

const condition = z.object({ type: z.string(), status: z.string(), reason: z.string().optional(), message: z.string().optional() });

// Elemental owns the kind: what is not as expected counts as absent, so that one odd object hides no other.
const schema = z.object({
  metadata: z.object({
    name: z.string(),
    namespace: z.string(),
    uid: z.string(),
    resourceVersion: z.string(),
    annotations: z.record(z.string(), z.string()).optional(),
    deletionTimestamp: z.string().optional(),
  }),
  spec: z
    .object({ storage: z.object({ volumes: z.array(z.unknown()) }).optional() })
    .optional()
    .catch(undefined),
  status: z
    .object({
      conditions: z.array(condition).optional().catch(undefined),
      plan: z
        .object({ secretRef: z.object({ name: z.string(), namespace: z.string().optional() }) })
        .optional()
        .catch(undefined),
      storage: z.object({ phase: z.string() }).optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
});

const mark = z.object({ reason: z.string(), at: z.string(), by: z.string() });

function markOf(text: string | undefined): UnhealthyMark | undefined {
  if (text === undefined) return undefined;
  try {
    return mark.parse(JSON.parse(text));
  } catch {
    // A mark that a person wrote in words is a mark all the same.
    return { reason: text === "" ? "no reason given" : text, at: "", by: "" };
  }
}

function stateOf(text: string | undefined): AllocationState {
  return text === "Allocated" || text === "Preparing" || text === "Quarantined" ? text : "Available";
}

/** Throws a ZodError only for an object without name, namespace, uid or resourceVersion, which no API server returns. */
export function parseInventory(object: LiveObject): Inventory {
  const { metadata, spec, status } = schema.parse(object);
  const annotations = metadata.annotations ?? {};
  const ready = (status?.conditions ?? []).find(({ type }) => type === "Ready");
  const ownerUid = annotations[allocationAnnotations.ownerUid];
  const volumes = spec?.storage?.volumes ?? [];
  return {
    name: metadata.name,
    namespace: metadata.namespace,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    deleting: metadata.deletionTimestamp !== undefined,
    annotations,
    state: stateOf(annotations[allocationAnnotations.state]),
    owner:
      ownerUid === undefined
        ? undefined
        : {
            kind: annotations[allocationAnnotations.ownerKind] ?? "",
            namespace: annotations[allocationAnnotations.ownerNamespace] ?? metadata.namespace,
            name: annotations[allocationAnnotations.ownerName] ?? "",
            uid: ownerUid,
          },
    pool: annotations[allocationAnnotations.pool],
    unhealthy: markOf(annotations[UNHEALTHY_ANNOTATION]),
    held: annotations[POWER_HOLD_ANNOTATION] !== undefined,
    confirmedOff: annotations[CONFIRMED_OFF_ANNOTATION],
    release: annotations[RELEASE_ANNOTATION],
    ready: ready?.status === "True",
    notReadyReason:
      ready === undefined
        ? "it has no Ready condition yet"
        : ready.status === "True"
          ? undefined
          : (ready.message ?? ready.reason ?? `Ready is ${ready.status}`),
    storage: volumes.length === 0 ? "none" : status?.storage?.phase === "Prepared" ? "prepared" : "notPrepared",
    planSecret: { namespace: status?.plan?.secretRef.namespace ?? metadata.namespace, name: status?.plan?.secretRef.name ?? metadata.name },
  };
}
