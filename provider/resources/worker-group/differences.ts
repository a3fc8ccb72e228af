/** What of a group changes, and whether its machines are replaced by it. */
import { z } from "zod";

import { changedKeys, diffOf } from "../changes.ts";
import type { Json } from "../inputs.ts";
import { containsUnknown, knownField, same } from "../inputs.ts";
import type { DiffResult } from "../lifecycle.ts";
import { UNKNOWN } from "../lifecycle.ts";
import type { GroupInputs, GroupState } from "./inputs.ts";
import { groupArgs, groupInputs, poolReference } from "./inputs.ts";
import { DEFAULT_ROLLOUT, poolNameOf, templateNames } from "./manifests.ts";
import type { DeclaredPool } from "./observe.ts";
import type { WantedGroup } from "./plan.ts";

export const IDENTITY = ["clusterName", "namespace", "machineDeployment"] as const;
/** Compared as they are; infrastructure, bootstrap and rollout by what comes of them. */
const COMPARED = [...IDENTITY, "version", "replicas", "nodeDrainTimeout", "nodeVolumeDetachTimeout", "labels", "waitTimeout", "owner"] as const;
const IN_PLACE = ["nodeDrainTimeout", "nodeVolumeDetachTimeout", "labels", "rollout", "waitTimeout"] as const;

type Infrastructure = GroupInputs["infrastructure"];

/** A group's infrastructure without the pool's list, which changes with the pool and not with the group. */
function placeOf(infrastructure: Infrastructure): unknown {
  return { pool: poolNameOf(infrastructure), templateRef: infrastructure.templateRef };
}

/** The same of inputs that may not be known in full; undefined where it cannot be told. */
function placeIn(news: Json): unknown {
  const pool = declaredPool(news);
  if (pool !== undefined) return { pool: pool.name };
  const infrastructure = knownField(groupArgs.shape.infrastructure, news["infrastructure"]);
  return infrastructure === undefined ? undefined : placeOf(infrastructure);
}

const poolModel = z.object({
  machineInventory: z.object({ pool: z.union([z.string(), z.object({ poolName: z.string(), machineInventories: z.unknown() })]) }),
});

/** The pool that hosts come from. Undefined for another infrastructure, and while its name is not known. */
export function declaredPool(news: Json): DeclaredPool | undefined {
  const parsed = poolModel.safeParse(news["infrastructure"]);
  if (!parsed.success) return undefined;
  const { pool } = parsed.data.machineInventory;
  const name = typeof pool === "string" ? pool : pool.poolName;
  if (name === UNKNOWN) return undefined;
  if (typeof pool === "string") return { name, members: "of the cluster" };
  return { name, members: knownField(poolReference.shape.machineInventories, pool.machineInventories) ?? "not known yet" };
}

export function groupChanges(state: GroupState, news: Json): string[] {
  const changed = changedKeys({ ...state }, news, COMPARED);
  if (!same(placeIn(news), placeOf(state.infrastructure))) changed.push("infrastructure");
  if (containsUnknown(news["bootstrap"]) || !same(news["bootstrap"], state.bootstrap)) changed.push("bootstrap");
  if (containsUnknown(news["rollout"]) || !same(news["rollout"] ?? DEFAULT_ROLLOUT, state.rollout ?? DEFAULT_ROLLOUT)) changed.push("rollout");
  const complete = knownField(groupInputs, news);
  if (complete !== undefined) {
    const names = templateNames(complete);
    if (names.infrastructure !== state.infrastructureTemplate && !changed.includes("infrastructure")) changed.push("infrastructureTemplate");
    if (names.bootstrap !== state.bootstrapTemplate && !changed.includes("bootstrap")) changed.push("bootstrapTemplate");
  }
  return changed;
}

export function groupDiff(changed: readonly string[], news: Json): DiffResult {
  return diffOf(changed, news, IDENTITY);
}

function rolloutCauses(state: GroupState, news: Json, changed: readonly string[]): string[] {
  const causes: string[] = [];
  const version = knownField(groupArgs.shape.version, news["version"]);
  if (changed.includes("version")) causes.push(version === undefined ? "the version is not known yet" : `the version goes from ${state.version} to ${version}`);
  if (changed.includes("infrastructure")) {
    const before = poolNameOf(state.infrastructure);
    const pool = declaredPool(news);
    if (placeIn(news) === undefined) causes.push("the infrastructure is not known yet");
    else causes.push(before !== undefined && pool !== undefined ? `hosts come from pool ${pool.name} in place of ${before}` : "the infrastructure changes");
  }
  if (changed.includes("bootstrap")) causes.push("the bootstrap configuration changes");
  const drifted = changed.includes("infrastructureTemplate") || (changed.includes("bootstrapTemplate") && !changed.includes("version"));
  if (drifted) causes.push("the MachineDeployment uses other templates than it should");
  return causes;
}

export function wantedGroup(state: GroupState | undefined, news: Json, changed: readonly string[]): WantedGroup {
  const rollout = knownField(groupArgs.shape.rollout, news["rollout"]) ?? DEFAULT_ROLLOUT;
  const pool = declaredPool(news);
  return {
    replicas: knownField(groupArgs.shape.replicas, news["replicas"]),
    removeMachines: knownField(groupArgs.shape.removeMachines, news["removeMachines"]) ?? [],
    maxSurge: rollout.maxSurge,
    maxUnavailable: rollout.maxUnavailable,
    otherPool: state !== undefined && pool !== undefined && poolNameOf(state.infrastructure) !== pool.name,
    rolloutCauses: state === undefined ? [] : rolloutCauses(state, news, changed),
    inPlace: state === undefined ? [] : IN_PLACE.filter((key) => changed.includes(key)),
  };
}
