/** Groups as they are observed, for tests of what is made of them. */
import type { MachineDeploymentView } from "../../../provider/capi/machine-deployment.ts";
import type { GroupMachine } from "../../../provider/resources/worker-group/observe.ts";

export function machine(name: string, host?: string, change: Partial<GroupMachine> = {}): GroupMachine {
  return {
    name,
    uid: `uid-${name}`,
    setName: "set",
    deleting: false,
    phase: "Running",
    version: "v1.37.2",
    nodeName: `node-${name}`,
    infrastructure: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "BaremetalMachine", name },
    conditions: [],
    ready: true,
    on: host === undefined ? undefined : { name, phase: "Running", host, deleting: false, takenUp: true, conditions: [] },
    ...change,
  };
}

export function deployment(replicas: number): MachineDeploymentView {
  return {
    name: "edge-workers",
    labels: {},
    annotations: {},
    deleting: false,
    clusterName: "edge",
    replicas,
    version: "v1.37.2",
    maxSurge: 0,
    maxUnavailable: 1,
    nodeDrainSeconds: 300,
    nodeVolumeDetachSeconds: 300,
    machineLabels: {},
    bootstrap: { apiGroup: "bootstrap.cluster.x-k8s.io", kind: "KubeadmConfigTemplate", name: "b" },
    infrastructure: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "BaremetalMachineTemplate", name: "i" },
    observed: true,
    availableReplicas: replicas,
    updatedReplicas: replicas,
    conditions: [],
  };
}
