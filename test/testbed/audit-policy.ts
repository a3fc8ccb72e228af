/** What the API servers write into their audit logs: every request of a client, the bodies of writes, never a Secret or token. */

const EVERYWHERE = "";

export const auditPolicy = {
  apiVersion: "audit.k8s.io/v1",
  kind: "Policy",
  omitStages: ["RequestReceived"],
  omitManagedFields: true,
  rules: [
    { level: "None", users: ["system:apiserver"] },
    { level: "None", nonResourceURLs: ["/healthz*", "/livez*", "/readyz*"] },
    {
      level: "Metadata",
      resources: [
        { group: EVERYWHERE, resources: ["secrets", "serviceaccounts/token"] },
        { group: "authentication.k8s.io", resources: ["tokenreviews"] },
        // Large, and of no interest to any test.
        { group: "apiextensions.k8s.io", resources: ["customresourcedefinitions"] },
      ],
    },
    // The bootstrap tokens travel in these.
    { level: "Metadata", resources: [{ group: "bootstrap.cluster.x-k8s.io", resources: ["kubeadmconfigs", "kubeadmconfigs/status"] }] },
    { level: "Request", verbs: ["create", "update", "patch", "delete", "deletecollection"] },
    { level: "Metadata" },
  ],
};
