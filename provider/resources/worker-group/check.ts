/** `check` of a WorkerGroup: what can be said about a program before anything is done. */
import { z } from "zod";

import type { CapiVersion } from "../../capi/kinds.ts";
import { clusters, inVersion, kubeadmConfigTemplates, machineDeployments } from "../../capi/kinds.ts";
import { capiVersion, servedVersion } from "../../capi/versions.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { baremetalMachineTemplates } from "../../hosts/kinds.ts";
import { POOL_NAME_LABEL } from "../../hosts/names.ts";
import { derivedName, jsonOf, withDefaults } from "../changes.ts";
import { lookingAt } from "../checking.ts";
import { MissingKindError, missingKind, serves } from "../failures.ts";
import type { Json } from "../inputs.ts";
import { hiddenInputs, isDnsLabel, knownField, parseInputs } from "../inputs.ts";
import { findObject } from "../lookup.ts";
import type { CheckFailure, CheckResult, VerbContext } from "../lifecycle.ts";
import { UNKNOWN } from "../lifecycle.ts";
import { refusedFields } from "./bootstrap.ts";
import { declaredPool, groupChanges, IDENTITY, wantedGroup } from "./differences.ts";
import type { GroupState } from "./inputs.ts";
import { groupArgs, groupInputs } from "./inputs.ts";
import { templateNames } from "./manifests.ts";
import { observeGroup, observePool } from "./observe.ts";
import type { PoolView } from "./observe.ts";
import type { GroupPlan } from "./plan.ts";
import { groupLines, planGroup } from "./plan.ts";

const METAL3 = "is not supported by this version; keep a Metal3MachineTemplate yourself and name it in infrastructure.templateRef";
const checkedArgs = groupArgs.extend(hiddenInputs);

/** Complaints that need nothing but the declaration. */
function contradictions(raw: Json, namespace: unknown): CheckFailure[] {
  const failures: CheckFailure[] = [];
  const kubeadm = knownField(groupArgs.shape.bootstrap, raw["bootstrap"])?.kubeadm;
  if (kubeadm !== undefined) failures.push(...refusedFields(kubeadm, knownField(groupArgs.shape.version, raw["version"])));
  for (const label of Object.keys(knownField(groupArgs.shape.labels, raw["labels"]) ?? {})) {
    if (label !== POOL_NAME_LABEL && !label.startsWith("cluster.x-k8s.io/")) continue;
    failures.push({ property: "labels", reason: `${label} is set by this resource and by Cluster API; remove it` });
  }
  const pool = knownField(groupArgs.shape.infrastructure, raw["infrastructure"])?.machineInventory?.pool;
  if (typeof pool === "object" && namespace !== UNKNOWN && pool.namespace !== namespace) {
    failures.push({
      property: "infrastructure.machineInventory.pool",
      reason: `pool ${pool.poolName} is in namespace ${pool.namespace}, the group in ${String(namespace)}; both must be in the same one, set \`namespace\``,
    });
  }
  return failures;
}

/** What the last run left, where it was complete. */
function stateOf(olds: Json): GroupState | undefined {
  const inputs = knownField(groupInputs, olds);
  if (inputs === undefined) return undefined;
  const names = templateNames(inputs);
  return { ...inputs, infrastructureTemplate: names.infrastructure, bootstrapTemplate: names.bootstrap };
}

/** The pool that a plan may count on. Failures where it must exist and does not. */
async function lookAtPool(
  context: VerbContext,
  cluster: Cluster,
  inputs: Json,
  namespace: string,
): Promise<{ pool: PoolView | undefined; failures: CheckFailure[] }> {
  const declared = declaredPool(inputs);
  if (declared === undefined) return { pool: undefined, failures: [] };
  const { pool, known } = await observePool(cluster, namespace, declared);
  if (pool === "not known yet") {
    context.report.info(`the hosts of pool ${declared.name} are not known yet, and so neither which of them are taken`);
    return { pool: undefined, failures: [] };
  }
  if (pool !== "missing") return { pool, failures: [] };
  const which = known.length === 0 ? "there is none" : `there are ${known.join(", ")}`;
  return {
    pool: undefined,
    failures: [
      { property: "infrastructure.machineInventory.pool", reason: `no MachineInventoryPool ${declared.name} exists in namespace ${namespace}; ${which}` },
    ],
  };
}

