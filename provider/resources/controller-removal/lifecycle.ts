/**
 * The component's last step. It lives after the controller's Deployment and goes before it: then it turns the stop switch on
 * and waits until no host is held off, so that no server stays down for want of the controller that would have started it.
 */
import { z } from "zod";

import type { Cluster } from "../../cluster/cluster.ts";
import { configMaps } from "../../cluster/kinds.ts";
import { bareMetalHosts, machineInventories } from "../../hosts/kinds.ts";
import { FIELD_MANAGER, POWER_HOLD_ANNOTATION } from "../../hosts/names.ts";
import { changedKeys, diffOf, jsonOf } from "../changes.ts";
import type { Json } from "../inputs.ts";
import { parseInputs, secondsOf } from "../inputs.ts";
import type { Lifecycle } from "../lifecycle.ts";
import { findObject, listServed } from "../lookup.ts";
import { insistently, waitUntil } from "../wait.ts";
import type { RemovalInputs } from "./inputs.ts";
import { removalInputs, removalState } from "./inputs.ts";

const STOP_KEY = "stop";
/** The controller looks at the switch every few seconds; one that has not seen it yet may still begin a repair. */
const SWITCH_SEEN_SECONDS = 10;
const WHO_ACTS = "the controller has to start the hosts that it holds off; look at its Pods and at the BMCs of these hosts";
const settingsModel = z.object({ data: z.record(z.string(), z.string()).optional() });

/** Hosts that the controller holds off, by kind and name. */
async function heldHosts(cluster: Cluster, namespaces: readonly string[]): Promise<string[]> {
  const held: string[] = [];
  for (const namespace of namespaces) {
    for (const kind of [machineInventories, bareMetalHosts]) {
      for (const { metadata } of (await listServed(cluster, kind, namespace)) ?? []) {
        if (metadata.annotations?.[POWER_HOLD_ANNOTATION] !== undefined) held.push(`${kind.kind} ${namespace}/${metadata.name}`);
      }
    }
  }
  return held.sort();
}

/** Undefined where the settings do not exist. */
async function stopSwitch(cluster: Cluster, { settings }: RemovalInputs): Promise<boolean | undefined> {
  const live = await findObject(cluster, configMaps, settings);
  return live === undefined ? undefined : settingsModel.parse(live).data?.[STOP_KEY] === "true";
}

async function setStop(cluster: Cluster, { settings }: RemovalInputs, stop: boolean): Promise<void> {
  await cluster.patch(configMaps, settings, "merge", { data: { [STOP_KEY]: String(stop) } }, { fieldManager: FIELD_MANAGER });
}

async function start(cluster: Cluster, inputs: RemovalInputs): Promise<Json> {
  const stopped = await stopSwitch(cluster, inputs);
  if (stopped === undefined)
    throw new Error(`the settings ConfigMap ${inputs.settings.namespace}/${inputs.settings.name} does not exist; it has to be made first`);
  if (stopped) await setStop(cluster, inputs, false);
  return { ...inputs, stopped: false };
}

export const controllerRemoval: Lifecycle<Json, Json> = {
  check(_context, _olds, news) {
    const raw = jsonOf(news);
    const { inputs, failures } = parseInputs(removalInputs, raw);
    return Promise.resolve({ inputs: inputs ?? raw, failures });
  },

  async diff(context, _id, oldState, news) {
    const result = diffOf(changedKeys(oldState, news, ["namespaces", "settings", "waitTimeout"]), news, []);
    if (result.changed) return result;
    // A removal that was begun and not ended leaves the switch on; whoever keeps the controller wants it to work.
    const stopped = await stopSwitch(await context.cluster(), removalState.parse(oldState));
    return { ...result, changed: stopped === true };
  },

  async create(context, raw) {
    const inputs = removalInputs.parse(raw);
    const cluster = await context.cluster();
    return { id: `${inputs.settings.namespace}/${inputs.settings.name}`, state: await insistently(context, () => start(cluster, inputs)) };
  },

  async read(context, id, oldState) {
    const state = removalState.parse(oldState);
    const stopped = await stopSwitch(await context.cluster(), state);
    return stopped === undefined ? undefined : { id, state: { ...state, stopped } };
  },

  async update(context, _id, _oldState, raw) {
    const inputs = removalInputs.parse(raw);
    const cluster = await context.cluster();
    return insistently(context, () => start(cluster, inputs));
  },

  async delete(context, _id, oldState) {
    const state = removalState.parse(oldState);
    const cluster = await context.cluster();
    await insistently(context, async () => {
      const stopped = await stopSwitch(cluster, state);
      if (stopped === false) await setStop(cluster, state, true);
      if (stopped === undefined)
        context.report.warn(
          `the settings ConfigMap ${state.settings.namespace}/${state.settings.name} is gone, and so the controller cannot be told to begin nothing new`,
        );
    });
    let quietSince: number | undefined;
    const waited = await waitUntil(
      context,
      Math.max(secondsOf(state.waitTimeout), 2 * SWITCH_SEEN_SECONDS),
      async () => {
        const held = await heldHosts(cluster, state.namespaces);
        const now = context.clock.now();
        quietSince = held.length > 0 ? undefined : (quietSince ?? now);
        const done = quietSince !== undefined && now - quietSince >= SWITCH_SEEN_SECONDS * 1000;
        return {
          done,
          line: held.length > 0 ? `hosts still held off: ${held.join(", ")}` : "no host is held off; giving the controller time to see the stop switch",
          progress: held.join(" "),
        };
      },
      () => (quietSince === undefined ? WHO_ACTS : undefined),
    );
    if (!waited.done) {
      throw new Error(
        `after ${state.waitTimeout}, ${waited.line}. The controller stays, with nothing new begun, so that they are started again; ${WHO_ACTS}. Then run destroy again, or run up to let it work on`,
      );
    }
  },
};
