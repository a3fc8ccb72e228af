/** The verbs of a RemediationPolicy. */
import { z } from "zod";

import { hostRemediationTemplates, inVersion, machineDeployments, machineHealthChecks, metal3RemediationTemplates } from "../../capi/kinds.ts";
import type { CapiVersion } from "../../capi/kinds.ts";
import type { MachineHealthCheckView } from "../../capi/machine-health-check.ts";
import { readMachineHealthCheck, renderMachineHealthCheck } from "../../capi/machine-health-check.ts";
import { capiVersion, servedVersion } from "../../capi/versions.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { customResourceDefinitions } from "../../cluster/kinds.ts";
import { FIELD_MANAGER, MANAGED_BY_LABEL } from "../../hosts/names.ts";
import { changedKeys, derivedName, diffOf, jsonOf, withDefaults } from "../changes.ts";
import { lookingAt } from "../checking.ts";
import { durationText, formatDuration } from "../durations.ts";
import { explain, MissingKindError, missingKind, onKind, serves } from "../failures.ts";
import type { Json } from "../inputs.ts";
import { hiddenInputs, isDnsLabel, knownField, parseInputs, same, secondsOf } from "../inputs.ts";
import type { CheckFailure, CheckResult, Lifecycle, VerbContext } from "../lifecycle.ts";
import { PartialFailure, UNKNOWN } from "../lifecycle.ts";
import { deleteIfThere, findObject } from "../lookup.ts";
import { foreign, takenOver } from "../ownership.ts";
import { insistently, waitUntil } from "../wait.ts";
import { observeGroup } from "../worker-group/observe.ts";
import type { PolicyInputs, PolicyState } from "./inputs.ts";
import { conditionStatus, policyArgs, policyInputs, policyState } from "./inputs.ts";
import type { Engine } from "./manifests.ts";
import { engineOf, healthCheckModel, policyLabels, renderTemplate, templateName } from "./manifests.ts";
import { comparable, policyLines, policyWarnings } from "./plan.ts";

const IDENTITY = ["clusterName", "namespace", "machineHealthCheck"] as const;
const WRITTEN = [
  ...IDENTITY,
  "workerGroup",
  "maxUnhealthy",
  "unhealthyNodeConditions",
  "nodeStartupTimeout",
  "strategy",
  "engine",
  "waitTimeout",
  "owner",
] as const;
const checkedArgs = policyArgs.extend(hiddenInputs);
const CAPM3_CRD = "metal3machines.infrastructure.cluster.x-k8s.io";
const PROVIDER_LABEL = "cluster.x-k8s.io/provider";
const INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io";

function idOf({ namespace, machineHealthCheck }: Pick<PolicyInputs, "namespace" | "machineHealthCheck">): string {
  return `${namespace}/${machineHealthCheck}`;
}

/** Whether CAPM3's manager runs here. Its CRD says so by a label; who may not read CRDs has to go by what is served. */
async function capm3Installed(cluster: Cluster): Promise<boolean> {
  try {
    const crd = await findObject(cluster, customResourceDefinitions, { name: CAPM3_CRD });
    return crd?.metadata.labels?.[PROVIDER_LABEL] === "infrastructure-metal3";
  } catch (error) {
    if (!isClusterError(error, "forbidden")) throw error;
    return (await cluster.discover(INFRASTRUCTURE)).some(({ plural }) => plural === "metal3machines");
  }
}

async function findEngine(cluster: Cluster, engine: PolicyInputs["engine"]): Promise<Engine> {
  const installed = await capm3Installed(cluster);
  if (engine === "capm3" && !installed)
    throw new Error('engine "capm3" needs cluster-api-provider-metal3, which is not installed in the management cluster; install it, or leave engine out');
  return engineOf(engine, installed, (await servedVersion(cluster, metal3RemediationTemplates)) ?? "v1beta2");
}

async function requiredVersion(cluster: Cluster): Promise<CapiVersion> {
  const version = await capiVersion(cluster);
  if (version === undefined) throw new MissingKindError(machineHealthChecks);
  return version;
}

async function look(context: VerbContext, cluster: Cluster, inputs: PolicyInputs, creating: boolean): Promise<CheckFailure[]> {
  const version = await requiredVersion(cluster);
  const installed = await capm3Installed(cluster);
  if (inputs.engine === "capm3" && !installed) {
    return [
      {
        property: "engine",
        reason: '"capm3" needs cluster-api-provider-metal3, which is not installed in the management cluster; install it, or leave engine out',
      },
    ];
  }
  const { kind } = engineOf(inputs.engine, installed, "v1beta2");
  if (!(await serves(cluster, kind)) && inputs.engine === "bundled") context.report.warn(missingKind(kind));
  const { machineDeployment, replicas } = inputs.workerGroup;
  const view = await observeGroup(cluster, version, inputs.namespace, machineDeployment);
  const joining = view.machines.filter(({ deleting, nodeName }) => !deleting && nodeName === undefined).length;
  policyWarnings(inputs, replicas ?? view.deployment?.replicas, joining).forEach((line) => context.report.warn(line));
  if (creating) policyLines(inputs, kind.kind.replace(/Template$/, "")).forEach((line) => context.report.info(line));
  return [];
}

