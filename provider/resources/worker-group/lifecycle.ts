/** The verbs of a WorkerGroup. */
import type { CapiVersion } from "../../capi/kinds.ts";
import { inVersion, machineDeployments } from "../../capi/kinds.ts";
import type { MachineDeploymentView } from "../../capi/machine-deployment.ts";
import { readMachineDeployment } from "../../capi/machine-deployment.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { ObjectKey } from "../../cluster/objects.ts";
import { durationText } from "../durations.ts";
import { explain } from "../failures.ts";
import type { Json } from "../inputs.ts";
import { same, secondsOf } from "../inputs.ts";
import type { Lifecycle, VerbContext } from "../lifecycle.ts";
import { PartialFailure } from "../lifecycle.ts";
import { deleteIfThere, findObject } from "../lookup.ts";
import { foreign, takenOver } from "../ownership.ts";
import { waitUntil } from "../wait.ts";
import { checkGroup, lookAndPlan, reportPlan, requiredVersion } from "./check.ts";
import { groupChanges, groupDiff } from "./differences.ts";
import type { GroupInputs, GroupState } from "./inputs.ts";
import { groupInputs, groupState } from "./inputs.ts";
import { DEFAULT_ROLLOUT, renderGroup, templateNames } from "./manifests.ts";
import type { GroupView } from "./observe.ts";
import { observeGroup } from "./observe.ts";
import { missingController, removalProgress, removalStall, rolloutProgress } from "./progress.ts";
import type { GroupVersions } from "./write.ts";
import { applyDeployment, createTemplate, groupVersions, removeTemplates, withMarked } from "./write.ts";

/** Cluster API removes an emptied MachineSet a moment after the last machine is ready. */
const TIDY_SECONDS = 10;

function idOf({ namespace, machineDeployment }: Pick<GroupInputs, "namespace" | "machineDeployment">): string {
  return `${namespace}/${machineDeployment}`;
}

function keyOfGroup({ namespace, machineDeployment }: Pick<GroupInputs, "namespace" | "machineDeployment">): ObjectKey {
  return { namespace, name: machineDeployment };
}

function stateOf(inputs: GroupInputs): GroupState {
  const names = templateNames(inputs);
  return { ...inputs, infrastructureTemplate: names.infrastructure, bootstrapTemplate: names.bootstrap };
}

async function refuseForeign(cluster: Cluster, version: CapiVersion, inputs: GroupInputs, owners: readonly string[]): Promise<void> {
  const live = await findObject(cluster, inVersion(machineDeployments, version), keyOfGroup(inputs));
  if (live === undefined) return;
  if (live.metadata.deletionTimestamp !== undefined) throw new Error(`MachineDeployment ${idOf(inputs)} is still being deleted; run again once it is gone`);
  const refusal = owners.some((owner) => foreign(live, owner, false) === undefined) ? undefined : foreign(live, inputs.owner, inputs.adopt);
  if (refusal !== undefined) throw new Error(refusal);
}

/** Waits until all machines are as wanted; throws with what is missing, machine by machine. */
async function awaitRollout(context: VerbContext, cluster: Cluster, version: CapiVersion, state: GroupState): Promise<void> {
  let view: GroupView | undefined;
  const stalled = (): string | undefined => (view === undefined ? undefined : missingController(view));
  const waited = await waitUntil(
    context,
    secondsOf(state.waitTimeout),
    async () => {
      view = await observeGroup(cluster, version, state.namespace, state.machineDeployment);
      return rolloutProgress(view, state);
    },
    stalled,
  );
  if (waited.done) return;
  const who = stalled();
  throw new Error(
    `not finished after ${state.waitTimeout}: ${waited.line}${who === undefined ? "" : `. ${who}`}. The next run goes on from here; a larger waitTimeout waits longer`,
  );
}

/** Removes templates of earlier contents. What a MachineSet still needs stays for the next run. */
async function tidy(context: VerbContext, cluster: Cluster, versions: GroupVersions, state: GroupState): Promise<void> {
  const { namespace, machineDeployment } = state;
  await waitUntil(context, TIDY_SECONDS, async () => {
    const view = await observeGroup(cluster, versions.core, namespace, machineDeployment);
    const stayed = await removeTemplates(cluster, versions, namespace, machineDeployment, [state.infrastructureTemplate, state.bootstrapTemplate], view);
    return { done: stayed.length === 0, line: "removing old templates", progress: stayed.join(" ") };
  });
}

/** Everything after the first object exists: a failure keeps the state, and the next run goes on from it. */
async function keeping<T>(cluster: Cluster, state: GroupState, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw new PartialFailure<Json>(idOf(state), state, [explain(error, cluster.server)]);
  }
}

function withLive(state: GroupState, live: MachineDeploymentView): GroupState {
  const rollout = { maxSurge: live.maxSurge ?? DEFAULT_ROLLOUT.maxSurge, maxUnavailable: live.maxUnavailable ?? DEFAULT_ROLLOUT.maxUnavailable };
  const given = state.rollout ?? DEFAULT_ROLLOUT;
  const sameRollout = rollout.maxSurge === given.maxSurge && rollout.maxUnavailable === given.maxUnavailable;
  return {
    ...state,
    replicas: live.replicas,
    version: live.version ?? state.version,
    nodeDrainTimeout: durationText(state.nodeDrainTimeout, live.nodeDrainSeconds),
    nodeVolumeDetachTimeout: durationText(state.nodeVolumeDetachTimeout, live.nodeVolumeDetachSeconds),
    ...(sameRollout ? {} : { rollout }),
    infrastructureTemplate: live.infrastructure.name,
    bootstrapTemplate: live.bootstrap?.name ?? "",
  };
}

