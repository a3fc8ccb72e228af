/** The kinds that stand for hosts and for what Cluster API sees of them. */
import type { ResourceKind } from "../cluster/objects.ts";

function infrastructure(plural: string, kind: string): ResourceKind {
  return { group: "infrastructure.cluster.x-k8s.io", version: "v1beta1", plural, kind, namespaced: true };
}

export const machineInventories: ResourceKind = {
  group: "elemental.cattle.io",
  version: "v1beta1",
  plural: "machineinventories",
  kind: "MachineInventory",
  namespaced: true,
};
export const machineInventoryPools = infrastructure("machineinventorypools", "MachineInventoryPool");
export const baremetalMachines = infrastructure("baremetalmachines", "BaremetalMachine");
export const baremetalMachineTemplates = infrastructure("baremetalmachinetemplates", "BaremetalMachineTemplate");
export const baremetalClusters = infrastructure("baremetalclusters", "BaremetalCluster");
export const bareMetalHosts: ResourceKind = { group: "metal3.io", version: "v1alpha1", plural: "baremetalhosts", kind: "BareMetalHost", namespaced: true };
