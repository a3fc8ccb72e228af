import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";

import { z } from "zod";

import { clusters, inVersion, kubeadmConfigTemplates, machineDeployments } from "../../../provider/capi/kinds.ts";
import { ClusterClient } from "../../../provider/cluster/client.ts";
import { isClusterError } from "../../../provider/cluster/errors.ts";
import { configMaps, secrets } from "../../../provider/cluster/kinds.ts";
import type { ResourceKind } from "../../../provider/cluster/objects.ts";
import { readAuditLog, writesBy } from "../../testbed/audit.ts";
import { issueClientCertificate, startBed } from "../../testbed/bed.ts";
import type { Bed } from "../../testbed/bed.ts";
import { minimalCrd } from "../../testbed/foreign-crds.ts";
import { until } from "../../testbed/wait.ts";

const condition = z.looseObject({ type: z.string(), status: z.string(), reason: z.string() });
const clusterStatus = z.looseObject({
  phase: z.string(),
  initialization: z.looseObject({ infrastructureProvisioned: z.boolean(), controlPlaneInitialized: z.boolean() }),
  conditions: z.array(condition),
});
const deploymentSpec = z.looseObject({
  rollout: z.looseObject({ strategy: z.looseObject({ type: z.string(), rollingUpdate: z.looseObject({ maxSurge: z.number() }) }) }),
});
const oldDeploymentSpec = z.looseObject({
  strategy: z.looseObject({ type: z.string() }),
  template: z.looseObject({ spec: z.looseObject({ nodeDrainTimeout: z.string() }) }),
});

const simMachineTemplates: ResourceKind = {
  group: "infrastructure.cluster.x-k8s.io",
  version: "v1beta2",
  plural: "simmachinetemplates",
  kind: "SimMachineTemplate",
  namespaced: true,
};
const template = { clusterName: "edge", version: "v1.37.2" };
const labels = { "cluster.x-k8s.io/cluster-name": "edge" };

