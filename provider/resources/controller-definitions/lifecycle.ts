/** The kinds that the controller works on, as one resource: they are brought, kept up to date, and never taken away. */
import { createHash } from "node:crypto";

import { z } from "zod";

import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { customResourceDefinitions } from "../../cluster/kinds.ts";
import type { KubernetesObject, LiveObject, ResourceKind } from "../../cluster/objects.ts";
import { FIELD_MANAGER, MANAGED_BY, MANAGED_BY_LABEL } from "../../hosts/names.ts";
import { canonical, hiddenInputs, parseInputs, same } from "../inputs.ts";
import type { Json } from "../inputs.ts";
import type { Lifecycle, VerbContext } from "../lifecycle.ts";

const setNames = z.enum(["remediation", "inventory"]);
export type DefinitionSet = z.output<typeof setNames>;
export type Definitions = Readonly<Record<DefinitionSet, readonly KubernetesObject[]>>;

const definitionsArgs = z.strictObject({ ...hiddenInputs, sets: z.array(setNames).min(1, "must name at least one controller") });
export const definitionsInputs = definitionsArgs.extend({
  /** Of the definitions that this version of the package brings, so that another version shows as a change. */
  digest: z.string(),
});
const definitionsState = definitionsInputs.extend({
  /** Names of the definitions that are ours. */
  brought: z.array(z.string()),
  /** Names of those that somebody else brought, and that stay as they are. */
  foreign: z.array(z.string()),
});
type DefinitionsInputs = z.output<typeof definitionsInputs>;
type DefinitionsState = z.output<typeof definitionsState>;

const json = z.record(z.string(), z.unknown());

const USABLE_TIMEOUT_MS = 30_000;
const POLL_INTERVAL_MS = 200;
/** In place of the digest where a definition of ours was removed or changed by hand: the next update brings it back. */
const INCOMPLETE = "incomplete";

const specOf = z.object({
  group: z.string(),
  scope: z.string(),
  names: z.object({ plural: z.string(), kind: z.string() }),
  versions: z.array(z.object({ name: z.string(), served: z.boolean() })),
});
const statusOf = z.object({ status: z.object({ conditions: z.array(z.object({ type: z.string(), status: z.string() })).optional() }).optional() });

function isOurs(definition: LiveObject): boolean {
  return definition.metadata.labels?.[MANAGED_BY_LABEL] === MANAGED_BY;
}

async function find(cluster: Cluster, name: string, signal: AbortSignal): Promise<LiveObject | undefined> {
  try {
    return await cluster.get(customResourceDefinitions, { name }, { signal });
  } catch (error) {
    if (isClusterError(error, "notFound")) return undefined;
    throw error;
  }
}

/** Brings one definition unless somebody else has brought it. */
async function bring(cluster: Cluster, definition: KubernetesObject, signal: AbortSignal): Promise<"brought" | "foreign"> {
  const { name } = definition.metadata;
  let live = await find(cluster, name, signal);
  if (live === undefined) {
    try {
      await cluster.create(customResourceDefinitions, definition, { fieldManager: FIELD_MANAGER, signal });
      return "brought";
    } catch (error) {
      // Somebody was faster: then it counts whose it is.
      if (!isClusterError(error, "alreadyExists")) throw error;
      live = await cluster.get(customResourceDefinitions, { name }, { signal });
    }
  }
  if (!isOurs(live)) return "foreign";
  await cluster.apply(customResourceDefinitions, definition, { fieldManager: FIELD_MANAGER, force: true, signal });
  return "brought";
}

/** The kind in each version that is served. */
function kindsOf(definition: LiveObject): ResourceKind[] {
  const { group, scope, names, versions } = specOf.parse(definition["spec"]);
  return versions
    .filter(({ served }) => served)
    .map(({ name }) => ({ group, version: name, plural: names.plural, kind: names.kind, namespaced: scope === "Namespaced" }));
}

/** Whether the kind can be used. The API server only makes its storage ready when it is first asked, and refuses until it is. */
async function isUsable(cluster: Cluster, name: string, signal: AbortSignal): Promise<boolean> {
  const definition = await cluster.get(customResourceDefinitions, { name }, { signal });
  const { status } = statusOf.parse(definition);
  if (status?.conditions?.some(({ type, status: value }) => type === "Established" && value === "True") !== true) return false;
  const answers = await Promise.all(kindsOf(definition).map((kind) => answersFor(cluster, kind, signal)));
  return answers.every(Boolean);
}

