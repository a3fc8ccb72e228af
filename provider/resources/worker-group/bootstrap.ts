/** What a user's kubeadm bootstrap must not hold, and what is filled in before it becomes a template. */
import type { KubeadmConfigModel } from "../../capi/kubeadm-config-template.ts";
import { propertyPath } from "../inputs.ts";
import type { CheckFailure } from "../lifecycle.ts";
import type { KubeadmBootstrap, KubeadmFile } from "./kubeadm.ts";

const PATCH_DIRECTORY = "/etc/kubernetes/patches";
const PATCH_FILE = "kubeletconfiguration0+strategic.json";
const PULL_POLICY = "imagePullCredentialsVerificationPolicy";
/** Kubernetes minor that knows the setting by default. */
const PULL_POLICY_SINCE = 35;

const FILLED_ARGUMENTS: Record<string, string> = {
  "provider-id": "provider-id is filled in for each host (baremetal:///<inventory>); remove it",
  "hostname-override": "the host name is filled in from the pool's `hostname`; remove it, and set `hostname` in the pool where the name matters",
};

function path(...keys: PropertyKey[]): string {
  return propertyPath(["bootstrap", "kubeadm", ...keys]);
}

function hasPullPolicy(version: string): boolean {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number);
  return major > 1 || (major === 1 && minor >= PULL_POLICY_SINCE);
}

function patchPath(kubeadm: KubeadmBootstrap): string {
  return `${(kubeadm.joinConfiguration?.patches?.directory ?? PATCH_DIRECTORY).replace(/\/+$/, "")}/${PATCH_FILE}`;
}

/** The user's kubelet patch as an object, or undefined where it is none. */
function patchOf(file: KubeadmFile): Record<string, unknown> | undefined {
  if (file.content === undefined || file.encoding !== undefined || file.append === true) return undefined;
  try {
    const parsed: unknown = JSON.parse(file.content);
    return typeof parsed === "object" && parsed !== null && !Array.isArray(parsed) ? { ...parsed } : undefined;
  } catch {
    return undefined;
  }
}

function refusedFiles(kubeadm: KubeadmBootstrap, version: string | undefined): CheckFailure[] {
  return (kubeadm.files ?? []).flatMap((file, index): CheckFailure[] => {
    if (file.path === "/etc/hostname")
      return [{ property: path("files", index, "path"), reason: "the host name is filled in from the pool's `hostname`; remove this file" }];
    if ((file.content === undefined) === (file.contentFrom === undefined))
      return [{ property: path("files", index), reason: "must have exactly one of `content` and `contentFrom`" }];
    if (file.path !== patchPath(kubeadm) || version === undefined) return [];
    const patch = patchOf(file);
    if (hasPullPolicy(version) && patch === undefined) {
      return [
        {
          property: path("files", index, "content"),
          reason: `must be plain JSON, as ${PULL_POLICY} is added to it from Kubernetes 1.${PULL_POLICY_SINCE} on; give this patch another file name, or write it as JSON in \`content\``,
        },
      ];
    }
    if (!hasPullPolicy(version) && patch !== undefined && PULL_POLICY in patch) {
      return [
        {
          property: path("files", index, "content"),
          reason: `${PULL_POLICY} is not known before Kubernetes 1.${PULL_POLICY_SINCE}; remove it, it is added by itself from then on`,
        },
      ];
    }
    return [];
  });
}

/** Fields that are filled in for each host, and what would break by it. `version` is absent where it is not known yet. */
export function refusedFields(kubeadm: KubeadmBootstrap, version: string | undefined): CheckFailure[] {
  const registration = kubeadm.joinConfiguration?.nodeRegistration;
  const failures: CheckFailure[] = [];
  if (registration?.name !== undefined) {
    failures.push({
      property: path("joinConfiguration", "nodeRegistration", "name"),
      reason: "the host name is filled in from the pool's `hostname`; remove it, and set `hostname` in the pool where the name matters",
    });
  }
  for (const [argument, reason] of Object.entries(FILLED_ARGUMENTS)) {
    if (registration?.kubeletExtraArgs?.[argument] === undefined) continue;
    failures.push({ property: path("joinConfiguration", "nodeRegistration", "kubeletExtraArgs", argument), reason });
  }
  return [...failures, ...refusedFiles(kubeadm, version)];
}

function withPullPolicy(kubeadm: KubeadmBootstrap): KubeadmBootstrap {
  const target = patchPath(kubeadm);
  const files = kubeadm.files ?? [];
  const index = files.findIndex(({ path: at }) => at === target);
  const given = index < 0 ? undefined : files[index];
  const patch = {
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    kind: "KubeletConfiguration",
    [PULL_POLICY]: "NeverVerify",
    ...(given === undefined ? {} : patchOf(given)),
  };
  const file: KubeadmFile = { owner: "root:root", permissions: "0644", ...given, path: target, content: JSON.stringify(patch, null, 2) };
  return {
    ...kubeadm,
    files: index < 0 ? [...files, file] : files.map((other, at) => (at === index ? file : other)),
    joinConfiguration: { ...kubeadm.joinConfiguration, patches: { directory: kubeadm.joinConfiguration?.patches?.directory ?? PATCH_DIRECTORY } },
  };
}

/** The bootstrap configuration of the machines, complete for that Kubernetes version. */
export function completeBootstrap(kubeadm: KubeadmBootstrap, version: string): KubeadmConfigModel {
  const complete = hasPullPolicy(version) ? withPullPolicy(kubeadm) : kubeadm;
  const { joinConfiguration, ...rest } = complete;
  return joinConfiguration === undefined ? rest : { ...rest, joinConfiguration };
}