async function check(context: VerbContext, olds: unknown, news: unknown): Promise<CheckResult<Json>> {
  const raw = jsonOf(news);
  const parsed = parseInputs(checkedArgs, raw);
  const group = z.object({ clusterName: z.string(), namespace: z.string() }).safeParse(raw["workerGroup"]);
  const { clusterName, namespace } = group.success ? group.data : { clusterName: UNKNOWN, namespace: UNKNOWN };
  const machineHealthCheck = derivedName(raw["name"], [clusterName, raw["resourceName"]]);
  const inputs: Json = { ...(parsed.inputs ?? withDefaults(policyArgs.shape, raw)), clusterName, namespace, machineHealthCheck };
  const failures = [...parsed.failures];
  if (machineHealthCheck !== UNKNOWN && raw["name"] === undefined && !isDnsLabel(machineHealthCheck)) {
    failures.push({
      property: "name",
      reason: `the name ${machineHealthCheck} that is made from clusterName and the logical name cannot be used; set \`name\` to at most 63 lower-case letters, digits and '-'`,
    });
  }
  const complete = knownField(policyInputs, inputs);
  if (failures.length > 0 || complete === undefined) return { inputs, failures };
  failures.push(...(await lookingAt(context, (cluster) => look(context, cluster, complete, olds === undefined))));
  return { inputs, failures };
}

async function refuseForeign(cluster: Cluster, version: CapiVersion, inputs: PolicyInputs, owners: readonly string[]): Promise<void> {
  const kind = inVersion(machineHealthChecks, version);
  const live = await findObject(cluster, kind, { namespace: inputs.namespace, name: inputs.machineHealthCheck });
  if (live === undefined) return;
  const refusal = owners.some((owner) => foreign(live, owner, false) === undefined) ? undefined : foreign(live, inputs.owner, inputs.adopt);
  if (refusal !== undefined) throw new Error(refusal);
}

/** A MachineHealthCheck for a MachineDeployment that does not exist would watch nothing and never say so. */
async function requireGroup(cluster: Cluster, version: CapiVersion, inputs: PolicyInputs): Promise<void> {
  const { machineDeployment, namespace } = inputs.workerGroup;
  const kind = inVersion(machineDeployments, version);
  const live = await findObject(cluster, kind, { namespace, name: machineDeployment });
  if (live === undefined)
    throw new Error(
      `workerGroup: no MachineDeployment ${namespace}/${machineDeployment} exists; correct its name, or let the policy depend on the WorkerGroup`,
    );
}

async function createTemplate(context: VerbContext, cluster: Cluster, inputs: PolicyInputs, engine: Engine): Promise<void> {
  const template = renderTemplate(inputs, engine);
  await insistently(context, async () => {
    try {
      await onKind(engine.kind, cluster.create(engine.kind, template, { fieldManager: FIELD_MANAGER }));
    } catch (error) {
      if (!isClusterError(error, "alreadyExists")) throw error;
      const live = await cluster.get(engine.kind, { namespace: inputs.namespace, name: template.metadata.name });
      const refusal = foreign(live, inputs.owner, inputs.adopt);
      if (refusal !== undefined) throw new Error(refusal, { cause: error });
    }
  });
}

async function applyHealthCheck(
  context: VerbContext,
  cluster: Cluster,
  version: CapiVersion,
  inputs: PolicyInputs,
  engine: Engine,
  force: boolean,
): Promise<void> {
  const kind = inVersion(machineHealthChecks, version);
  const object = renderMachineHealthCheck(healthCheckModel(inputs, engine), version);
  await insistently(context, () => cluster.apply(kind, object, { fieldManager: FIELD_MANAGER, force }));
}

/** Removes this policy's templates save the one that is kept. A repair that runs has a copy of its own. */
async function removeTemplates(cluster: Cluster, state: PolicyInputs, keep: string | undefined): Promise<void> {
  const labelSelector = [...Object.entries(policyLabels(state)), [MANAGED_BY_LABEL, "pulumi-baremetal"]].map(([key, value]) => `${key}=${value}`).join(",");
  for (const kind of [metal3RemediationTemplates, hostRemediationTemplates]) {
    const version = await servedVersion(cluster, kind);
    if (version === undefined) continue;
    const served = inVersion(kind, version);
    for (const { metadata } of (await cluster.list(served, { namespace: state.namespace, labelSelector })).items) {
      if (metadata.name === keep) continue;
      await deleteIfThere(cluster, served, { namespace: state.namespace, name: metadata.name }, metadata.uid);
    }
  }
}

function stateOf(inputs: PolicyInputs, engine: Engine): PolicyState {
  return { ...inputs, remediationTemplate: templateName(inputs, engine), remediationKind: engine.kind.kind };
}