/** What is planned, from what is there now. */
export async function lookAndPlan(
  context: VerbContext,
  cluster: Cluster,
  version: CapiVersion,
  group: { state: GroupState | undefined; inputs: Json; namespace: string; name: string },
): Promise<GroupPlan> {
  const { state, inputs, namespace, name } = group;
  const view = await observeGroup(cluster, version, namespace, name);
  const { pool, failures } = await lookAtPool(context, cluster, inputs, namespace);
  const plan = planGroup(wantedGroup(state, inputs, state === undefined ? [] : groupChanges(state, inputs)), view, pool, state?.replicas ?? 0);
  return { ...plan, refusals: [...failures, ...plan.refusals] };
}

export function reportPlan(context: VerbContext, plan: GroupPlan): void {
  groupLines(plan).forEach((line) => context.report.info(line));
  plan.warnings.forEach((line) => context.report.warn(line));
}

/** The Cluster API version that a group is written in; throws where a kind is missing that Cluster API brings. */
export async function requiredVersion(cluster: Cluster): Promise<CapiVersion> {
  const version = await capiVersion(cluster);
  if (version === undefined) throw new MissingKindError(machineDeployments);
  return version;
}

async function lookAtKinds(context: VerbContext, cluster: Cluster, inputs: Json): Promise<CapiVersion> {
  const version = await requiredVersion(cluster);
  const kubeadm = knownField(groupArgs.shape.bootstrap, inputs["bootstrap"])?.kubeadm;
  if (kubeadm !== undefined && (await servedVersion(cluster, kubeadmConfigTemplates)) === undefined) throw new MissingKindError(kubeadmConfigTemplates);
  if (declaredPool(inputs) !== undefined && !(await serves(cluster, baremetalMachineTemplates))) context.report.warn(missingKind(baremetalMachineTemplates));
  return version;
}

async function reportNoCluster(context: VerbContext, cluster: Cluster, inputs: Json, namespace: string, version: CapiVersion): Promise<void> {
  const name = knownField(groupArgs.shape.clusterName, inputs["clusterName"]);
  if (name === undefined) return;
  if ((await findObject(cluster, inVersion(clusters, version), { namespace, name })) === undefined) {
    context.report.warn(`Cluster ${namespace}/${name} does not exist; machines wait until it does`);
  }
}

export async function checkGroup(context: VerbContext, olds: unknown, news: unknown): Promise<CheckResult<Json>> {
  const raw = jsonOf(news);
  if (z.object({ metal3: z.unknown() }).safeParse(raw["infrastructure"]).data?.metal3 !== undefined) {
    return { inputs: raw, failures: [{ property: "infrastructure.metal3", reason: METAL3 }] };
  }
  const parsed = parseInputs(checkedArgs, raw);
  const namespace = raw["namespace"] ?? context.defaultNamespace;
  const machineDeployment = derivedName(raw["name"], [raw["clusterName"], raw["resourceName"]]);
  const inputs: Json = { ...(parsed.inputs ?? withDefaults(groupArgs.shape, raw)), namespace, machineDeployment };
  const failures = [...parsed.failures, ...contradictions(raw, namespace)];
  if (machineDeployment !== UNKNOWN && raw["name"] === undefined && !isDnsLabel(machineDeployment)) {
    failures.push({
      property: "name",
      reason: `the name ${machineDeployment} that is made from clusterName and the logical name cannot be used; set \`name\` to at most 63 lower-case letters, digits and '-'`,
    });
  }
  if (failures.length > 0) return { inputs, failures };
  if (typeof namespace !== "string" || namespace === UNKNOWN || machineDeployment === UNKNOWN) {
    context.report.info("the name or the namespace of this group is not known yet, and so nothing can be said about its hosts");
    return { inputs, failures };
  }
  const before = jsonOf(olds);
  // What is replaced goes first, and its hosts with it: only the update of a group can be counted on its own machines.
  const replaced = olds !== undefined && IDENTITY.some((key) => before[key] !== inputs[key]);
  failures.push(
    ...(await lookingAt(context, async (cluster) => {
      const version = await lookAtKinds(context, cluster, inputs);
      if (replaced) return (await lookAtPool(context, cluster, inputs, namespace)).failures;
      const state = olds === undefined ? undefined : stateOf(before);
      const plan = await lookAndPlan(context, cluster, version, { state, inputs, namespace, name: machineDeployment });
      if (olds === undefined && plan.refusals.length === 0) {
        reportPlan(context, plan);
        await reportNoCluster(context, cluster, inputs, namespace, version);
      }
      return plan.refusals;
    })),
  );
  return { inputs, failures };
}
