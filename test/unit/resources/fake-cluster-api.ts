/** Cluster API and an inventory controller, as far as a group can see them, in steps of a second on a cluster in memory. */
import { z } from "zod";

import { capiLabels, clusters, kubeadmConfigTemplates, machineDeployments, machineHealthChecks, machines, machineSets } from "../../../provider/capi/kinds.ts";
import { readMachineDeployment } from "../../../provider/capi/machine-deployment.ts";
import { configMaps, secrets } from "../../../provider/cluster/kinds.ts";
import type { LiveObject, ResourceKind } from "../../../provider/cluster/objects.ts";
import { baremetalMachines, baremetalMachineTemplates, machineInventories, machineInventoryPools } from "../../../provider/hosts/kinds.ts";
import { allocationAnnotations } from "../../../provider/hosts/names.ts";
import { metal3Remediations, metal3RemediationTemplates } from "../../../provider/capi/kinds.ts";
import { FakeCluster } from "../fakes/fake-cluster.ts";

export const NAMESPACE = "cpaas-system";

export const allKinds: ResourceKind[] = [
  clusters,
  machineDeployments,
  machineSets,
  machines,
  machineHealthChecks,
  kubeadmConfigTemplates,
  machineInventories,
  machineInventoryPools,
  baremetalMachines,
  baremetalMachineTemplates,
  metal3Remediations,
  metal3RemediationTemplates,
  secrets,
  configMaps,
];

export function fakeManagement(): FakeCluster {
  const cluster = new FakeCluster({ kinds: allKinds });
  cluster.seed(clusters, { metadata: { name: "edge", namespace: NAMESPACE }, spec: {} });
  return cluster;
}

export function seedInventory(cluster: FakeCluster, name: string, annotations: Record<string, string> = {}): LiveObject {
  return cluster.seed(machineInventories, {
    metadata: { name, namespace: NAMESPACE, annotations },
    spec: {},
    status: { conditions: [{ type: "Ready", status: "True" }] },
  });
}

const template = z.object({
  spec: z.object({ template: z.object({ spec: z.object({ version: z.string(), bootstrap: z.unknown(), infrastructureRef: z.unknown() }) }) }),
});

export class FakeClusterApi {
  readonly #cluster: FakeCluster;
  #serial = 0;
  /** Off: BaremetalMachines are never taken up. */
  inventoryController = true;

  constructor(cluster: FakeCluster) {
    this.#cluster = cluster;
  }

  /** One second of the controllers' life. */
  step(): void {
    for (const live of this.#cluster.all(machineDeployments)) this.#deployment(live);
    for (const machine of this.#cluster.all(machines)) this.#machine(machine);
  }

  #of(kind: ResourceKind, deployment: string): LiveObject[] {
    return this.#cluster.all(kind).filter(({ metadata }) => metadata.labels?.[capiLabels.deploymentName] === deployment);
  }

  #deployment(live: LiveObject): void {
    const name = live.metadata.name;
    const view = readMachineDeployment(live);
    const { spec } = template.parse(live);
    const setName = `${name}-${view.infrastructure.name.slice(-4)}-${view.bootstrap?.name.slice(-4) ?? ""}-${view.version ?? ""}`;
    const labels = { [capiLabels.deploymentName]: name, [capiLabels.clusterName]: view.clusterName };
    if (this.#cluster.peek(machineSets, `${NAMESPACE}/${setName}`) === undefined) {
      this.#cluster.seed(machineSets, { metadata: { name: setName, namespace: NAMESPACE, labels }, spec: { replicas: 0, template: spec.template } });
    }
    const members = this.#of(machines, name);
    const current = members.filter(({ metadata }) => metadata.labels?.[capiLabels.setName] === setName);
    const old = members.filter((machine) => !current.includes(machine));
    const allReady = current.every((machine) => this.#isReady(machine));
    if (members.length < view.replicas) this.#create(setName, labels, spec.template.spec);
    else if (members.length > view.replicas) this.#remove(this.#firstToGo(members));
    else if (old[0] !== undefined && allReady) this.#remove(old[0]);
    for (const set of this.#of(machineSets, name)) {
      if (set.metadata.name !== setName && !this.#of(machines, name).some(({ metadata }) => metadata.labels?.[capiLabels.setName] === set.metadata.name)) {
        this.#cluster.remove(machineSets, `${NAMESPACE}/${set.metadata.name}`);
      }
    }
    const now = this.#of(machines, name);
    this.#cluster.edit(machineDeployments, `${NAMESPACE}/${name}`, (deployment) => {
      deployment["status"] = {
        observedGeneration: deployment.metadata.generation,
        availableReplicas: now.filter((machine) => this.#isReady(machine)).length,
        deprecated: { v1beta1: { updatedReplicas: now.filter(({ metadata }) => metadata.labels?.[capiLabels.setName] === setName).length } },
      };
    });
  }