async function write(context: VerbContext, cluster: Cluster, inputs: PolicyInputs, force: boolean): Promise<PolicyState> {
  const version = await requiredVersion(cluster);
  const engine = await findEngine(cluster, inputs.engine);
  await requireGroup(cluster, version, inputs);
  await createTemplate(context, cluster, inputs, engine);
  const state = stateOf(inputs, engine);
  try {
    await applyHealthCheck(context, cluster, version, inputs, engine, force);
    await removeTemplates(cluster, state, state.remediationTemplate);
    return state;
  } catch (error) {
    throw new PartialFailure<Json>(idOf(inputs), state, [explain(error, cluster.server)]);
  }
}

function withLive(state: PolicyState, view: MachineHealthCheckView): PolicyState {
  const given = state.unhealthyNodeConditions.map(({ type, status, timeout }) => ({ type, status, timeoutSeconds: secondsOf(timeout) }));
  return {
    ...state,
    maxUnhealthy: view.maxUnhealthy ?? state.maxUnhealthy,
    nodeStartupTimeout: durationText(state.nodeStartupTimeout, view.nodeStartupSeconds),
    ...(same(given, view.unhealthyConditions)
      ? {}
      : {
          unhealthyNodeConditions: view.unhealthyConditions.map(({ type, status, timeoutSeconds }) => ({
            type,
            status: conditionStatus.parse(status),
            timeout: formatDuration(timeoutSeconds),
          })),
        }),
    remediationTemplate: view.template?.name ?? "",
    remediationKind: view.template?.kind ?? "",
  };
}

/**
 * Whether the state shows what is there. Then a preview has told what others changed since, and an update may take it back; what nobody was
 * told of is not overwritten.
 */
async function isAsShown(cluster: Cluster, version: CapiVersion, state: PolicyState): Promise<boolean> {
  const key = { namespace: state.namespace, name: state.machineHealthCheck };
  const live = await findObject(cluster, inVersion(machineHealthChecks, version), key);
  return live !== undefined && same(withLive(state, readMachineHealthCheck(live)), state);
}

export const remediationPolicy: Lifecycle<Json, Json> = {
  check,

  async diff(context, _id, oldState, news) {
    const state = policyState.parse(oldState);
    const result = diffOf(changedKeys(comparable(oldState), comparable(news), WRITTEN), news, IDENTITY);
    const complete = knownField(policyInputs, news);
    if (complete === undefined) return result;
    const cluster = await context.cluster();
    // CAPM3 may have come or gone since, and with it the kind that is ours to use.
    const engine = await findEngine(cluster, complete.engine);
    const other = engine.kind.kind !== state.remediationKind || templateName(complete, engine) !== state.remediationTemplate;
    if (result.changed && result.replaces.length === 0)
      policyLines(complete, engine.kind.kind.replace(/Template$/, "")).forEach((line) => context.report.info(line));
    else if (other && !result.changed) context.report.info(`repairs are done by ${engine.kind.kind} from now on`);
    return { ...result, changed: result.changed || other };
  },

  async create(context, raw) {
    const inputs = policyInputs.parse(raw);
    const cluster = await context.cluster();
    await refuseForeign(cluster, await requiredVersion(cluster), inputs, [inputs.owner]);
    return { id: idOf(inputs), state: await write(context, cluster, inputs, inputs.adopt === true) };
  },

  async read(context, id, oldState) {
    const state = policyState.parse(oldState);
    const cluster = await context.cluster();
    const kind = inVersion(machineHealthChecks, await requiredVersion(cluster));
    const live = await findObject(cluster, kind, { namespace: state.namespace, name: state.machineHealthCheck });
    // What another program has taken over is gone for this one.
    if (live === undefined || takenOver(live, state.owner) !== undefined) return undefined;
    return { id, state: withLive(state, readMachineHealthCheck(live)) };
  },

  async update(context, _id, oldState, raw) {
    const old = policyState.parse(oldState);
    const inputs = policyInputs.parse(raw);
    const cluster = await context.cluster();
    const version = await requiredVersion(cluster);
    await refuseForeign(cluster, version, inputs, [old.owner, inputs.owner]);
    return write(context, cluster, inputs, inputs.adopt === true || (await isAsShown(cluster, version, old)));
  },

  async delete(context, _id, oldState) {
    const state = policyState.parse(oldState);
    const cluster = await context.cluster();
    const kind = inVersion(machineHealthChecks, await requiredVersion(cluster));
    const key = { namespace: state.namespace, name: state.machineHealthCheck };
    let taken: string | undefined;
    const waited = await waitUntil(context, secondsOf(state.waitTimeout), async () => {
      const live = await findObject(cluster, kind, key);
      taken = live === undefined ? undefined : takenOver(live, state.owner);
      if (live === undefined || taken !== undefined) return { done: true, line: "", progress: "" };
      if (live.metadata.deletionTimestamp === undefined) await cluster.delete(kind, key, { uid: live.metadata.uid });
      return { done: false, line: `waiting for MachineHealthCheck ${idOf(state)} to go`, progress: (live.metadata.finalizers ?? []).join(" ") };
    });
    if (!waited.done) throw new Error(`not gone after ${state.waitTimeout}: ${waited.line}; Cluster API's core controller has to let it go`);
    if (taken === undefined) await removeTemplates(cluster, state, undefined);
    else context.report.warn(`${taken}; it is left there`);
  },
};
