import assert from "node:assert/strict";

import { metal3RemediationTemplates } from "../../../provider/capi/kinds.ts";
import { renderKubeadmConfigTemplate } from "../../../provider/capi/kubeadm-config-template.ts";
import { readMachine } from "../../../provider/capi/machine.ts";
import type { MachineDeploymentModel } from "../../../provider/capi/machine-deployment.ts";
import { readMachineDeployment, renderMachineDeployment } from "../../../provider/capi/machine-deployment.ts";
import type { MachineHealthCheckModel } from "../../../provider/capi/machine-health-check.ts";
import { readMachineHealthCheck, renderMachineHealthCheck } from "../../../provider/capi/machine-health-check.ts";
import { capiVersion } from "../../../provider/capi/versions.ts";
import type { KubernetesObject, LiveObject } from "../../../provider/cluster/objects.ts";
import { FakeCluster } from "../fakes/fake-cluster.ts";

const model: MachineDeploymentModel = {
  name: "edge-workers",
  namespace: "cpaas-system",
  clusterName: "edge",
  labels: { a: "b" },
  annotations: { c: "d" },
  replicas: 3,
  version: "v1.37.2",
  maxSurge: 0,
  maxUnavailable: 1,
  machineLabels: { "pool.name": "edge-workers" },
  nodeDrainSeconds: 300,
  nodeVolumeDetachSeconds: 90,
  bootstrap: { apiGroup: "bootstrap.cluster.x-k8s.io", version: "v1beta1", kind: "KubeadmConfigTemplate", name: "b" },
  infrastructure: { apiGroup: "infrastructure.cluster.x-k8s.io", version: "v1beta1", kind: "BaremetalMachineTemplate", name: "i" },
};

const own = { "cluster.x-k8s.io/cluster-name": "edge", "cluster.x-k8s.io/deployment-name": "edge-workers" };
const strategy = { type: "RollingUpdate", rollingUpdate: { maxSurge: 0, maxUnavailable: 1 } };

function live(object: KubernetesObject): LiveObject {
  return { ...object, metadata: { ...object.metadata, uid: "u", resourceVersion: "1", generation: 4 } };
}

/** The durations in the way in which the API server gives them back. */
function stringified(spec: unknown): unknown {
  return JSON.parse(JSON.stringify(spec).replace('"300s"', '"5m0s"').replace('"90s"', '"1m30s"'));
}

