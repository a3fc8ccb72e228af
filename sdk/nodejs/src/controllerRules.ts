/** What the controller's ServiceAccount may do: nothing that it does not need, and only in the namespaces of its groups. */

/** One rule of a Kubernetes Role. */
export interface PolicyRule {
  apiGroups: string[];
  resources: string[];
  verbs: string[];
  resourceNames?: string[];
}

/** Which control loops a controller runs. */
export type ControllerName = "remediation" | "inventory";

const READ = ["get", "list", "watch"];

function rule(group: string, resources: string[], verbs: string[]): PolicyRule {
  return { apiGroups: [group], resources, verbs };
}

const CAPI = "cluster.x-k8s.io";
const INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io";
const ELEMENTAL = "elemental.cattle.io";

const events = rule("", ["events"], ["create", "patch"]);

const remediationRules: PolicyRule[] = [
  rule(CAPI, ["clusters"], READ),
  rule(CAPI, ["machines"], [...READ, "patch"]),
  rule(CAPI, ["machines/status"], ["patch"]),
  rule(INFRASTRUCTURE, ["metal3remediations", "hostremediations"], [...READ, "patch"]),
  rule(INFRASTRUCTURE, ["metal3remediations/status", "hostremediations/status"], ["update"]),
  rule(INFRASTRUCTURE, ["baremetalmachines"], READ),
  rule(ELEMENTAL, ["machineinventories"], [...READ, "patch"]),
  // No list and no watch: whoever could list would hold every credential of the namespace.
  rule("", ["secrets"], ["get"]),
  events,
];

const inventoryRules: PolicyRule[] = [
  rule(CAPI, ["clusters", "machines"], READ),
  rule(INFRASTRUCTURE, ["machineinventorypools"], READ),
  rule(INFRASTRUCTURE, ["baremetalmachines"], [...READ, "patch"]),
  rule(INFRASTRUCTURE, ["machineinventorypools/status", "baremetalmachines/status"], ["patch"]),
  rule(ELEMENTAL, ["machineinventories"], [...READ, "patch"]),
  rule("", ["secrets"], ["get", "patch"]),
  events,
];

const rules: Record<ControllerName, PolicyRule[]> = { remediation: remediationRules, inventory: inventoryRules };

/** Rules of the Role in each namespace that holds groups; those of several controllers are joined. */
export function groupNamespaceRules(controllers: readonly ControllerName[]): PolicyRule[] {
  const verbs = new Map<string, Set<string>>();
  for (const { apiGroups, resources, verbs: allowed } of controllers.flatMap((controller) => rules[controller])) {
    for (const group of apiGroups) {
      for (const resource of resources) {
        const key = `${group}/${resource}`;
        verbs.set(key, new Set([...(verbs.get(key) ?? []), ...allowed]));
      }
    }
  }
  return [...verbs].map(([key, allowed]) => {
    const slash = key.indexOf("/");
    return rule(key.slice(0, slash), [key.slice(slash + 1)], [...allowed].sort());
  });
}

/** Rules of the Role in the controller's own namespace: who leads, and its settings. */
export function ownNamespaceRules(settingsName: string, leaseName: string): PolicyRule[] {
  return [
    // A create cannot be limited to a name.
    rule("coordination.k8s.io", ["leases"], ["create"]),
    { ...rule("coordination.k8s.io", ["leases"], ["get", "update"]), resourceNames: [leaseName] },
    { ...rule("", ["configmaps"], ["get"]), resourceNames: [settingsName] },
  ];
}

/** Rules for the whole cluster: whose a kind is stands on its definition. */
export const clusterRules: PolicyRule[] = [rule("apiextensions.k8s.io", ["customresourcedefinitions"], ["get"])];