/** Asks for an object that is not there: cheap, however many there are. */
async function answersFor(cluster: Cluster, kind: ResourceKind, signal: AbortSignal): Promise<boolean> {
  try {
    await cluster.get(kind, { ...(kind.namespaced ? { namespace: "default" } : {}), name: "pulumi-baremetal" }, { signal });
    return true;
  } catch (error) {
    if (isClusterError(error, "notFound", "forbidden")) return true;
    if (isClusterError(error, "kindNotServed", "throttled", "server")) return false;
    throw error;
  }
}

async function waitUntilUsable({ clock, signal }: VerbContext, cluster: Cluster, name: string): Promise<void> {
  const deadline = clock.now() + USABLE_TIMEOUT_MS;
  while (!(await isUsable(cluster, name, signal))) {
    if (clock.now() >= deadline) {
      throw new Error(`${name} cannot be used ${USABLE_TIMEOUT_MS / 1000} s after it was brought; the conditions of this CustomResourceDefinition say why`);
    }
    await clock.sleep(POLL_INTERVAL_MS, signal);
  }
}

export function controllerDefinitions(definitions: Definitions): Lifecycle<Json, Json> {
  const wanted = (sets: readonly DefinitionSet[]): KubernetesObject[] => sets.flatMap((set) => definitions[set]);
  const digestOf = (sets: readonly DefinitionSet[]): string =>
    createHash("sha256")
      .update(canonical(wanted(sets)))
      .digest("hex")
      .slice(0, 16);

  const bringAll = async (context: VerbContext, inputs: DefinitionsInputs): Promise<DefinitionsState> => {
    const cluster = await context.cluster();
    const brought: string[] = [];
    const foreign: string[] = [];
    for (const definition of wanted(inputs.sets)) {
      const { name } = definition.metadata;
      ((await bring(cluster, definition, context.signal)) === "brought" ? brought : foreign).push(name);
    }
    for (const name of brought) await waitUntilUsable(context, cluster, name);
    if (foreign.length > 0) context.report.info(`left as they are, because somebody else brought them: ${foreign.join(", ")}`);
    return { ...inputs, brought, foreign };
  };

  return {
    async check(context, olds, news) {
      const { inputs, failures } = parseInputs(definitionsArgs, news);
      if (inputs === undefined) return { inputs: json.parse(news), failures };
      if (olds === undefined) {
        const cluster = await context.cluster();
        const live = await Promise.all(wanted(inputs.sets).map(async ({ metadata: { name } }) => [name, await find(cluster, name, context.signal)] as const));
        const missing = live.flatMap(([name, definition]) => (definition === undefined ? [name] : []));
        if (missing.length > 0) context.report.info(`will bring ${missing.join(", ")}; they stay when the controller is removed`);
      }
      return { inputs: { ...inputs, digest: digestOf(inputs.sets) }, failures: [] };
    },
    diff(_context, _id, state, news) {
      return Promise.resolve({ changed: state["digest"] !== news["digest"] || !same(state["sets"], news["sets"]), replaces: [], deleteBeforeReplace: false });
    },
    async create(context, inputs) {
      return { id: "controller-definitions", state: await bringAll(context, definitionsInputs.parse(inputs)) };
    },
    async read(context, id, state) {
      const known = definitionsState.parse(state);
      const cluster = await context.cluster();
      const live = await Promise.all([...known.brought, ...known.foreign].map((name) => find(cluster, name, context.signal)));
      if (live.every((definition) => definition === undefined)) return undefined;
      const complete = live.every((definition, index) => definition !== undefined && isOurs(definition) === index < known.brought.length);
      return { id, state: { ...known, digest: complete ? known.digest : INCOMPLETE } };
    },
    async update(context, _id, _state, news) {
      return bringAll(context, definitionsInputs.parse(news));
    },
    delete(context) {
      context.report.info("the kinds stay in the cluster, with every object of theirs");
      return Promise.resolve();
    },
  };
}
