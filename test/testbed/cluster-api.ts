/** Cluster API: CRDs and webhooks from its own source, and its two managers as child processes. */
import { mkdirSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

import { parseAllDocuments } from "yaml";
import { z } from "zod";

import type { ClusterClient } from "../../provider/cluster/client.ts";
import { customResourceDefinitions } from "../../provider/cluster/kinds.ts";
import type { KubernetesObject, ResourceKind } from "../../provider/cluster/objects.ts";
import { issueCertificate } from "./certificates.ts";
import type { KeyPair } from "./certificates.ts";
import { BED_USER, writeAdministratorKubeconfig } from "./control-plane.ts";
import type { ApiServer } from "./control-plane.ts";
import { freePorts, releasePorts } from "./ports.ts";
import { startProcess, untilReady } from "./processes.ts";
import type { RunningProcess } from "./processes.ts";
import { retryTransient } from "./retry.ts";
import { binary, clusterApiSource } from "./toolchain.ts";
import type { BinaryName } from "./toolchain.ts";

export type ManagerName = "core" | "bootstrap";

const managers: Record<ManagerName, { binary: BinaryName; config: string }> = {
  core: { binary: "cluster-api-core", config: "core/config" },
  bootstrap: { binary: "cluster-api-bootstrap-kubeadm", config: "bootstrap/kubeadm/config" },
};
const managerNames = ["core", "bootstrap"] as const;

/** Until the managers' ports are known, conversion points at a port where nobody listens. */
const UNSET_PORT = 1;
const READY_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 2000;

const manifest = z.looseObject({ apiVersion: z.string(), kind: z.string(), metadata: z.looseObject({ name: z.string() }) });
const crd = z.looseObject({
  apiVersion: z.string(),
  kind: z.literal("CustomResourceDefinition"),
  metadata: z.object({ name: z.string(), annotations: z.record(z.string(), z.string()).optional() }),
  spec: z.looseObject({}),
});
const webhookConfiguration = z.looseObject({
  apiVersion: z.string(),
  kind: z.enum(["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"]),
  metadata: z.object({ name: z.string() }),
  webhooks: z.array(z.looseObject({ clientConfig: z.object({ service: z.object({ path: z.string() }) }) })),
});

const webhookKinds: Record<z.infer<typeof webhookConfiguration>["kind"], ResourceKind> = {
  MutatingWebhookConfiguration: {
    group: "admissionregistration.k8s.io",
    version: "v1",
    plural: "mutatingwebhookconfigurations",
    kind: "MutatingWebhookConfiguration",
    namespaced: false,
  },
  ValidatingWebhookConfiguration: {
    group: "admissionregistration.k8s.io",
    version: "v1",
    plural: "validatingwebhookconfigurations",
    kind: "ValidatingWebhookConfiguration",
    namespaced: false,
  },
};

function documents(path: string): z.infer<typeof manifest>[] {
  return parseAllDocuments(readFileSync(path, "utf8")).flatMap((document) => {
    const content: unknown = document.toJS();
    return content === null ? [] : [manifest.parse(content)];
  });
}

function clientConfig(port: number, path: string, authority: KeyPair): { url: string; caBundle: string } {
  return { url: `https://127.0.0.1:${port}${path}`, caBundle: Buffer.from(authority.certificate).toString("base64") };
}

export interface ConvertedCrd {
  name: string;
  manager: ManagerName;
}

/** The CRDs of both managers, with the contract labels and the conversion that the published ones get by kustomize. */
export function clusterApiCrds(webhookAuthority: KeyPair): { objects: KubernetesObject[]; converted: ConvertedCrd[] } {
  const objects: KubernetesObject[] = [];
  const converted: ConvertedCrd[] = [];
  for (const manager of managerNames) {
    const folder = join(clusterApiSource(), managers[manager].config, "crd", "bases");
    for (const file of readdirSync(folder).sort()) {
      for (const document of documents(join(folder, file))) {
        const { apiVersion, kind, metadata, spec } = crd.parse(document);
        const labels = {
          "cluster.x-k8s.io/provider": manager === "core" ? "cluster-api" : "bootstrap-kubeadm",
          "cluster.x-k8s.io/v1beta1": "v1beta1",
          "cluster.x-k8s.io/v1beta2": "v1beta2",
        };
        const webhook = { conversionReviewVersions: ["v1", "v1beta1"], clientConfig: clientConfig(UNSET_PORT, "/convert", webhookAuthority) };
        objects.push({
          apiVersion,
          kind,
          metadata: { name: metadata.name, labels, ...(metadata.annotations === undefined ? {} : { annotations: metadata.annotations }) },
          spec: { ...spec, conversion: { strategy: "Webhook", webhook } },
        });
        converted.push({ name: metadata.name, manager });
      }
    }
  }
  return { objects, converted };
}

export interface ClusterApiOptions {
  /** Reconcile each object at most once a second, as Cluster API does by default. */
  rateLimiting: boolean;
  /** Further arguments of the managers. */
  coreArguments: readonly string[];
  bootstrapArguments: readonly string[];
}

export interface Place {
  api: ApiServer;
  client: ClusterClient;
  /** Holds the managers' files. */
  directory: string;
  /** Told of each process as soon as it runs. */
  started(process: RunningProcess): void;
}

async function startManager(name: ManagerName, place: Place, webhookPort: number, serving: KeyPair, extra: readonly string[]): Promise<void> {
  const { api, directory } = place;
  const certificateDirectory = join(directory, `${name}-webhook`);
  mkdirSync(certificateDirectory, { recursive: true });
  writeFileSync(join(certificateDirectory, "tls.crt"), serving.certificate);
  writeFileSync(join(certificateDirectory, "tls.key"), serving.key, { mode: 0o600 });
  const kubeconfigPath = join(directory, `${name}.kubeconfig`);
  await writeAdministratorKubeconfig(api, managers[name].binary, kubeconfigPath);
  const ports = await freePorts("health", "diagnostics");
  const process = startProcess({
    name: managers[name].binary,
    command: binary(managers[name].binary),
    args: [
      `--kubeconfig=${kubeconfigPath}`,
      `--webhook-port=${webhookPort}`,
      `--webhook-cert-dir=${certificateDirectory}`,
      `--health-addr=127.0.0.1:${ports.health}`,
      `--diagnostics-address=127.0.0.1:${ports.diagnostics}`,
      "--insecure-diagnostics",
      ...extra,
    ],
    logPath: join(directory, `${managers[name].binary}.log`),
  });
  place.started(process);
  void process.exited.then(() => releasePorts([webhookPort, ports.health, ports.diagnostics]));
  await untilReady(process, async () => (await fetch(`http://127.0.0.1:${ports.health}/readyz`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })).ok, {
    timeoutMs: READY_TIMEOUT_MS,
  });
}

