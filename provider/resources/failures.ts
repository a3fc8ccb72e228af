/** What a failed request means to the person who runs Pulumi: what is wrong, and what to do. */
import type { Cluster } from "../cluster/cluster.ts";
import { isClusterError } from "../cluster/errors.ts";
import type { ResourceKind } from "../cluster/objects.ts";
import { qualifiedName } from "../cluster/objects.ts";

const INFRASTRUCTURE_KINDS = new Set(["machineinventorypools", "baremetalmachines", "baremetalmachinetemplates", "baremetalclusters"]);

function bringer(kind: ResourceKind): string {
  if (kind.group === "cluster.x-k8s.io") return "Cluster API brings it: install its core provider (clusterctl init) first";
  if (kind.group === "bootstrap.cluster.x-k8s.io")
    return "Cluster API's kubeadm bootstrap provider brings it: install it (clusterctl init --bootstrap kubeadm) first";
  if (kind.group === "elemental.cattle.io") return "the Elemental operator brings it: install it and register the hosts first";
  if (INFRASTRUCTURE_KINDS.has(kind.plural)) {
    return 'RemediationController brings it: add one with controllers: ["remediation", "inventory"], and let this resource depend on it';
  }
  if (kind.plural.includes("remediation")) return "RemediationController brings it: add one, and let this resource depend on it";
  return "install the provider that brings it first";
}

/** The cluster does not serve a kind that is needed. */
export class MissingKindError extends Error {
  override readonly name = "MissingKindError";

  constructor(kind: ResourceKind) {
    super(missingKind(kind));
  }
}

export function missingKind(kind: ResourceKind): string {
  return `the management cluster does not know ${qualifiedName(kind)} (its CustomResourceDefinition is missing); ${bringer(kind)}`;
}

/** Whether the cluster serves the kind in exactly this version. */
export async function serves(cluster: Cluster, kind: ResourceKind): Promise<boolean> {
  return (await cluster.discover(kind.group)).some(({ plural, version }) => plural === kind.plural && version === kind.version);
}

/** Does the request, and names the kind where the cluster lacks it. */
export async function onKind<T>(kind: ResourceKind, request: Promise<T>): Promise<T> {
  try {
    return await request;
  } catch (error) {
    throw isClusterError(error, "kindNotServed") ? new MissingKindError(kind) : error;
  }
}

export function explain(error: unknown, server?: string): string {
  const text = error instanceof Error ? error.message : String(error);
  if (!isClusterError(error)) return text;
  const at = server === undefined ? "the management cluster" : `the management cluster ${server}`;
  const { kind, request, fields } = error;
  if (kind === "unreachable" || kind === "timeout") {
    return `${at} does not answer: ${text}; check the kubeconfig (baremetal:kubeconfig, else KUBECONFIG) and the way to it`;
  }
  if (kind === "unauthorized") return `${at} refuses the credentials of the kubeconfig (${text}); renew them`;
  if (kind === "forbidden") return `${at} does not permit ${request}: ${text}; grant this to the kubeconfig's user`;
  // Without an answer it was not the cluster that refused: the kubeconfig cannot be used.
  if (kind === "invalid") return error.status === undefined ? text : `${at} refuses ${request}: ${text}`;
  if (kind !== "fieldConflict") return `${request}: ${text}`;
  const which = fields.length === 0 ? "" : ` (${fields.join(", ")})`;
  return `another client has set fields that this resource sets${which}: ${text}; run "pulumi refresh" and read the next preview, which then takes them back; or give them the same values there; or set adopt: true to take them over unseen`;
}
