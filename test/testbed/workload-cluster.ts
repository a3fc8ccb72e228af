/** What makes the second API server a workload cluster of Cluster API: objects in the management cluster, and what `kubeadm init` leaves behind. */
import { z } from "zod";

import { clusters } from "../../provider/capi/kinds.ts";
import type { ClusterClient } from "../../provider/cluster/client.ts";
import { isClusterError } from "../../provider/cluster/errors.ts";
import { configMaps, namespaces, secrets } from "../../provider/cluster/kinds.ts";
import { apiVersionOf } from "../../provider/cluster/objects.ts";
import type { KubernetesObject, ResourceKind } from "../../provider/cluster/objects.ts";
import type { KeyPair } from "./certificates.ts";
import { BED_USER } from "./control-plane.ts";
import { simClusters, simControlPlanes } from "./foreign-crds.ts";
import { kubeconfigOf } from "./kubeconfig.ts";
import { retryTransient } from "./retry.ts";
import { until } from "./wait.ts";

export interface WorkloadCluster {
  /** Name of the Cluster and namespace of it and all that belongs to it. */
  name: string;
  namespace: string;
  /** Kubernetes version that the control plane claims, `v1.37.2`. */
  version: string;
  /** Address of the workload API server as Cluster API, controllers and hosts reach it. */
  server: string;
  /** The administrator's kubeconfig for that address. */
  kubeconfig: string;
  authority: KeyPair;
}

const rbac = (plural: string, kind: string, namespaced: boolean): ResourceKind => ({
  group: "rbac.authorization.k8s.io",
  version: "v1",
  plural,
  kind,
  namespaced,
});
const roles = rbac("roles", "Role", true);
const roleBindings = rbac("rolebindings", "RoleBinding", true);
const clusterRoleBindings = rbac("clusterrolebindings", "ClusterRoleBinding", false);

const BOOTSTRAPPERS = "system:bootstrappers:kubeadm:default-node-token";
const CLUSTER_INFO_READER = "kubeadm:bootstrap-signer-clusterinfo";

function apply(client: ClusterClient, kind: ResourceKind, metadata: KubernetesObject["metadata"], rest: object): Promise<unknown> {
  const object = { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, ...rest };
  // A namespace of the API server's own may be on its way still.
  return retryTransient(
    async () => client.apply(kind, object, { fieldManager: BED_USER }),
    (error) => isClusterError(error, "notFound"),
  );
}

function bootstrapperBinding(client: ClusterClient, name: string, clusterRole: string): Promise<unknown> {
  return apply(
    client,
    clusterRoleBindings,
    { name },
    {
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: clusterRole },
      subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "Group", name: BOOTSTRAPPERS }],
    },
  );
}

/** What a host needs to join with a bootstrap token. */
export async function leaveKubeadmObjects(client: ClusterClient, cluster: Pick<WorkloadCluster, "server" | "authority">): Promise<void> {
  const clusterInfo = kubeconfigOf({ server: cluster.server, certificateAuthority: cluster.authority.certificate });
  await Promise.all([
    apply(client, configMaps, { name: "cluster-info", namespace: "kube-public" }, { data: { kubeconfig: clusterInfo } }),
    apply(
      client,
      roles,
      { name: CLUSTER_INFO_READER, namespace: "kube-public" },
      {
        rules: [{ apiGroups: [""], resources: ["configmaps"], resourceNames: ["cluster-info"], verbs: ["get"] }],
      },
    ),
    apply(
      client,
      roleBindings,
      { name: CLUSTER_INFO_READER, namespace: "kube-public" },
      {
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: CLUSTER_INFO_READER },
        subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: "system:anonymous" }],
      },
    ),
    bootstrapperBinding(client, "kubeadm:kubelet-bootstrap", "system:node-bootstrapper"),
    bootstrapperBinding(client, "kubeadm:node-autoapprove-bootstrap", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"),
  ]);
}

function clusterSecret(cluster: WorkloadCluster, purpose: string, data: Record<string, string>): [KubernetesObject["metadata"], object] {
  return [
    { name: `${cluster.name}-${purpose}`, namespace: cluster.namespace, labels: { "cluster.x-k8s.io/cluster-name": cluster.name } },
    { type: "cluster.x-k8s.io/secret", data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")])) },
  ];
}

const clusterStatus = z.looseObject({ phase: z.string().optional() }).optional();

/** Secrets first, so that Cluster API connects at its first attempt; returns once the Cluster is Provisioned. */
export async function createCluster(client: ClusterClient, cluster: WorkloadCluster): Promise<void> {
  const { name, namespace, version, server } = cluster;
  const endpoint = { host: new URL(server).hostname, port: Number(new URL(server).port) };
  const key = { name, namespace };
  await apply(client, namespaces, { name: namespace }, {});
  await Promise.all([
    apply(client, secrets, ...clusterSecret(cluster, "kubeconfig", { value: cluster.kubeconfig })),
    apply(client, secrets, ...clusterSecret(cluster, "ca", { "tls.crt": cluster.authority.certificate, "tls.key": cluster.authority.key })),
    apply(client, simControlPlanes, key, { spec: { version } }),
    apply(client, simClusters, key, { spec: { controlPlaneEndpoint: endpoint } }),
  ]);
  await Promise.all([
    client.patch(
      simControlPlanes,
      key,
      "merge",
      {
        status: {
          initialization: { controlPlaneInitialized: true },
          // Without it Cluster API neither drains nor deletes the Node of a deleted Machine.
          externalManagedControlPlane: true,
          version,
          versions: [{ version, replicas: 1 }],
          conditions: [{ type: "Available", status: "True", reason: "Simulated", message: "", lastTransitionTime: new Date().toISOString() }],
        },
      },
      { subresource: "status" },
    ),
    client.patch(
      simClusters,
      key,
      "merge",
      {
        status: {
          initialization: { provisioned: true },
          conditions: [{ type: "Ready", status: "True", reason: "Simulated", message: "", lastTransitionTime: new Date().toISOString() }],
        },
      },
      { subresource: "status" },
    ),
  ]);
  await apply(client, clusters, key, {
    spec: {
      clusterNetwork: { services: { cidrBlocks: ["10.0.0.0/24"] }, pods: { cidrBlocks: ["10.244.0.0/16"] } },
      controlPlaneEndpoint: endpoint,
      infrastructureRef: { apiGroup: simClusters.group, kind: simClusters.kind, name },
      controlPlaneRef: { apiGroup: simControlPlanes.group, kind: simControlPlanes.kind, name },
    },
  });
  await until(`Cluster ${name} to be Provisioned`, async () => clusterStatus.parse((await client.get(clusters, key))["status"])?.phase === "Provisioned", {
    timeoutMs: 60_000,
  });
}