/** Applied only once the managers are ready, so that no write can meet a webhook that is not there yet. */
async function applyWebhooks(client: ClusterClient, name: ManagerName, port: number, authority: KeyPair): Promise<void> {
  const found = documents(join(clusterApiSource(), managers[name].config, "webhook", "manifests.yaml"));
  await Promise.all(
    found.map(async (document) => {
      const configuration = webhookConfiguration.parse(document);
      const object: KubernetesObject = {
        ...configuration,
        metadata: { name: `${name}-${configuration.metadata.name}` },
        webhooks: configuration.webhooks.map((webhook) => ({ ...webhook, clientConfig: clientConfig(port, webhook.clientConfig.service.path, authority) })),
      };
      await client.apply(webhookKinds[configuration.kind], object, { fieldManager: BED_USER });
    }),
  );
}

/** Points the conversion of CRDs that are already there at this bed's managers. */
async function directConversion(
  client: ClusterClient,
  converted: readonly ConvertedCrd[],
  ports: Record<ManagerName, number>,
  authority: KeyPair,
): Promise<void> {
  await Promise.all(
    converted.map(async ({ name, manager }) =>
      retryTransient(async () =>
        client.patch(customResourceDefinitions, { name }, "merge", {
          spec: { conversion: { webhook: { clientConfig: clientConfig(ports[manager], "/convert", authority) } } },
        }),
      ),
    ),
  );
}

export async function startClusterApi(place: Place, webhookAuthority: KeyPair, converted: readonly ConvertedCrd[], options: ClusterApiOptions): Promise<void> {
  mkdirSync(place.directory, { recursive: true });
  const ports = await freePorts(...managerNames);
  const serving = await issueCertificate(webhookAuthority, { commonName: "webhooks", dnsNames: ["localhost"], ipAddresses: ["127.0.0.1"] });
  await directConversion(place.client, converted, ports, webhookAuthority);
  const gates = options.rateLimiting ? [] : ["--feature-gates=ReconcilerRateLimiting=false"];
  const extra = { core: options.coreArguments, bootstrap: options.bootstrapArguments };
  await Promise.all(
    managerNames.map(async (name) => {
      await startManager(name, place, ports[name], serving, [...gates, ...extra[name]]);
      await applyWebhooks(place.client, name, ports[name], webhookAuthority);
    }),
  );
}
