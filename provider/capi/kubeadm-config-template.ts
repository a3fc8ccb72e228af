/** KubeadmConfigTemplate of a worker, in the shape of each bootstrap version. */
import type { KubernetesObject, ObjectMeta } from "../cluster/objects.ts";
import { apiVersionOf } from "../cluster/objects.ts";
import type { CapiVersion } from "./kinds.ts";
import { inVersion, kubeadmConfigTemplates } from "./kinds.ts";

export interface KubeadmConfigModel {
  joinConfiguration?: {
    nodeRegistration?: { kubeletExtraArgs?: Record<string, string> | undefined; [field: string]: unknown } | undefined;
    [field: string]: unknown;
  };
  [field: string]: unknown;
}

/** The newer version refuses empty lists and objects where it means "unset". */
function pruned(value: unknown): unknown {
  if (Array.isArray(value)) {
    const items: unknown[] = value;
    return items.length === 0 ? undefined : items.map((item) => pruned(item) ?? item);
  }
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).flatMap(([key, item]) => {
    const kept = pruned(item);
    return kept === undefined ? [] : [[key, kept] as const];
  });
  return entries.length === 0 ? undefined : Object.fromEntries<unknown>(entries);
}

function inShape(model: KubeadmConfigModel, version: CapiVersion): Record<string, unknown> {
  const registration = model.joinConfiguration?.nodeRegistration;
  if (version === "v1beta1" || registration?.kubeletExtraArgs === undefined) return model;
  const kubeletExtraArgs = Object.entries(registration.kubeletExtraArgs).map(([name, value]) => ({ name, value }));
  return { ...model, joinConfiguration: { ...model.joinConfiguration, nodeRegistration: { ...registration, kubeletExtraArgs } } };
}

/** Empty where a worker needs nothing of its own. */
export function renderKubeadmConfigTemplate(metadata: ObjectMeta, model: KubeadmConfigModel, version: CapiVersion): KubernetesObject {
  const config: unknown = pruned(inShape(model, version)) ?? {};
  return {
    apiVersion: apiVersionOf(inVersion(kubeadmConfigTemplates, version)),
    kind: kubeadmConfigTemplates.kind,
    metadata,
    spec: { template: { spec: config } },
  };
}
