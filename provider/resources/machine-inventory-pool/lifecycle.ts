/** The verbs of a MachineInventoryPool. */
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { secrets } from "../../cluster/kinds.ts";
import type { LiveObject, ObjectKey } from "../../cluster/objects.ts";
import type { Inventory } from "../../hosts/inventory.ts";
import { parseInventory } from "../../hosts/inventory.ts";
import { machineInventories, machineInventoryPools } from "../../hosts/kinds.ts";
import { FIELD_MANAGER } from "../../hosts/names.ts";
import { parsePool } from "../../hosts/pool.ts";
import { changedKeys, derivedName, diffOf, jsonOf, withDefaults } from "../changes.ts";
import { lookingAt } from "../checking.ts";
import { explain, onKind, serves } from "../failures.ts";
import type { Json } from "../inputs.ts";
import { containsUnknown, hiddenInputs, isDnsLabel, knownField, parseInputs, same, secondsOf } from "../inputs.ts";
import type { CheckFailure, CheckResult, Lifecycle, VerbContext } from "../lifecycle.ts";
import { PartialFailure, UNKNOWN } from "../lifecycle.ts";
import { deleteIfThere, findObject, listServed } from "../lookup.ts";
import { foreign, ownerOf, takenOver } from "../ownership.ts";
import { insistently, waitUntil } from "../wait.ts";
import { bmcContradictions, verifyBmcs } from "./bmc.ts";
import type { PoolInputs, PoolMember, PoolState } from "./inputs.ts";
import { poolArgs, poolInputs, poolState } from "./inputs.ts";
import { annotationChanges, entriesOf, inlineSecretName, leavingAnnotations, memberAnnotations, renderBmcSecret, renderPool } from "./manifests.ts";
import { observePool } from "./observe.ts";
import { contradictions, planPool, poolLines } from "./plan.ts";

const IDENTITY = ["clusterName", "namespace", "poolName"] as const;
/** Inputs whose change has to be written somewhere; `waitTimeout` into the state, by which a removal goes. */
const WRITTEN = [...IDENTITY, "machineInventories", "bmcCredentials", "waitTimeout", "owner"] as const;
const checkedArgs = poolArgs.extend(hiddenInputs);
const CONFLICT_TRIES = 5;

function idOf({ namespace, poolName }: Pick<PoolInputs, "namespace" | "poolName">): string {
  return `${namespace}/${poolName}`;
}

function keyOfPool({ namespace, poolName }: Pick<PoolInputs, "namespace" | "poolName">): ObjectKey {
  return { namespace, name: poolName };
}

/** Writes annotations on an inventory that exists, never makes one. Returns it as it was, or undefined where it is not registered. */
async function annotate(
  context: VerbContext,
  cluster: Cluster,
  key: ObjectKey,
  wanted: (live: LiveObject) => Record<string, string | null>,
): Promise<LiveObject | undefined> {
  for (let attempt = 1; ; attempt++) {
    const live = await findObject(cluster, machineInventories, key);
    if (live === undefined) return undefined;
    const annotations = annotationChanges(live.metadata.annotations ?? {}, wanted(live));
    if (Object.keys(annotations).length === 0) return live;
    const { uid, resourceVersion } = live.metadata;
    try {
      await cluster.patch(
        machineInventories,
        key,
        "merge",
        { metadata: { uid, resourceVersion, annotations } },
        { fieldManager: FIELD_MANAGER, signal: context.signal },
      );
      return live;
    } catch (error) {
      if (!isClusterError(error, "conflict") || attempt === CONFLICT_TRIES) throw error;
    }
  }
}

async function writeSecret(cluster: Cluster, inputs: PoolInputs, inventory: string): Promise<void> {
  const credentials = inputs.bmcCredentials?.[inventory];
  if (credentials === undefined) return;
  const secret = renderBmcSecret(inputs, inventory, credentials);
  const present = await findObject(cluster, secrets, { namespace: inputs.namespace, name: secret.metadata.name });
  const refusal = present === undefined ? undefined : foreign(present, inputs.owner, inputs.adopt);
  if (refusal !== undefined) throw new Error(`${refusal}; or name it in bmc.secretName of ${inventory}`);
  await cluster.apply(secrets, secret, { fieldManager: FIELD_MANAGER, force: inputs.adopt === true });
}

