/** The writes of a group, in the order that keeps every MachineSet's templates in place. */
import { z } from "zod";

import { capiAnnotations, capiLabels, inVersion, kubeadmConfigTemplates, machineDeployments, machines } from "../../capi/kinds.ts";
import type { CapiVersion } from "../../capi/kinds.ts";
import { readMachineDeployment, renderMachineDeployment } from "../../capi/machine-deployment.ts";
import { servedVersion } from "../../capi/versions.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import type { LiveObject } from "../../cluster/objects.ts";
import { baremetalMachineTemplates } from "../../hosts/kinds.ts";
import { FIELD_MANAGER, MANAGED_BY, MANAGED_BY_LABEL } from "../../hosts/names.ts";
import { MissingKindError, onKind } from "../failures.ts";
import type { VerbContext } from "../lifecycle.ts";
import { deleteIfThere, findObject, listServed } from "../lookup.ts";
import { foreign } from "../ownership.ts";
import { insistently } from "../wait.ts";
import type { GroupInputs, TemplateReference } from "./inputs.ts";
import type { Template } from "./manifests.ts";
import { deploymentModel, referencesOf } from "./manifests.ts";
import type { GroupMachine, GroupView } from "./observe.ts";
import type { GroupPlan } from "./plan.ts";

/** In which versions the kinds of a group are written. */
export interface GroupVersions {
  core: CapiVersion;
  bootstrap: CapiVersion;
}

export async function groupVersions(cluster: Cluster, core: CapiVersion, inputs: Pick<GroupInputs, "bootstrap">): Promise<GroupVersions> {
  const bootstrap = await servedVersion(cluster, kubeadmConfigTemplates);
  if (bootstrap === undefined && inputs.bootstrap.kubeadm !== undefined) throw new MissingKindError(kubeadmConfigTemplates);
  return { core, bootstrap: bootstrap ?? core };
}

/** Versions of templates that somebody else keeps, as v1beta1 references must name them. */
async function foreignVersions(cluster: Cluster, references: readonly (TemplateReference | undefined)[]): Promise<(reference: TemplateReference) => string> {
  const versions = new Map<string, string>();
  for (const reference of references) {
    if (reference === undefined) continue;
    const served = (await cluster.discover(reference.apiGroup)).find(({ kind }) => kind === reference.kind);
    if (served === undefined)
      throw new Error(
        `the management cluster does not know the kind ${reference.kind} of ${reference.apiGroup}, which templateRef names; install the provider that brings it, or correct its spelling`,
      );
    versions.set(`${reference.apiGroup}/${reference.kind}`, served.version);
  }
  return ({ apiGroup, kind }) => versions.get(`${apiGroup}/${kind}`) ?? "";
}

/** Makes a template unless it is there: its name says its content, so one that is there is right. */
export async function createTemplate(context: VerbContext, cluster: Cluster, { kind, object }: Template, { owner, adopt }: GroupInputs): Promise<void> {
  await insistently(context, async () => {
    try {
      await onKind(kind, cluster.create(kind, object, { fieldManager: FIELD_MANAGER }));
    } catch (error) {
      if (!isClusterError(error, "alreadyExists")) throw error;
      const { namespace = "", name } = object.metadata;
      const live = await cluster.get(kind, { namespace, name });
      if (live.metadata.deletionTimestamp !== undefined)
        throw new Error(`${kind.kind} ${namespace}/${name} is being deleted; run again once it is gone`, { cause: error });
      const refusal = foreign(live, owner, adopt);
      if (refusal !== undefined) throw new Error(refusal, { cause: error });
    }
  });
}

export async function applyDeployment(context: VerbContext, cluster: Cluster, versions: GroupVersions, inputs: GroupInputs, force: boolean): Promise<void> {
  const versionOf = await foreignVersions(cluster, [inputs.infrastructure.templateRef, inputs.bootstrap.templateRef]);
  const kind = inVersion(machineDeployments, versions.core);
  const object = renderMachineDeployment(deploymentModel(inputs, referencesOf(inputs, versions.bootstrap, versionOf)), versions.core);
  await insistently(context, () => cluster.apply(kind, object, { fieldManager: FIELD_MANAGER, force }));
}

/** Whether replicas are surely not lowered: after a lost answer they may be, and then the marks decide which machine goes. */
async function isUnlowered(cluster: Cluster, core: CapiVersion, { namespace, machineDeployment, replicas }: GroupInputs): Promise<boolean> {
  try {
    const live = await findObject(cluster, inVersion(machineDeployments, core), { namespace, name: machineDeployment });
    return live !== undefined && readMachineDeployment(live).replicas > replicas;
  } catch {
    return false;
  }
}

