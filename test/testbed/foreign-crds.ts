/** CRDs that other projects bring to a real cluster, as small as the bed can do with. */
import type { KubernetesObject, ResourceKind } from "../../provider/cluster/objects.ts";
import { machineInventories } from "../../provider/hosts/kinds.ts";

/** Stands for the control plane of the workload cluster, which no Machine runs. */
export const simControlPlanes: ResourceKind = {
  group: "controlplane.cluster.x-k8s.io",
  version: "v1beta2",
  plural: "simcontrolplanes",
  kind: "SimControlPlane",
  namespaced: true,
};

/** Stands for the infrastructure of the workload cluster as a whole: whatever had been used to make its control plane. */
export const simClusters: ResourceKind = {
  group: "infrastructure.cluster.x-k8s.io",
  version: "v1beta2",
  plural: "simclusters",
  kind: "SimCluster",
  namespaced: true,
};

interface PrinterColumn {
  name: string;
  type: string;
  jsonPath: string;
}

/** Anything goes in spec and status. `contract` is the Cluster API contract that the kind follows, if any. */
export function minimalCrd(kind: ResourceKind, contract?: "v1beta1" | "v1beta2", columns: readonly PrinterColumn[] = []): KubernetesObject {
  const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${kind.plural}.${kind.group}`,
      // Cluster API's references name no version: this label says which one follows which contract.
      ...(contract === undefined ? {} : { labels: { [`cluster.x-k8s.io/${contract}`]: kind.version } }),
    },
    spec: {
      group: kind.group,
      scope: "Namespaced",
      names: { kind: kind.kind, listKind: `${kind.kind}List`, plural: kind.plural, singular: kind.kind.toLowerCase() },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          schema: { openAPIV3Schema: { type: "object", properties: { spec: open, status: open } } },
          subresources: { status: {} },
          ...(columns.length === 0 ? {} : { additionalPrinterColumns: columns }),
        },
      ],
    },
  };
}

export const foreignCrds: readonly KubernetesObject[] = [
  minimalCrd(machineInventories, undefined, [{ name: "State", type: "string", jsonPath: ".metadata.annotations.baremetal\\.alauda\\.io/allocation-state" }]),
  minimalCrd(simControlPlanes, "v1beta2"),
  minimalCrd(simClusters, "v1beta2"),
];