async function removeSecret(cluster: Cluster, { namespace, owner }: PoolInputs, inventory: string): Promise<void> {
  const key = { namespace, name: inlineSecretName(inventory) };
  const present = await findObject(cluster, secrets, key);
  if (present === undefined || ownerOf(present) !== owner) return;
  await cluster.delete(secrets, key, { uid: present.metadata.uid });
}

/** Whether the host is kept off on purpose, and so still needs its BMC. */
function isKeptOff(inventory: Inventory): boolean {
  return inventory.state === "Quarantined" || inventory.held;
}

function inUse(inventory: string, machine: string): Error {
  return new Error(`inventory ${inventory} is in use by machine ${machine} and cannot be dropped; remove that machine first`);
}

/** Takes our annotations off a host that leaves the pool. One that is kept off keeps its BMC, so that it can be released. */
async function release(context: VerbContext, cluster: Cluster, state: PoolState, member: PoolMember): Promise<void> {
  const live = await annotate(context, cluster, { namespace: state.namespace, name: member.name }, (present) => {
    const inventory = parseInventory(present);
    const theirs = inventory.pool !== undefined && inventory.pool !== state.poolName;
    if (theirs) return {};
    // A machine may have taken it since the caller looked, and needs its BMC.
    if (inventory.owner !== undefined) throw inUse(member.name, inventory.owner.name);
    return leavingAnnotations(isKeptOff(inventory));
  });
  if (live !== undefined && isKeptOff(parseInventory(live))) {
    context.report.warn(
      `${member.name} is kept off (quarantined or in repair): its BMC annotations and Secret stay, so that it can be released; remove them by hand once it is not needed any more`,
    );
    return;
  }
  if (state.bmcCredentials?.[member.name] !== undefined) await removeSecret(cluster, state, member.name);
}

/** Secrets and annotations of all members; answers with those that are not registered yet. */
async function writeMembers(context: VerbContext, cluster: Cluster, inputs: PoolInputs): Promise<string[]> {
  const pending: string[] = [];
  for (const member of inputs.machineInventories) {
    await writeSecret(cluster, inputs, member.name);
    const registered = await annotate(context, cluster, { namespace: inputs.namespace, name: member.name }, () => memberAnnotations(inputs.poolName, member));
    if (registered === undefined) pending.push(member.name);
  }
  return pending;
}

async function machineOf(cluster: Cluster, namespace: string, name: string): Promise<string | undefined> {
  const live = await findObject(cluster, machineInventories, { namespace, name });
  return live === undefined ? undefined : parseInventory(live).owner?.name;
}

async function applyPool(context: VerbContext, cluster: Cluster, inputs: PoolInputs, force: boolean): Promise<LiveObject> {
  return insistently(context, () =>
    onKind(machineInventoryPools, cluster.apply(machineInventoryPools, renderPool(inputs), { fieldManager: FIELD_MANAGER, force })),
  );
}

/** Entries that others added are theirs in a server-side apply, which leaves them there and in front: the list is written as a whole. */
async function replaceList(context: VerbContext, cluster: Cluster, inputs: PoolInputs): Promise<void> {
  const operation = { op: "replace", path: "/spec/machineInventories", value: entriesOf(inputs) } as const;
  await insistently(context, () => cluster.patch(machineInventoryPools, keyOfPool(inputs), "json", [operation], { fieldManager: FIELD_MANAGER }));
}

/** Members that are registered although they were not at the last run, or that lost what was written on them. */
async function incomplete(cluster: Cluster, inputs: PoolInputs, names: readonly string[]): Promise<string[]> {
  const found: string[] = [];
  for (const member of inputs.machineInventories.filter(({ name }) => names.includes(name))) {
    const live = await findObject(cluster, machineInventories, { namespace: inputs.namespace, name: member.name });
    if (live !== undefined && Object.keys(annotationChanges(live.metadata.annotations ?? {}, memberAnnotations(inputs.poolName, member))).length > 0)
      found.push(member.name);
  }
  return found;
}