/**
 * Whether the state shows what is there. Then a preview has told what others changed since, and an update may take it back; what nobody was
 * told of is not overwritten.
 */
async function isAsShown(cluster: Cluster, version: CapiVersion, state: GroupState): Promise<boolean> {
  const live = await findObject(cluster, inVersion(machineDeployments, version), keyOfGroup(state));
  return live !== undefined && same(withLive(state, readMachineDeployment(live)), state);
}

export const workerGroup: Lifecycle<Json, Json> = {
  check: checkGroup,

  async diff(context, _id, oldState, news) {
    const state = groupState.parse(oldState);
    const changed = groupChanges(state, news);
    const result = groupDiff(changed, news);
    if (result.changed && result.replaces.length === 0) {
      const cluster = await context.cluster();
      const version = await requiredVersion(cluster);
      reportPlan(context, await lookAndPlan(context, cluster, version, { state, inputs: news, namespace: state.namespace, name: state.machineDeployment }));
    }
    return result;
  },

  async create(context, raw) {
    const inputs = groupInputs.parse(raw);
    const cluster = await context.cluster();
    const versions = await groupVersions(cluster, await requiredVersion(cluster), inputs);
    await refuseForeign(cluster, versions.core, inputs, [inputs.owner]);
    const state = stateOf(inputs);
    const [first, ...rest] = renderGroup(inputs, versions.bootstrap).templates;
    if (first !== undefined) await createTemplate(context, cluster, first, inputs);
    return keeping(cluster, state, async () => {
      for (const template of rest) await createTemplate(context, cluster, template, inputs);
      await applyDeployment(context, cluster, versions, inputs, inputs.adopt === true);
      await awaitRollout(context, cluster, versions.core, state);
      await tidy(context, cluster, versions, state);
      return { id: idOf(state), state };
    });
  },

  async read(context, id, oldState) {
    const state = groupState.parse(oldState);
    const cluster = await context.cluster();
    const live = await findObject(cluster, inVersion(machineDeployments, await requiredVersion(cluster)), keyOfGroup(state));
    // What another program has taken over is gone for this one.
    if (live === undefined || takenOver(live, state.owner) !== undefined) return undefined;
    return { id, state: withLive(state, readMachineDeployment(live)) };
  },

  async update(context, _id, oldState, raw) {
    const old = groupState.parse(oldState);
    const inputs = groupInputs.parse(raw);
    const cluster = await context.cluster();
    const versions = await groupVersions(cluster, await requiredVersion(cluster), inputs);
    await refuseForeign(cluster, versions.core, inputs, [old.owner, inputs.owner]);
    const plan = await lookAndPlan(context, cluster, versions.core, { state: old, inputs: raw, namespace: inputs.namespace, name: inputs.machineDeployment });
    const removal = plan.refusals.find(({ property }) => property === "removeMachines");
    if (removal !== undefined) throw new Error(`removeMachines ${removal.reason}`);
    const state = stateOf(inputs);
    for (const template of renderGroup(inputs, versions.bootstrap).templates) await createTemplate(context, cluster, template, inputs);
    await withMarked(context, cluster, versions.core, inputs, plan, async () =>
      applyDeployment(context, cluster, versions, inputs, inputs.adopt === true || (await isAsShown(cluster, versions.core, old))),
    );
    return keeping(cluster, state, async () => {
      await awaitRollout(context, cluster, versions.core, state);
      await tidy(context, cluster, versions, state);
      return state;
    });
  },

  async delete(context, _id, oldState) {
    const state = groupState.parse(oldState);
    const cluster = await context.cluster();
    const versions = await groupVersions(cluster, await requiredVersion(cluster), state);
    const { namespace, machineDeployment } = state;
    const kind = inVersion(machineDeployments, versions.core);
    const live = await findObject(cluster, kind, keyOfGroup(state));
    const taken = live === undefined ? undefined : takenOver(live, state.owner);
    if (taken !== undefined) {
      context.report.warn(`${taken}; it is left there`);
      return;
    }
    if (live !== undefined) await deleteIfThere(cluster, kind, keyOfGroup(state), live.metadata.uid, "Foreground");
    let view: GroupView | undefined;
    const stalled = (): string | undefined => (view === undefined ? undefined : removalStall(view));
    const waited = await waitUntil(
      context,
      secondsOf(state.waitTimeout),
      async () => {
        view = await observeGroup(cluster, versions.core, namespace, machineDeployment);
        return removalProgress(view);
      },
      stalled,
    );
    if (!waited.done) throw new Error(`not gone after ${state.waitTimeout}: ${waited.line}. ${stalled() ?? ""}`);
    if (view !== undefined) await removeTemplates(cluster, versions, namespace, machineDeployment, [], view);
  },
};