  #firstToGo(members: LiveObject[]): LiveObject {
    const marked = members.find(({ metadata }) => metadata.annotations?.["cluster.x-k8s.io/delete-machine"] !== undefined) ?? members[0];
    if (marked === undefined) throw new Error("there is no machine to remove");
    return marked;
  }

  #create(setName: string, labels: Record<string, string>, spec: { version: string; bootstrap: unknown; infrastructureRef: unknown }): void {
    const name = `m${++this.#serial}`;
    const infrastructure = z.object({ name: z.string() }).parse(spec.infrastructureRef);
    this.#cluster.seed(machines, {
      metadata: { name, namespace: NAMESPACE, labels: { ...labels, [capiLabels.setName]: setName } },
      spec: { ...spec, infrastructureRef: { apiGroup: baremetalMachines.group, kind: baremetalMachines.kind, name } },
      status: { phase: "Pending" },
    });
    this.#cluster.seed(baremetalMachines, {
      metadata: { name, namespace: NAMESPACE, labels, annotations: { "cluster.x-k8s.io/cloned-from-name": infrastructure.name } },
      spec: {},
    });
  }

  /** Pending → Allocated → Running, one step a second; the Node is there at once. */
  #machine(machine: LiveObject): void {
    const { name } = machine.metadata;
    const key = `${NAMESPACE}/${name}`;
    const on = this.#cluster.peek(baremetalMachines, key);
    if (!this.inventoryController || on === undefined) return;
    const { status } = z.object({ status: z.object({ phase: z.string().optional() }).optional() }).parse(on);
    if (status?.phase === undefined) {
      const pool = this.#poolOf(on.metadata.annotations?.["cluster.x-k8s.io/cloned-from-name"] ?? "");
      const free = pool.find(
        (inventory) =>
          this.#cluster.peek(machineInventories, `${NAMESPACE}/${inventory}`)?.metadata.annotations?.[allocationAnnotations.ownerUid] === undefined,
      );
      this.#cluster.edit(baremetalMachines, key, (object) => {
        object["status"] = free === undefined ? {} : { phase: "Reprovisioning", machineInventoryRef: { name: free } };
        object.metadata.finalizers = ["inventory"];
      });
      if (free === undefined) return;
      this.#cluster.edit(machineInventories, `${NAMESPACE}/${free}`, (object) => {
        object.metadata.annotations = {
          ...object.metadata.annotations,
          [allocationAnnotations.state]: "Allocated",
          [allocationAnnotations.ownerName]: name,
          [allocationAnnotations.ownerUid]: machine.metadata.uid,
          [allocationAnnotations.ownerKind]: "Machine",
        };
      });
    } else if (status.phase === "Reprovisioning") {
      this.#cluster.edit(baremetalMachines, key, (object) => {
        object["status"] = { ...z.record(z.string(), z.unknown()).parse(object["status"]), phase: "Running" };
      });
      this.#cluster.edit(machines, key, (object) => {
        object["status"] = { phase: "Running", nodeRef: { name: `node-${name}` }, conditions: [{ type: "Ready", status: "True" }] };
      });
    }
  }

  #poolOf(templateName: string): string[] {
    const live = this.#cluster.peek(baremetalMachineTemplates, `${NAMESPACE}/${templateName}`);
    const { spec } = z
      .object({ spec: z.object({ template: z.object({ spec: z.object({ machineInventoryPoolRef: z.object({ name: z.string() }) }) }) }) })
      .parse(live);
    const pool = this.#cluster.peek(machineInventoryPools, `${NAMESPACE}/${spec.template.spec.machineInventoryPoolRef.name}`);
    return z
      .object({ spec: z.object({ machineInventories: z.array(z.object({ name: z.string() })) }) })
      .parse(pool)
      .spec.machineInventories.map(({ name }) => name);
  }

  #isReady(machine: LiveObject): boolean {
    return z.object({ status: z.object({ nodeRef: z.unknown().optional() }) }).parse(machine).status.nodeRef !== undefined;
  }

  #remove(machine: LiveObject): void {
    const key = `${NAMESPACE}/${machine.metadata.name}`;
    this.#cluster.remove(machines, key);
    this.#cluster.remove(baremetalMachines, key);
    for (const inventory of this.#cluster.all(machineInventories)) {
      if (inventory.metadata.annotations?.[allocationAnnotations.ownerUid] !== machine.metadata.uid) continue;
      this.#cluster.edit(machineInventories, `${NAMESPACE}/${inventory.metadata.name}`, (object) => {
        const kept = Object.entries(object.metadata.annotations ?? {}).filter(([key]) => !key.startsWith("baremetal.alauda.io/owner-"));
        object.metadata.annotations = { ...Object.fromEntries(kept), [allocationAnnotations.state]: "Available" };
      });
    }
  }

  /** What garbage collection and the controllers do once the MachineDeployment is gone: one machine a step. */
  stepOfRemoval(): void {
    if (this.#cluster.all(machineDeployments).length > 0) return;
    for (const set of this.#cluster.all(machineSets)) this.#cluster.remove(machineSets, `${NAMESPACE}/${set.metadata.name}`);
    const [first] = this.#cluster.all(machines);
    if (first !== undefined) this.#remove(first);
  }
}