/** Takes marks off again, as far as that goes: what led to it is the error to tell. */
async function unmark(cluster: Cluster, core: CapiVersion, namespace: string, marked: readonly GroupMachine[]): Promise<void> {
  for (const { name, uid } of marked) {
    const body = { metadata: { uid, annotations: { [capiAnnotations.deleteMachine]: null } } };
    await cluster.patch(inVersion(machines, core), { namespace, name }, "merge", body, { fieldManager: FIELD_MANAGER }).catch(() => undefined);
  }
}

const annotator = z.object({ fieldsV1: z.object({ "f:metadata": z.object({ "f:annotations": z.record(z.string(), z.unknown()) }) }) });

/** Whether the machine is marked, and by this provider: others may mark machines too. */
function hasOurMark({ metadata }: LiveObject): boolean {
  if (metadata.annotations?.[capiAnnotations.deleteMachine] === undefined) return false;
  return (metadata.managedFields ?? []).some((entry) => {
    const { data } = annotator.safeParse(entry);
    return entry.manager === FIELD_MANAGER && data !== undefined && `f:${capiAnnotations.deleteMachine}` in data.fieldsV1["f:metadata"]["f:annotations"];
  });
}

/**
 * Machines that bear our mark from a run that failed, and are not to go now. While there are more machines than replicas an earlier removal is
 * still to be done, and its marks count.
 */
function staleMarks(present: readonly LiveObject[], replicas: number, removes: readonly GroupMachine[]): LiveObject[] {
  const staying = present.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  if (staying.length > replicas) return [];
  return staying.filter((live) => hasOurMark(live) && !removes.some(({ uid }) => uid === live.metadata.uid));
}

/**
 * Does the work that lowers replicas, with the machines marked that are to go. All are marked before, or none of it counts. Where it fails, the
 * marks that were set here are taken off, or a later removal of others would take these machines.
 */
export async function withMarked(
  context: VerbContext,
  cluster: Cluster,
  core: CapiVersion,
  inputs: GroupInputs,
  { before, removes }: Pick<GroupPlan, "before" | "removes">,
  lower: () => Promise<void>,
): Promise<void> {
  const { namespace } = inputs;
  const kind = inVersion(machines, core);
  const labelSelector = `${capiLabels.deploymentName}=${inputs.machineDeployment}`;
  const present = (await insistently(context, () => cluster.list(kind, { namespace, labelSelector }))).items;
  for (const { metadata } of staleMarks(present, before, removes)) {
    const body = { metadata: { uid: metadata.uid, annotations: { [capiAnnotations.deleteMachine]: null } } };
    await insistently(context, () => cluster.patch(kind, { namespace, name: metadata.name }, "merge", body, { fieldManager: FIELD_MANAGER }));
  }
  const marked: GroupMachine[] = [];
  try {
    for (const machine of removes) {
      const { name, uid } = machine;
      const live = present.find(({ metadata }) => metadata.uid === uid);
      if (live?.metadata.annotations?.[capiAnnotations.deleteMachine] !== undefined) continue;
      // Before the request: its answer may be lost.
      marked.push(machine);
      const body = { metadata: { uid, annotations: { [capiAnnotations.deleteMachine]: "true" } } };
      await insistently(context, () => cluster.patch(kind, { namespace, name }, "merge", body, { fieldManager: FIELD_MANAGER }));
    }
    await lower();
  } catch (error) {
    if (marked.length > 0 && (await isUnlowered(cluster, core, inputs))) await unmark(cluster, core, namespace, marked);
    throw error;
  }
}

/** Removes the group's templates save those that are kept or that a MachineSet still refers to. Returns what still had to stay. */
export async function removeTemplates(
  cluster: Cluster,
  versions: GroupVersions,
  namespace: string,
  deployment: string,
  keep: readonly string[],
  view: GroupView,
): Promise<string[]> {
  const stayed: string[] = [];
  const labelSelector = `${MANAGED_BY_LABEL}=${MANAGED_BY},${capiLabels.deploymentName}=${deployment}`;
  const kinds = [
    { kind: baremetalMachineTemplates, used: view.sets.map(({ infrastructure }) => infrastructure) },
    { kind: inVersion(kubeadmConfigTemplates, versions.bootstrap), used: view.sets.flatMap(({ bootstrap }) => (bootstrap === undefined ? [] : [bootstrap])) },
  ];
  for (const { kind, used } of kinds) {
    for (const { metadata } of (await listServed(cluster, kind, namespace, labelSelector)) ?? []) {
      if (keep.includes(metadata.name)) continue;
      if (used.some((reference) => reference.kind === kind.kind && reference.name === metadata.name)) {
        stayed.push(metadata.name);
        continue;
      }
      await deleteIfThere(cluster, kind, { namespace, name: metadata.name }, metadata.uid);
    }
  }
  return stayed;
}
