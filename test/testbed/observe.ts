/** What is true of the bed's clusters, in the few words that demo and tests ask for. */
import { z } from "zod";

import { capiLabels, machineDeployments, machines, machineSets, metal3Remediations } from "../../provider/capi/kinds.ts";
import { isClusterError } from "../../provider/cluster/errors.ts";
import { nodes } from "../../provider/cluster/kinds.ts";
import type { LiveObject, ResourceKind } from "../../provider/cluster/objects.ts";
import { machineInventories } from "../../provider/hosts/kinds.ts";
import { allocationAnnotations, POWER_HOLD_ANNOTATION, UNHEALTHY_ANNOTATION } from "../../provider/hosts/names.ts";
import type { Bed } from "./bed.ts";

const condition = z.looseObject({ type: z.string(), status: z.string(), reason: z.string().default(""), message: z.string().default("") });
export type ObservedCondition = z.infer<typeof condition>;

const nodeSchema = z.object({
  metadata: z.object({ name: z.string(), uid: z.string(), labels: z.record(z.string(), z.string()).default({}) }),
  spec: z.object({ taints: z.array(z.object({ key: z.string(), value: z.string().optional(), effect: z.string() })).default([]) }),
  status: z.object({ conditions: z.array(condition).default([]), nodeInfo: z.object({ bootID: z.string() }) }),
});

export interface ObservedNode {
  name: string;
  uid: string;
  ready: boolean;
  bootID: string;
  /** Keys of its taints. */
  taints: string[];
  labels: Record<string, string>;
}

export interface ObservedInventory {
  name: string;
  uid: string;
  /** Absent where nobody has said anything of it yet. */
  state: string | undefined;
  pool: string | undefined;
  owner: string | undefined;
  held: boolean;
  unhealthy: boolean;
}

const machineSchema = z.object({
  metadata: z.object({ name: z.string(), uid: z.string(), deletionTimestamp: z.string().optional() }),
  status: z.object({ nodeRef: z.object({ name: z.string() }).optional() }).default({}),
});

export interface ObservedMachine {
  name: string;
  uid: string;
  deleting: boolean;
  node: string | undefined;
}

const remediationSchema = z.object({
  metadata: z.object({ name: z.string(), uid: z.string() }),
  status: z.object({ phase: z.string().optional(), retryCount: z.number().optional(), conditions: z.array(condition).default([]) }).default({ conditions: [] }),
});

export interface ObservedRemediation {
  /** Name of its Machine as well. */
  name: string;
  phase: string | undefined;
  retries: number;
  conditions: ObservedCondition[];
}

export class Observer {
  readonly #bed: Bed;

  constructor(bed: Bed) {
    this.#bed = bed;
  }

  async nodes(): Promise<ObservedNode[]> {
    const { items } = await this.#bed.workload.cluster.list(nodes);
    return items
      .map((item) => nodeSchema.parse(item))
      .map(({ metadata, spec, status }) => ({
        name: metadata.name,
        uid: metadata.uid,
        ready: status.conditions.some(({ type, status: value }) => type === "Ready" && value === "True"),
        bootID: status.nodeInfo.bootID,
        taints: spec.taints.map(({ key }) => key),
        labels: metadata.labels,
      }));
  }

  async readyNodes(): Promise<string[]> {
    return (await this.nodes())
      .filter(({ ready }) => ready)
      .map(({ name }) => name)
      .sort();
  }

  async inventories(): Promise<ObservedInventory[]> {
    const items = await this.#list(machineInventories);
    return items.map(({ metadata: { name, uid, annotations = {} } }) => ({
      name,
      uid,
      state: annotations[allocationAnnotations.state],
      pool: annotations[allocationAnnotations.pool],
      owner: annotations[allocationAnnotations.ownerName],
      held: annotations[POWER_HOLD_ANNOTATION] !== undefined,
      unhealthy: annotations[UNHEALTHY_ANNOTATION] !== undefined,
    }));
  }

  async inventory(name: string): Promise<ObservedInventory> {
    const found = (await this.inventories()).find((inventory) => inventory.name === name);
    if (found === undefined) throw new Error(`there is no MachineInventory ${name}`);
    return found;
  }

  async machines(): Promise<ObservedMachine[]> {
    const items = await this.#list(machines, `${capiLabels.clusterName}=${this.#bed.clusterName}`);
    return items
      .map((item) => machineSchema.parse(item))
      .map(({ metadata, status }) => ({
        name: metadata.name,
        uid: metadata.uid,
        deleting: metadata.deletionTimestamp !== undefined,
        node: status.nodeRef?.name,
      }));
  }

  /** The Machine behind a Node. */
  async machineOf(node: string): Promise<ObservedMachine> {
    const found = (await this.machines()).find((machine) => machine.node === node);
    if (found === undefined) throw new Error(`no Machine has the Node ${node}`);
    return found;
  }

  async remediations(): Promise<ObservedRemediation[]> {
    const items = await this.#list(metal3Remediations);
    return items
      .map((item) => remediationSchema.parse(item))
      .map(({ metadata, status }) => ({ name: metadata.name, phase: status.phase, retries: status.retryCount ?? 0, conditions: status.conditions }));
  }

  async machineDeployments(): Promise<LiveObject[]> {
    return this.#list(machineDeployments);
  }

  async machineSets(): Promise<LiveObject[]> {
    return this.#list(machineSets);
  }

  /** Objects of one kind in the bed's namespace; none where the kind is not served. */
  async objects(kind: ResourceKind): Promise<LiveObject[]> {
    return this.#list(kind);
  }

  async #list(kind: ResourceKind, labelSelector?: string): Promise<LiveObject[]> {
    try {
      const { items } = await this.#bed.management.cluster.list(kind, {
        namespace: this.#bed.namespace,
        ...(labelSelector === undefined ? {} : { labelSelector }),
      });
      return items;
    } catch (error) {
      if (isClusterError(error, "kindNotServed")) return [];
      throw error;
    }
  }
}