describe("test bed", function () {
  this.timeout(120_000);
  let bed: Bed;

  before(async () => {
    bed = await startBed({ crds: [minimalCrd(simMachineTemplates, "v1beta2")] });
  });
  after(async () => bed.stop());
  afterEach(function () {
    if (this.currentTest?.state === "failed") bed.keep();
  });

  it("comes up with a Provisioned Cluster that Cluster API is connected to", async () => {
    const { cluster } = bed.management;
    const found = await until("the Cluster to be Available", async () => {
      const status = clusterStatus.parse((await cluster.get(clusters, { namespace: "cpaas-system", name: "edge" }))["status"]);
      return status.conditions.some(({ type, status: state }) => type === "Available" && state === "True") ? status : undefined;
    });
    assert.equal(found.phase, "Provisioned");
    assert.deepEqual([found.initialization.infrastructureProvisioned, found.initialization.controlPlaneInitialized], [true, true]);
    assert.deepEqual(
      found.conditions
        .filter(({ type }) => ["RemoteConnectionProbe", "InfrastructureReady", "ControlPlaneAvailable"].includes(type))
        .map(({ type, status }) => `${type}=${status}`)
        .sort(),
      ["ControlPlaneAvailable=True", "InfrastructureReady=True", "RemoteConnectionProbe=True"],
    );
  });

  it("claims the version that its API servers report", async () => {
    assert.equal(await bed.management.cluster.serverVersion(), "v1.37.2");
    assert.equal(await bed.workload.cluster.serverVersion(), "v1.37.2");
  });

  it("lets a host read cluster-info without credentials, and nothing else", async () => {
    const anonymous = new ClusterClient({ server: bed.workload.server, certificateAuthority: bed.workload.certificateAuthority.certificate });
    try {
      const info = await anonymous.get(configMaps, { namespace: "kube-public", name: "cluster-info" });
      assert.match(JSON.stringify(info["data"]), new RegExp(bed.workload.server));
      await assert.rejects(anonymous.list(configMaps, { namespace: "kube-public" }), (error) => isClusterError(error, "forbidden"));
    } finally {
      await anonymous.close();
    }
  });

  it("takes a MachineDeployment in v1beta1 and in v1beta2 through Cluster API's own webhooks, and shows each in the other", async () => {
    const { cluster } = bed.management;
    const refs = (version: "v1beta1" | "v1beta2"): object =>
      version === "v1beta1"
        ? {
            bootstrap: { configRef: { apiVersion: "bootstrap.cluster.x-k8s.io/v1beta1", kind: "KubeadmConfigTemplate", name: "workers" } },
            infrastructureRef: { apiVersion: "infrastructure.cluster.x-k8s.io/v1beta2", kind: "SimMachineTemplate", name: "workers" },
          }
        : {
            bootstrap: { configRef: { apiGroup: "bootstrap.cluster.x-k8s.io", kind: "KubeadmConfigTemplate", name: "workers" } },
            infrastructureRef: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "SimMachineTemplate", name: "workers" },
          };
    await cluster.create(kubeadmConfigTemplates, {
      apiVersion: "bootstrap.cluster.x-k8s.io/v1beta2",
      kind: "KubeadmConfigTemplate",
      metadata: { name: "workers", namespace: "cpaas-system" },
      spec: { template: { spec: { preKubeadmCommands: ["true"] } } },
    });
    await cluster.create(inVersion(machineDeployments, "v1beta1"), {
      apiVersion: "cluster.x-k8s.io/v1beta1",
      kind: "MachineDeployment",
      metadata: { name: "old", namespace: "cpaas-system" },
      spec: {
        clusterName: "edge",
        replicas: 0,
        selector: { matchLabels: {} },
        template: { metadata: { labels }, spec: { ...template, nodeDrainTimeout: "5m", ...refs("v1beta1") } },
      },
    });
    await cluster.create(machineDeployments, {
      apiVersion: "cluster.x-k8s.io/v1beta2",
      kind: "MachineDeployment",
      metadata: { name: "new", namespace: "cpaas-system" },
      spec: {
        clusterName: "edge",
        replicas: 0,
        selector: { matchLabels: {} },
        template: { metadata: { labels }, spec: { ...template, deletion: { nodeDrainTimeoutSeconds: 300 }, ...refs("v1beta2") } },
      },
    });
    // Defaults of the mutating webhook, through the conversion webhook.
    const old = deploymentSpec.parse((await cluster.get(machineDeployments, { namespace: "cpaas-system", name: "old" }))["spec"]);
    assert.deepEqual([old.rollout.strategy.type, old.rollout.strategy.rollingUpdate.maxSurge], ["RollingUpdate", 1]);
    const shown = oldDeploymentSpec.parse((await cluster.get(inVersion(machineDeployments, "v1beta1"), { namespace: "cpaas-system", name: "new" }))["spec"]);
    assert.deepEqual([shown.strategy.type, shown.template.spec.nodeDrainTimeout], ["RollingUpdate", "5m0s"]);
  });

  it("refuses what Cluster API's validating webhook refuses", async () => {
    await assert.rejects(
      bed.management.cluster.create(machineDeployments, {
        apiVersion: "cluster.x-k8s.io/v1beta2",
        kind: "MachineDeployment",
        metadata: { name: "wrong", namespace: "cpaas-system" },
        spec: {
          clusterName: "edge",
          selector: { matchLabels: { a: "b" } },
          template: {
            metadata: { labels: {} },
            spec: {
              clusterName: "other",
              version: "v1.37.2",
              bootstrap: { dataSecretName: "data" },
              infrastructureRef: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "SimMachineTemplate", name: "workers" },
            },
          },
        },
      }),
      (error) => isClusterError(error) && error.message.includes("validation.machinedeployment.cluster.x-k8s.io"),
    );
  });

  it("writes every request of a user into the audit log, bodies of writes with it, but never that of a Secret", async () => {
    const connection = await issueClientCertificate(bed.management, { user: "somebody", groups: ["system:masters"] });
    const somebody = new ClusterClient(connection, { userAgent: "somebody's tool" });
    const namespace = "cpaas-system";
    try {
      await somebody.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "audited", namespace }, data: { key: "seen-in-the-log" } });
      await somebody.create(secrets, {
        apiVersion: "v1",
        kind: "Secret",
        metadata: { name: "audited", namespace },
        stringData: { password: "never-in-the-log" },
      });
      await somebody.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "dry", namespace } }, { dryRun: true });
      await somebody.get(configMaps, { namespace, name: "audited" });
    } finally {
      await somebody.close();
    }
    const { auditLogPath } = bed.management;
    const requests = await until("four requests in the audit log", async () => {
      const found = await readAuditLog(auditLogPath, { user: "somebody" });
      return found.length === 4 ? found : undefined;
    });
    assert.deepEqual(
      requests.map(({ verb, resource, name, code }) => [verb, resource, name, code]),
      [
        ["create", "configmaps", "audited", 201],
        ["create", "secrets", "audited", 201],
        ["create", "configmaps", "dry", 201],
        ["get", "configmaps", "audited", 200],
      ],
    );
    assert.match(requests[0]?.userAgent ?? "", /^somebody's tool node\//);
    assert.deepEqual(z.looseObject({ data: z.unknown() }).parse(requests[0]?.requestBody).data, { key: "seen-in-the-log" });
    assert.deepEqual(
      (await writesBy(auditLogPath, "somebody")).map(({ resource, name }) => `${resource}/${name}`),
      ["configmaps/audited", "secrets/audited"],
    );
    assert.ok(!readFileSync(auditLogPath, "utf8").includes(Buffer.from("never-in-the-log").toString("base64")));
    assert.ok(!readFileSync(auditLogPath, "utf8").includes("never-in-the-log"));
  });

  it("keeps all its files in its own folder", () => {
    for (const path of [bed.management.kubeconfigPath, bed.workload.kubeconfigPath, bed.management.auditLogPath, bed.workload.auditLogPath]) {
      assert.ok(path.startsWith(bed.directory) && existsSync(path), path);
    }
  });
});

describe("two test beds at once", function () {
  this.timeout(120_000);

  it("do not see each other, and leave neither process nor folder behind", async () => {
    const settled = await Promise.allSettled([startBed({ clusterName: "one" }), startBed({ clusterName: "two" })]);
    const beds = settled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    try {
      assert.deepEqual(
        settled.filter(({ status }) => status === "rejected"),
        [],
      );
      const names = await Promise.all(beds.map(async (bed) => (await bed.management.cluster.list(clusters)).items.map(({ metadata }) => metadata.name)));
      assert.deepEqual(names, [["one"], ["two"]]);
    } finally {
      await Promise.all(beds.map(async (bed) => bed.stop()));
    }
    for (const bed of beds) {
      assert.notEqual(bed.management.apiServer.exit, undefined);
      assert.ok(!existsSync(bed.directory), bed.directory);
    }
  });
});
