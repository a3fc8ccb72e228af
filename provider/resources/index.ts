/** Every resource by its kind: what a front dispatches to. */
import type { Cluster } from "../cluster/cluster.ts";
import { isClusterError } from "../cluster/errors.ts";
import { controllerRemoval } from "./controller-removal/lifecycle.ts";
import { explain } from "./failures.ts";
import type { Json } from "./inputs.ts";
import type { Lifecycle, VerbContext } from "./lifecycle.ts";
import { machineInventoryPool } from "./machine-inventory-pool/lifecycle.ts";
import { PatientCluster } from "./patience.ts";
import { remediationPolicy } from "./remediation-policy/lifecycle.ts";
import { workerGroup } from "./worker-group/lifecycle.ts";

export type ResourceName = "MachineInventoryPool" | "WorkerGroup" | "RemediationPolicy" | "ControllerRemoval";

/** Runs a verb on a cluster that is asked patiently; says what a failed request means, where the verb has no better words for it. */
async function carefully<T>(context: VerbContext, verb: (context: VerbContext) => Promise<T>): Promise<T> {
  let server: string | undefined;
  const cluster = async (): Promise<Cluster> => {
    const opened = await context.cluster();
    server = opened.server;
    return new PatientCluster(opened, context.clock, context.signal);
  };
  try {
    return await verb({ ...context, cluster });
  } catch (error) {
    if (!isClusterError(error)) throw error;
    throw new Error(explain(error, server), { cause: error });
  }
}

function served(lifecycle: Lifecycle<Json, Json>): Lifecycle<Json, Json> {
  return {
    check: (context, olds, news) => carefully(context, (inner) => lifecycle.check(inner, olds, news)),
    diff: (context, id, state, news) => carefully(context, (inner) => lifecycle.diff(inner, id, state, news)),
    create: (context, inputs) => carefully(context, (inner) => lifecycle.create(inner, inputs)),
    read: (context, id, state) => carefully(context, (inner) => lifecycle.read(inner, id, state)),
    update: (context, id, state, news) => carefully(context, (inner) => lifecycle.update(inner, id, state, news)),
    delete: (context, id, state) => carefully(context, (inner) => lifecycle.delete(inner, id, state)),
  };
}

export const resources: Readonly<Record<ResourceName, Lifecycle<Json, Json>>> = {
  MachineInventoryPool: served(machineInventoryPool),
  WorkerGroup: served(workerGroup),
  RemediationPolicy: served(remediationPolicy),
  ControllerRemoval: served(controllerRemoval),
};

export function isResourceName(name: string): name is ResourceName {
  return name in resources;
}