async function check(context: VerbContext, olds: unknown, news: unknown): Promise<CheckResult<Json>> {
  const raw = jsonOf(news);
  const parsed = parseInputs(checkedArgs, raw);
  const namespace = raw["namespace"] ?? context.defaultNamespace;
  const poolName = derivedName(raw["name"], [raw["clusterName"], raw["resourceName"], "pool"]);
  const inputs: Json = { ...(parsed.inputs ?? withDefaults(poolArgs.shape, raw)), namespace, poolName };
  const failures: CheckFailure[] = [...parsed.failures];
  if (poolName !== UNKNOWN && raw["name"] === undefined && !isDnsLabel(poolName)) {
    failures.push({
      property: "name",
      reason: `the name ${poolName} that is made from clusterName and the logical name cannot be used; set \`name\` to at most 63 lower-case letters, digits and '-'`,
    });
  }
  const members = knownField(poolArgs.shape.machineInventories, raw["machineInventories"]);
  if (members === undefined) return { inputs, failures };
  const credentials =
    raw["bmcCredentials"] === undefined ? [] : containsUnknown(raw["bmcCredentials"]) ? undefined : Object.keys(jsonOf(raw["bmcCredentials"]));
  failures.push(...bmcContradictions(members, credentials));
  const complete = knownField(poolInputs, inputs);
  if (failures.length > 0 || complete === undefined) return { inputs, failures: [...failures, ...contradictions(members)] };

  const before = jsonOf(olds);
  const replaced = olds !== undefined && IDENTITY.some((key) => before[key] !== complete[key]);
  failures.push(
    ...(await lookingAt(context, async (cluster) => {
      const { world, notes } = await observePool(cluster, complete.namespace, complete.poolName);
      notes.forEach((note) => context.report.warn(note));
      const plan = planPool(
        { ...complete, before: replaced ? [] : (knownField(poolArgs.shape.machineInventories, before["machineInventories"]) ?? []), after: members },
        world,
      );
      if (olds === undefined && plan.refusals.length === 0) poolLines(plan, complete.poolName).forEach((line) => context.report.info(line));
      return [...plan.refusals, ...(complete.verifyBmc === true && plan.refusals.length === 0 ? await verifyBmcs(context, cluster, complete) : [])];
    })),
  );
  return { inputs, failures };
}

async function reportUpdate(context: VerbContext, cluster: Cluster, state: PoolState, news: Json): Promise<void> {
  const members = knownField(poolArgs.shape.machineInventories, news["machineInventories"]);
  if (members === undefined) {
    context.report.info(`which hosts pool ${state.poolName} will have is not known yet`);
    return;
  }
  const { world } = await observePool(cluster, state.namespace, state.poolName);
  poolLines(planPool({ ...state, before: state.machineInventories, after: members }, world), state.poolName).forEach((line) => context.report.info(line));
}

/** Whether the state shows the list that is there. Then a preview has told what others changed in it, and an update may take it back. */
function isAsShown(live: LiveObject, shown: PoolInputs): boolean {
  return same(parsePool(live).entries, entriesOf(shown));
}

