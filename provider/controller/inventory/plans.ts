/** The plan Secret of an inventory: what the agent on the host is to do, and whether it has done it. */
import { createHash } from "node:crypto";
import { gunzipSync } from "node:zlib";

import { z } from "zod";

import type { LiveObject } from "../../cluster/objects.ts";
import { PLAN_TYPE_ANNOTATION, type PlanType } from "../../hosts/names.ts";

const SEED_FOLDER = "/var/lib/cloud/seed/nocloud";
/** In the environment of a plan's instruction: what the plan is and for whom, so that two plans are never the same bytes. */
const IDENTITY_VARIABLE = "BAREMETAL_PLAN";
const MOST_OUTPUT_CHARACTERS = 400;
const MOST_OUTPUT_BYTES = 1024 * 1024;

const reprovisionScript = [
  "set -eu",
  // The host comes up with the new instance-id, so that cloud-init takes the seed for a first boot.
  "cloud-init clean --logs",
  "systemctl --no-block reboot",
].join("\n");

/** Once it is applied nothing of the old Node runs any more: what cannot be proven fails the plan, so that the host is powered off. */
const cleanScript = `set -eu
fail() { echo "$1" >&2; exit 1; }
stop() {
  state=$(systemctl show --property=LoadState --value "$1.service")
  if [ "$state" != not-found ]; then systemctl stop "$1.service"; fi
}
# A join that cloud-init is still at would undo all of this.
for unit in cloud-final cloud-config cloud-init cloud-init-main; do stop "$unit"; done
stop kubelet
if systemctl is-active --quiet kubelet; then fail "the kubelet still runs"; fi
# kubeadm only warns of what it cannot stop or unmount.
if command -v kubeadm >/dev/null; then kubeadm reset --force; fi
if systemctl is-active --quiet kubelet; then fail "the kubelet runs again"; fi
if command -v crictl >/dev/null; then
  containers=$(crictl ps -q)
  if [ -n "$containers" ]; then fail "containers still run: $containers"; fi
fi
mounts=$(cat /proc/self/mounts)
case "$mounts" in *" /var/lib/kubelet/"*) fail "volumes are still mounted below /var/lib/kubelet" ;; esac
rm -rf --one-file-system /etc/kubernetes /var/lib/kubelet /etc/cni/net.d
rm -rf --one-file-system ${SEED_FOLDER}
if command -v cloud-init >/dev/null; then cloud-init clean --logs; fi`;

export interface HostPlan {
  type: PlanType;
  /** For whom it was made: unique for each machine and each attempt. */
  id: string;
  /** The exact bytes of the key `plan`. */
  text: string;
}

interface PlanFile {
  path: string;
  content: string;
  permissions: string;
}

function planOf(type: PlanType, id: string, files: PlanFile[], script: string): HostPlan {
  const instruction = { name: type, command: "/bin/sh", args: ["-c", script], env: [`${IDENTITY_VARIABLE}=${type}:${id}`] };
  return { type, id, text: JSON.stringify({ files, instructions: [instruction] }) };
}

function file(name: string, content: string): PlanFile {
  return { path: `${SEED_FOLDER}/${name}`, content: Buffer.from(content, "utf8").toString("base64"), permissions: "0600" };
}

export function reprovisionPlan(machineUid: string, hostname: string, userData: string): HostPlan {
  const metaData = `instance-id: ${machineUid}\nlocal-hostname: ${hostname}\n`;
  return planOf("reprovision", machineUid, [file("user-data", userData), file("meta-data", metaData)], reprovisionScript);
}

export function cleanPlan(id: string): HostPlan {
  return planOf("clean", id, [], cleanScript);
}

/** The merge patch that puts the plan into its Secret, of that version only, and takes away what was said of the one before. */
export function planPatch(resourceVersion: string, plan: HostPlan): object {
  return {
    metadata: { resourceVersion, annotations: { [PLAN_TYPE_ANNOTATION]: plan.type } },
    data: { plan: Buffer.from(plan.text, "utf8").toString("base64"), "applied-checksum": null, "failed-checksum": null, "failed-output": null },
  };
}

export interface PlanReading {
  /** `none`: no plan, or one that somebody else wrote. */
  type: PlanType | "none";
  id: string;
  state: "pending" | "applied" | "failed";
  /** The end of what the failed instruction said. */
  failedOutput: string;
  /** What the plan's meta-data calls the host. */
  hostname: string | undefined;
  /** Of the Secret. */
  resourceVersion: string;
}

const secretSchema = z.object({ data: z.record(z.string(), z.string()).optional() });
const planSchema = z.object({
  files: z.array(z.object({ path: z.string(), content: z.string() })).optional(),
  instructions: z.array(z.object({ env: z.array(z.string()).optional() })).optional(),
});
const planTypes: readonly PlanType[] = ["clean", "reprovision", "storage-prepare", "storage-release"];

function decoded(data: Readonly<Record<string, string>>, key: string): Buffer {
  return Buffer.from(data[key] ?? "", "base64");
}

function shortened(output: Buffer): string {
  let text = output.toString("utf8");
  if (output[0] === 0x1f && output[1] === 0x8b) {
    try {
      text = gunzipSync(output, { maxOutputLength: MOST_OUTPUT_BYTES }).toString("utf8");
    } catch {
      text = "(output that cannot be unpacked)";
    }
  }
  const trimmed = text.trim();
  return trimmed.length <= MOST_OUTPUT_CHARACTERS ? trimmed : `…${trimmed.slice(1 - MOST_OUTPUT_CHARACTERS)}`;
}

function identityOf(text: string): Pick<PlanReading, "type" | "id" | "hostname"> {
  const none = { type: "none", id: "", hostname: undefined } as const;
  let parsed: z.infer<typeof planSchema>;
  try {
    parsed = planSchema.parse(JSON.parse(text));
  } catch {
    return none;
  }
  const identity = (parsed.instructions ?? []).flatMap(({ env }) => env ?? []).find((variable) => variable.startsWith(`${IDENTITY_VARIABLE}=`));
  const [, name, id] = /^[^=]+=([a-z-]+):(.+)$/.exec(identity ?? "") ?? [];
  const type = planTypes.find((candidate) => candidate === name);
  if (type === undefined || id === undefined) return none;
  const metaData = (parsed.files ?? []).find(({ path }) => path === `${SEED_FOLDER}/meta-data`);
  const hostname = metaData === undefined ? undefined : /^local-hostname: (.+)$/m.exec(Buffer.from(metaData.content, "base64").toString("utf8"))?.[1];
  return { type, id, hostname };
}

/** Applied or failed is a plan only by the checksum of its exact bytes. */
export function readPlan(secret: LiveObject): PlanReading {
  const data = secretSchema.parse(secret).data ?? {};
  const plan = decoded(data, "plan");
  const checksum = createHash("sha256").update(plan).digest("hex");
  const state =
    decoded(data, "applied-checksum").toString("utf8") === checksum
      ? "applied"
      : decoded(data, "failed-checksum").toString("utf8") === checksum
        ? "failed"
        : "pending";
  return {
    ...identityOf(plan.toString("utf8")),
    state,
    resourceVersion: secret.metadata.resourceVersion,
    failedOutput: state === "failed" ? shortened(decoded(data, "failed-output")) : "",
  };
}