describe("MachineDeployment", () => {
  it("has the shape of v1beta2", () => {
    assert.deepEqual(renderMachineDeployment(model, "v1beta2"), {
      apiVersion: "cluster.x-k8s.io/v1beta2",
      kind: "MachineDeployment",
      metadata: { name: "edge-workers", namespace: "cpaas-system", labels: { a: "b", "cluster.x-k8s.io/cluster-name": "edge" }, annotations: { c: "d" } },
      spec: {
        clusterName: "edge",
        replicas: 3,
        rollout: { strategy },
        selector: { matchLabels: own },
        template: {
          metadata: { labels: { "pool.name": "edge-workers", ...own } },
          spec: {
            clusterName: "edge",
            version: "v1.37.2",
            deletion: { nodeDrainTimeoutSeconds: 300, nodeVolumeDetachTimeoutSeconds: 90 },
            bootstrap: { configRef: { apiGroup: "bootstrap.cluster.x-k8s.io", kind: "KubeadmConfigTemplate", name: "b" } },
            infrastructureRef: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "BaremetalMachineTemplate", name: "i" },
          },
        },
      },
    });
  });

  it("has the shape of v1beta1", () => {
    assert.deepEqual(renderMachineDeployment(model, "v1beta1")["spec"], {
      clusterName: "edge",
      replicas: 3,
      strategy,
      selector: { matchLabels: own },
      template: {
        metadata: { labels: { "pool.name": "edge-workers", ...own } },
        spec: {
          clusterName: "edge",
          version: "v1.37.2",
          nodeDrainTimeout: "300s",
          nodeVolumeDetachTimeout: "90s",
          bootstrap: { configRef: { apiVersion: "bootstrap.cluster.x-k8s.io/v1beta1", kind: "KubeadmConfigTemplate", name: "b", namespace: "cpaas-system" } },
          infrastructureRef: { apiVersion: "infrastructure.cluster.x-k8s.io/v1beta1", kind: "BaremetalMachineTemplate", name: "i", namespace: "cpaas-system" },
        },
      },
    });
  });

  for (const version of ["v1beta1", "v1beta2"] as const) {
    it(`is read from ${version} as it was written`, () => {
      const view = readMachineDeployment(live({ ...renderMachineDeployment(model, version), status: { observedGeneration: 4, availableReplicas: 2 } }));
      assert.equal(view.replicas, 3);
      assert.equal(view.version, "v1.37.2");
      assert.equal(view.maxSurge, 0);
      assert.equal(view.maxUnavailable, 1);
      assert.equal(view.nodeDrainSeconds, 300);
      assert.equal(view.nodeVolumeDetachSeconds, 90);
      assert.deepEqual(view.infrastructure, { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "BaremetalMachineTemplate", name: "i" });
      assert.deepEqual(view.bootstrap, { apiGroup: "bootstrap.cluster.x-k8s.io", kind: "KubeadmConfigTemplate", name: "b" });
      assert.equal(view.observed, true);
      assert.equal(view.availableReplicas, 2);
    });
  }

  it("reads durations as Cluster API stores them in its older version", () => {
    const rendered = renderMachineDeployment(model, "v1beta1");
    const stored = { ...rendered, spec: stringified(rendered["spec"]) };
    const view = readMachineDeployment(live(stored));
    assert.deepEqual([view.nodeDrainSeconds, view.nodeVolumeDetachSeconds], [300, 90]);
  });

  it("counts updated replicas where each version keeps them", () => {
    const spec = renderMachineDeployment(model, "v1beta2");
    assert.equal(readMachineDeployment(live({ ...spec, status: { deprecated: { v1beta1: { updatedReplicas: 2 } } } })).updatedReplicas, 2);
    assert.equal(readMachineDeployment(live({ ...spec, status: { updatedReplicas: 1 } })).updatedReplicas, 1);
    assert.equal(readMachineDeployment(live({ ...spec, status: {} })).updatedReplicas, undefined);
  });
});

describe("Machine", () => {
  const infrastructureRef = { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "BaremetalMachine", name: "bm" };
  function machine(status: unknown, deletionTimestamp?: string): LiveObject {
    return {
      apiVersion: "cluster.x-k8s.io/v1beta2",
      kind: "Machine",
      metadata: {
        name: "m",
        namespace: "n",
        uid: "u",
        resourceVersion: "1",
        labels: { "cluster.x-k8s.io/set-name": "s" },
        ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
      },
      spec: { version: "v1.37.2", infrastructureRef },
      status,
    };
  }
  const yes = { type: "Ready", status: "True", reason: "Ready", message: "" };

  for (const [what, status, ready] of [
    ["ready in v1beta2", { nodeRef: { name: "w1" }, conditions: [yes] }, true],
    ["ready in v1beta1 of a new Cluster API", { nodeRef: { name: "w1" }, conditions: [{ ...yes, status: "False" }], v1beta2: { conditions: [yes] } }, true],
    ["ready in an old Cluster API", { nodeRef: { name: "w1" }, conditions: [yes, { ...yes, type: "NodeHealthy" }] }, true],
    [
      "not ready while its Node is sick in an old Cluster API",
      { nodeRef: { name: "w1" }, conditions: [yes, { ...yes, type: "NodeHealthy", status: "False" }] },
      false,
    ],
    ["not ready without a Node", { conditions: [yes] }, false],
    ["not ready without conditions", { nodeRef: { name: "w1" } }, false],
    ["not ready without a status", undefined, false],
  ] as const) {
    it(`is ${what}`, () => assert.equal(readMachine(machine(status)).ready, ready));
  }

  it("is not ready while it goes", () =>
    assert.equal(readMachine(machine({ nodeRef: { name: "w1" }, conditions: [yes] }, "2026-01-01T00:00:00Z")).ready, false));
  it("belongs to its set", () => assert.equal(readMachine(machine({})).setName, "s"));
});