export const machineInventoryPool: Lifecycle<Json, Json> = {
  check,

  async diff(context, _id, oldState, news) {
    const state = poolState.parse(oldState);
    const result = diffOf(changedKeys(oldState, news, WRITTEN), news, IDENTITY);
    const cluster = await context.cluster();
    if (result.changed) {
      if (result.replaces.length === 0) await reportUpdate(context, cluster, state, news);
      return result;
    }
    const due = await incomplete(cluster, state, state.pending);
    if (due.length > 0) context.report.info(`${due.join(", ")} can be made known to pool ${state.poolName} now`);
    return { ...result, changed: due.length > 0 };
  },

  async create(context, raw) {
    const inputs = poolInputs.parse(raw);
    const cluster = await context.cluster();
    const present = await findObject(cluster, machineInventoryPools, keyOfPool(inputs));
    const refusal = present === undefined ? undefined : foreign(present, inputs.owner, inputs.adopt);
    if (refusal !== undefined) throw new Error(refusal);
    await applyPool(context, cluster, inputs, inputs.adopt === true);
    const id = idOf(inputs);
    try {
      return { id, state: { ...inputs, pending: await writeMembers(context, cluster, inputs) } };
    } catch (error) {
      const names = inputs.machineInventories.map(({ name }) => name);
      throw new PartialFailure<Json>(id, { ...inputs, pending: names }, [explain(error, cluster.server)]);
    }
  },

  async read(context, id, oldState) {
    const state = poolState.parse(oldState);
    const cluster = await context.cluster();
    const live = await findObject(cluster, machineInventoryPools, keyOfPool(state));
    // What another program has taken over is gone for this one.
    if (live === undefined || takenOver(live, state.owner) !== undefined) return undefined;
    const declared = new Map(state.machineInventories.map((member) => [member.name, member]));
    const machineInventoriesNow = parsePool(live).entries.map(({ name, hostname }): PoolMember => {
      const bmc = declared.get(name)?.bmc;
      return { name, ...(hostname === undefined ? {} : { hostname }), ...(bmc === undefined ? {} : { bmc }) };
    });
    const { world } = await observePool(cluster, state.namespace, state.poolName);
    const names = state.machineInventories.map(({ name }) => name);
    const lost = await incomplete(cluster, state, names);
    return {
      id,
      state: { ...state, machineInventories: machineInventoriesNow, pending: names.filter((name) => !world.inventories.has(name) || lost.includes(name)) },
    };
  },

  async update(context, id, oldState, raw) {
    const state = poolState.parse(oldState);
    const inputs = poolInputs.parse(raw);
    const cluster = await context.cluster();
    const live = await findObject(cluster, machineInventoryPools, keyOfPool(inputs));
    const refusal = live === undefined || ownerOf(live) === state.owner ? undefined : foreign(live, inputs.owner, inputs.adopt);
    if (refusal !== undefined) throw new Error(refusal);
    const wanted = new Set(inputs.machineInventories.map(({ name }) => name));
    const dropped = state.machineInventories.filter(({ name }) => !wanted.has(name));
    const refuseInUse = async (): Promise<void> => {
      for (const { name } of dropped) {
        const machine = await machineOf(cluster, inputs.namespace, name);
        if (machine !== undefined) throw inUse(name, machine);
      }
    };
    await refuseInUse();
    const shown = live !== undefined && isAsShown(live, state);
    const force = inputs.adopt === true || shown;
    const applied = await applyPool(context, cluster, inputs, force);
    if (shown && !isAsShown(applied, inputs)) await replaceList(context, cluster, inputs);
    try {
      // A machine may have taken a host between the look and the write: then the pool stays as it was.
      await refuseInUse();
    } catch (error) {
      await applyPool(context, cluster, { ...inputs, machineInventories: state.machineInventories, owner: state.owner }, force);
      throw error;
    }
    try {
      const pending = await writeMembers(context, cluster, inputs);
      for (const member of dropped) await release(context, cluster, state, member);
      for (const { name } of inputs.machineInventories) {
        if (state.bmcCredentials?.[name] !== undefined && inputs.bmcCredentials?.[name] === undefined) await removeSecret(cluster, state, name);
      }
      return { ...inputs, pending };
    } catch (error) {
      // What was to be dropped stays in the state, so that the next run takes its annotations off.
      const unfinished = { ...inputs, machineInventories: [...inputs.machineInventories, ...dropped] };
      throw new PartialFailure<Json>(id, { ...unfinished, pending: [...wanted] }, [explain(error, cluster.server)]);
    }
  },

  async delete(context, _id, oldState) {
    const state = poolState.parse(oldState);
    const cluster = await context.cluster();
    const names = new Set(state.machineInventories.map(({ name }) => name));
    let registered = new Set<string>();
    let live: LiveObject | undefined;
    let taken: string | undefined;
    const waited = await waitUntil(context, secondsOf(state.waitTimeout), async () => {
      live = (await serves(cluster, machineInventoryPools)) ? await findObject(cluster, machineInventoryPools, keyOfPool(state)) : undefined;
      taken = live === undefined ? undefined : takenOver(live, state.owner);
      if (taken !== undefined) return { done: true, line: "", progress: "" };
      const inventories = ((await listServed(cluster, machineInventories, state.namespace)) ?? []).map(parseInventory).filter(({ name }) => names.has(name));
      registered = new Set(inventories.map(({ name }) => name));
      const busy = inventories
        .filter(({ owner, pool }) => owner !== undefined && pool === state.poolName)
        .map(({ name, owner }) => `${name} is in use by machine ${owner?.name ?? ""}`);
      return { done: busy.length === 0, line: busy.join(", "), progress: busy.join(", ") };
    });
    if (!waited.done)
      throw new Error(
        `pool ${state.poolName} cannot be deleted: ${waited.line}; remove these machines first (their WorkerGroup must depend on the pool, so that it goes before it)`,
      );
    if (taken !== undefined) {
      context.report.warn(`${taken}; it is left there`);
      return;
    }
    for (const member of state.machineInventories) {
      if (registered.has(member.name)) await release(context, cluster, state, member);
      else if (state.bmcCredentials?.[member.name] !== undefined) await removeSecret(cluster, state, member.name);
    }
    if (live !== undefined) await deleteIfThere(cluster, machineInventoryPools, keyOfPool(state), live.metadata.uid);
  },
};
