/** Kinds of Kubernetes itself that the project reads or writes. */
import type { ResourceKind } from "./objects.ts";

function kind(group: string, version: string, plural: string, name: string, namespaced = true): ResourceKind {
  return { group, version, plural, kind: name, namespaced };
}

export const namespaces = kind("", "v1", "namespaces", "Namespace", false);
export const secrets = kind("", "v1", "secrets", "Secret");
export const configMaps = kind("", "v1", "configmaps", "ConfigMap");
export const serviceAccounts = kind("", "v1", "serviceaccounts", "ServiceAccount");
export const pods = kind("", "v1", "pods", "Pod");
export const nodes = kind("", "v1", "nodes", "Node", false);
export const events = kind("", "v1", "events", "Event");
export const deployments = kind("apps", "v1", "deployments", "Deployment");
export const leases = kind("coordination.k8s.io", "v1", "leases", "Lease");
export const volumeAttachments = kind("storage.k8s.io", "v1", "volumeattachments", "VolumeAttachment", false);
export const customResourceDefinitions = kind("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", false);
export const certificateSigningRequests = kind("certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest", false);
