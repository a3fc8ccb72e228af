import assert from "node:assert/strict";

import * as pulumi from "@pulumi/pulumi";

import { groupNamespaceRules } from "../../../sdk/nodejs/src/controllerRules.ts";
import { RemediationController } from "../../../sdk/nodejs/src/remediationController.ts";
import { Registrations, settled } from "./registrations.ts";
import type { Inputs } from "./registrations.ts";

const image = "registry.example.com/controller:1";

function field(value: unknown, ...path: string[]): unknown {
  return path.reduce<unknown>((at, key) => (typeof at === "object" && at !== null ? (at as Inputs)[key] : undefined), value);
}

describe("RemediationController", () => {
  let registrations: Registrations;
  beforeEach(async () => {
    registrations = await Registrations.start("shop", "prod");
    pulumi.runtime.setAllConfig({ "baremetal:namespace": "cpaas-system" });
  });
  afterEach(() => {
    pulumi.runtime.setAllConfig({});
  });

  it("deploys one Pod that repairs the groups of the stack's namespace", async () => {
    new RemediationController("controller", { image });
    await settled();
    const [deployment] = registrations.of("kubernetes:apps/v1:Deployment");
    assert.equal(field(deployment, "spec", "replicas"), 1);
    const [container] = field(deployment, "spec", "template", "spec", "containers") as [Inputs];
    assert.equal(container["image"], image);
    assert.deepEqual(container["command"], ["node", "--max-semi-space-size=1", "--optimize-for-size", "/app/controller.cjs"]);
    assert.deepEqual(container["args"], ["--controllers=remediation", "--namespaces=cpaas-system", "--settings=pulumi-baremetal-system/pulumi-baremetal"]);
    assert.deepEqual(
      (container["env"] as Inputs[]).map(({ name }) => name),
      ["POD_NAME", "POD_NAMESPACE", "POD_IP", "NODE_NAME"],
    );
    assert.deepEqual(
      registrations.of("pulumi-nodejs:dynamic/baremetal:ControllerDefinitions").map(({ sets }) => sets),
      [["remediation"]],
    );
    const [removal] = registrations.of("pulumi-nodejs:dynamic/baremetal:ControllerRemoval");
    assert.deepEqual([removal?.["namespaces"], removal?.["settings"]], [["cpaas-system"], { namespace: "pulumi-baremetal-system", name: "pulumi-baremetal" }]);
  });

  it("asks for permissions only in the namespaces given and in its own", async () => {
    new RemediationController("controller", { image, controllers: ["inventory", "remediation"], namespaces: ["a", "b"], namespace: "own" });
    await settled();
    const roles = registrations.of("kubernetes:rbac.authorization.k8s.io/v1:Role");
    assert.deepEqual(roles.map((role) => field(role, "metadata", "namespace")).sort(), ["a", "b", "own"]);
    for (const role of roles) {
      const secretVerbs = (role["rules"] as Inputs[]).filter(({ resources }) => (resources as string[]).includes("secrets")).map(({ verbs }) => verbs);
      assert.deepEqual(secretVerbs, field(role, "metadata", "namespace") === "own" ? [] : [["get", "patch"]]);
    }
    const [clusterRole] = registrations.of("kubernetes:rbac.authorization.k8s.io/v1:ClusterRole");
    assert.deepEqual(clusterRole?.["rules"], [{ apiGroups: ["apiextensions.k8s.io"], resources: ["customresourcedefinitions"], verbs: ["get"] }]);
  });

  it("joins settings as text, and leaves the stop switch to its last step", async () => {
    new RemediationController("controller", { image, settings: { maxInRepair: 2 } });
    await settled();
    assert.deepEqual(registrations.of("kubernetes:core/v1:ConfigMap")[0]?.["data"], { maxInRepair: "2" });
    assert.throws(() => new RemediationController("other", { image, settings: { stop: "true" } }), /settings\.stop is the stop switch/);
  });

  it("uses the cluster of baremetal:kubeconfig for its own objects, as a secret", async () => {
    pulumi.runtime.setAllConfig({ "baremetal:kubeconfig": "apiVersion: v1\n", "baremetal:context": "two" });
    new RemediationController("controller", { image });
    await settled();
    assert.equal(registrations.of("pulumi:providers:kubernetes").length, 1);
    assert.equal(registrations.of("pulumi:providers:kubernetes")[0]?.["context"], "two");
  });

  it("leaves the choice of the cluster to the program where it made one", async () => {
    new RemediationController("controller", { image });
    await settled();
    assert.deepEqual(registrations.of("pulumi:providers:kubernetes"), []);
  });

  it("refuses what cannot work, and says what to do", () => {
    assert.throws(() => new RemediationController("c", { image: "" }), {
      message: "RemediationController c: image is missing; give the container image that holds /app/controller.cjs, there is no default",
    });
    assert.throws(() => new RemediationController("c", { image, controllers: [] }), /controllers is \[\]; it must hold "remediation", "inventory" or both/);
    assert.throws(() => new RemediationController("c", { image, namespaces: [] }), /namespaces is empty/);
  });

  it("never lists or watches Secrets", () => {
    for (const { resources, verbs } of groupNamespaceRules(["remediation", "inventory"])) {
      if (resources.includes("secrets")) assert.deepEqual(verbs, ["get", "patch"]);
    }
    assert.deepEqual(groupNamespaceRules(["remediation"]).find(({ resources }) => resources.includes("secrets"))?.verbs, ["get"]);
  });
});
