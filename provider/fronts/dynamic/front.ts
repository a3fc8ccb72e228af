/** Pulumi's verbs for dynamic resources on one side, the lifecycles on the other. */
import { isDeepStrictEqual } from "node:util";

import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import type { BmcAccess } from "../../redfish/bmc.ts";
import { PartialFailure } from "../../resources/lifecycle.ts";
import type { Lifecycle, VerbContext } from "../../resources/lifecycle.ts";
import { PartialVerbError, VerbError } from "./errors.ts";
import { LinePrinter } from "./report.ts";
import type { Print } from "./report.ts";
import { settingsOf } from "./settings.ts";
import type { Settings, StackConfig } from "./settings.ts";
import { PROVIDER_KEY, isProperties, propertiesToJson, withoutProvider } from "./values.ts";
import type { Properties } from "./values.ts";

/** A resource as this front needs it. Inputs and states come back from the engine as JSON; each lifecycle parses its own. */
export interface ServedResource {
  lifecycle: Lifecycle<unknown, unknown>;
  /** Which part of a state are inputs, so that a refresh shows what others changed and the next update puts it right. */
  inputKeys: readonly string[];
}

export interface FrontOptions {
  /** By kind. */
  resources: Readonly<Record<string, ServedResource>>;
  openCluster: (settings: Settings) => Promise<Cluster>;
  bmcs: BmcAccess;
  clock: Clock;
  print: Print;
}

export interface DynamicFront {
  /** What the stored providers call, one verb at a time. Rejects with `VerbError` and nothing else. */
  call(kind: string, verb: string, args: readonly unknown[]): Promise<unknown>;
}

function propertiesOf(value: unknown): Properties {
  return isProperties(value) ? value : {};
}

/** The name that the person gave the resource in the program. */
function nameOf(properties: Properties): string {
  const { resourceName, name } = properties;
  if (typeof resourceName === "string") return resourceName;
  return typeof name === "string" ? name : "";
}

function isStackConfig(value: unknown): value is StackConfig {
  return typeof value === "object" && value !== null && "get" in value && typeof value.get === "function";
}

const noConfig: StackConfig = { get: () => undefined };

export function dynamicFront(options: FrontOptions): DynamicFront {
  const { resources, bmcs, clock, openCluster } = options;
  const lines = new LinePrinter(options.print);
  // A dynamic provider is never told of a cancelled run.
  const { signal } = new AbortController();
  let settings = settingsOf(noConfig);
  let opening: Promise<Cluster> | undefined;

  const cluster = async (): Promise<Cluster> => {
    opening ??= openCluster(settings);
    try {
      return await opening;
    } catch (error) {
      opening = undefined;
      throw error;
    }
  };

  const contextFor = (kind: string, name: string): VerbContext => ({
    cluster,
    bmcs,
    clock,
    signal,
    report: lines.reporter(kind, name),
    defaultNamespace: settings.namespace,
  });

  return {
    async call(kind, verb, args) {
      if (verb === "configure") {
        // One process serves one stack, so that every provider in it brings the same configuration.
        settings = settingsOf(isStackConfig(args[0]) ? args[0] : noConfig);
        return undefined;
      }
      const properties = propertiesOf(args.at(-1));
      const name = nameOf(properties);
      const subject = `pulumi-baremetal: ${kind} ${name}`;
      try {
        const resource = resources[kind];
        if (resource === undefined) {
          throw new Error(
            `this version of the npm package pulumi-baremetal does not know the resource ${kind}; install the version that created it, or a newer one`,
          );
        }
        return await runVerb(resource, contextFor(kind, name), verb, args);
      } catch (error) {
        throw error instanceof PartialFailure ? new PartialVerbError(subject, error, properties[PROVIDER_KEY]) : new VerbError(subject, error);
      }
    },
  };
}

async function runVerb({ lifecycle, inputKeys }: ServedResource, context: VerbContext, verb: string, args: readonly unknown[]): Promise<unknown> {
  switch (verb) {
    case "check": {
      const [olds, news] = args.map((properties) => withoutProvider(propertiesOf(properties)));
      const before = olds === undefined || Object.keys(olds).length === 0 ? undefined : olds;
      const { inputs, failures } = await lifecycle.check(context, before, news);
      return { inputs: propertiesToJson(inputs), failures };
    }
    case "diff": {
      const [id, state, news] = identified(args);
      const { changed, replaces, deleteBeforeReplace } = await lifecycle.diff(context, id, state, news);
      if (!changed) return { changes: false };
      // Left open, the engine compares the inputs itself and so can show which ones differ; where none does, it has to be told.
      const differs = inputKeys.some((key) => !isDeepStrictEqual(state[key], news[key]));
      return { replaces, deleteBeforeReplace, ...(differs ? {} : { changes: true }) };
    }
    case "create": {
      const { id, state } = await lifecycle.create(context, withoutProvider(propertiesOf(args[0])));
      return { id, outs: propertiesToJson(state) };
    }
    case "read": {
      const [id, state] = identified(args);
      const found = await lifecycle.read(context, id, state);
      if (found === undefined) return { id: "" };
      const props = propertiesToJson(found.state);
      // The engine compares inputs with inputs: without these an object that others changed would look as it should.
      return { id: found.id, props, inputs: Object.fromEntries(Object.entries(props).filter(([key]) => inputKeys.includes(key))) };
    }
    case "update": {
      const [id, state, news] = identified(args);
      return { outs: propertiesToJson(await lifecycle.update(context, id, state, news)) };
    }
    case "delete": {
      const [id, state] = identified(args);
      await lifecycle.delete(context, id, state);
      return undefined;
    }
    default:
      throw new Error(`this version of the npm package pulumi-baremetal does not know the verb ${verb}; install a newer one`);
  }
}

function identified(args: readonly unknown[]): [id: string, state: Properties, news: Properties] {
  const [id, state, news] = args;
  return [String(id), withoutProvider(propertiesOf(state)), withoutProvider(propertiesOf(news))];
}