describe("KubeadmConfigTemplate", () => {
  const config = {
    users: [],
    files: [{ path: "/a", content: "x" }],
    joinConfiguration: { nodeRegistration: { kubeletExtraArgs: { "max-pods": "50" }, taints: [] } },
  };

  it("lists arguments in v1beta2 and leaves out what is empty", () => {
    assert.deepEqual(renderKubeadmConfigTemplate({ name: "t", namespace: "n" }, config, "v1beta2"), {
      apiVersion: "bootstrap.cluster.x-k8s.io/v1beta2",
      kind: "KubeadmConfigTemplate",
      metadata: { name: "t", namespace: "n" },
      spec: {
        template: {
          spec: { files: [{ path: "/a", content: "x" }], joinConfiguration: { nodeRegistration: { kubeletExtraArgs: [{ name: "max-pods", value: "50" }] } } },
        },
      },
    });
  });

  it("maps arguments in v1beta1", () => {
    const { spec } = renderKubeadmConfigTemplate({ name: "t", namespace: "n" }, config, "v1beta1");
    assert.deepEqual(spec, {
      template: { spec: { files: [{ path: "/a", content: "x" }], joinConfiguration: { nodeRegistration: { kubeletExtraArgs: { "max-pods": "50" } } } } },
    });
  });

  it("may be empty", () => assert.deepEqual(renderKubeadmConfigTemplate({ name: "t" }, {}, "v1beta2")["spec"], { template: { spec: {} } }));
});

describe("MachineHealthCheck", () => {
  const check: MachineHealthCheckModel = {
    name: "edge-p",
    namespace: "n",
    clusterName: "edge",
    deployment: "edge-workers",
    labels: {},
    annotations: {},
    unhealthyConditions: [{ type: "Ready", status: "Unknown", timeoutSeconds: 300 }],
    nodeStartupSeconds: 1200,
    maxUnhealthy: "40%",
    template: { apiVersion: "infrastructure.cluster.x-k8s.io/v1beta2", kind: metal3RemediationTemplates.kind, name: "t" },
  };
  const selector = { matchLabels: own };

  it("has the shape of v1beta2", () => {
    assert.deepEqual(renderMachineHealthCheck(check, "v1beta2")["spec"], {
      clusterName: "edge",
      selector,
      checks: { nodeStartupTimeoutSeconds: 1200, unhealthyNodeConditions: [{ type: "Ready", status: "Unknown", timeoutSeconds: 300 }] },
      remediation: { triggerIf: { unhealthyLessThanOrEqualTo: "40%" }, templateRef: check.template },
    });
  });

  it("has the shape of v1beta1, with the template where that version looks for it", () => {
    assert.deepEqual(renderMachineHealthCheck(check, "v1beta1")["spec"], {
      clusterName: "edge",
      selector,
      nodeStartupTimeout: "1200s",
      unhealthyConditions: [{ type: "Ready", status: "Unknown", timeout: "300s" }],
      maxUnhealthy: "40%",
      remediationTemplate: { ...check.template, namespace: "n" },
    });
  });

  for (const version of ["v1beta1", "v1beta2"] as const) {
    it(`is read from ${version} as it was written`, () => {
      const view = readMachineHealthCheck(live(renderMachineHealthCheck(check, version)));
      assert.equal(view.maxUnhealthy, "40%");
      assert.deepEqual(view.template, { kind: "Metal3RemediationTemplate", name: "t" });
      assert.deepEqual([view.unhealthyConditions, view.nodeStartupSeconds], [check.unhealthyConditions, 1200]);
    });
  }
});

describe("the Cluster API version", () => {
  function deployments(version: string): { group: string; version: string; plural: string; kind: string; namespaced: boolean } {
    return { group: "cluster.x-k8s.io", version, plural: "machinedeployments", kind: "MachineDeployment", namespaced: true };
  }

  for (const [served, version] of [
    [["v1beta1", "v1beta2"], "v1beta2"],
    [["v1beta1"], "v1beta1"],
    [["v1beta2"], "v1beta2"],
    [["v1alpha4"], undefined],
    [[], undefined],
  ] as const) {
    it(`is ${version ?? "none"} where ${served.join(", ") || "nothing"} is served`, async () => {
      assert.equal(await capiVersion(new FakeCluster({ kinds: served.map(deployments) })), version);
    });
  }
});
