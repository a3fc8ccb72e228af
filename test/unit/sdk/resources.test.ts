import assert from "node:assert/strict";

import * as pulumi from "@pulumi/pulumi";

import { MachineInventoryPool } from "../../../sdk/nodejs/src/machineInventoryPool.ts";
import { RemediationPolicy } from "../../../sdk/nodejs/src/remediationPolicy.ts";
import { providerText } from "../../../sdk/nodejs/src/shell.ts";
import { WorkerGroup } from "../../../sdk/nodejs/src/workerGroup.ts";
import { Registrations, settled } from "./registrations.ts";

const members = [{ name: "rack1-07", hostname: "w1", bmc: { address: "https://10.0.7.7", secretName: "rack1-07-bmc" } }, { name: "rack1-08" }];
const bootstrap = { kubeadm: {} };

describe("dynamic resources of the SDK", () => {
  let registrations: Registrations;
  beforeEach(async () => {
    // What the provider's check would fill in.
    registrations = await Registrations.start("shop", "prod", (type) =>
      type.endsWith(":MachineInventoryPool")
        ? { poolName: "edge-workers-pool", namespace: "cpaas-system" }
        : { machineDeployment: "edge-workers", namespace: "cpaas-system" },
    );
  });

  it("register as dynamic resources with the frozen provider, their owner and their name", async () => {
    new MachineInventoryPool("workers", { clusterName: "edge", machineInventories: members });
    await settled();
    assert.deepEqual(registrations.of("pulumi-nodejs:dynamic/baremetal:MachineInventoryPool"), [
      {
        clusterName: "edge",
        machineInventories: members,
        owner: "shop/prod/workers",
        resourceName: "workers",
        __provider: providerText("MachineInventoryPool"),
      },
    ]);
  });

  it("keep BMC credentials secret", async () => {
    const pool = new MachineInventoryPool("workers", {
      clusterName: "edge",
      machineInventories: members,
      bmcCredentials: { "rack1-08": { username: "root", password: "hunter2" } },
    });
    await settled();
    assert.equal(await pulumi.isSecret(pool.bmcCredentials), true);
    assert.equal(await pulumi.isSecret(pool.machineInventories), false);
  });

  it("take a pool of the program apart: its names and hosts, without their BMCs", async () => {
    const pool = new MachineInventoryPool("workers", { clusterName: "edge", machineInventories: members });
    new WorkerGroup("workers", { clusterName: "edge", version: "v1.34.2", replicas: 2, infrastructure: { machineInventory: { pool } }, bootstrap });
    await settled();
    const [group] = registrations.of("pulumi-nodejs:dynamic/baremetal:WorkerGroup");
    assert.deepEqual(group?.["infrastructure"], {
      machineInventory: {
        pool: { poolName: "edge-workers-pool", namespace: "cpaas-system", machineInventories: [{ name: "rack1-07", hostname: "w1" }, { name: "rack1-08" }] },
      },
    });
  });

  it("take it apart wherever an output hides it, and leave names alone", async () => {
    const pool = new MachineInventoryPool("workers", { clusterName: "edge", machineInventories: members });
    const common = { clusterName: "edge", version: "v1.34.2", replicas: 2, bootstrap };
    new WorkerGroup("a", { ...common, infrastructure: pulumi.output({ machineInventory: { pool } }) });
    new WorkerGroup("b", { ...common, infrastructure: { machineInventory: Promise.resolve({ pool: "named" }) } });
    new WorkerGroup("c", { ...common, infrastructure: { templateRef: { apiGroup: "g", kind: "XTemplate", name: "n" } } });
    await settled();
    const infrastructures = registrations.of("pulumi-nodejs:dynamic/baremetal:WorkerGroup").map((inputs) => inputs["infrastructure"]);
    const expanded = {
      poolName: "edge-workers-pool",
      namespace: "cpaas-system",
      machineInventories: [{ name: "rack1-07", hostname: "w1" }, { name: "rack1-08" }],
    };
    assert.equal(infrastructures.length, 3);
    for (const expected of [
      { machineInventory: { pool: expanded } },
      { machineInventory: { pool: "named" } },
      { templateRef: { apiGroup: "g", kind: "XTemplate", name: "n" } },
    ]) {
      assert.ok(
        infrastructures.some((infrastructure) => JSON.stringify(sorted(infrastructure)) === JSON.stringify(sorted(expected))),
        JSON.stringify(infrastructures),
      );
    }
  });

  it("take a group of the program apart", async () => {
    const group = new WorkerGroup("workers", {
      clusterName: "edge",
      version: "v1.34.2",
      replicas: 2,
      infrastructure: { machineInventory: { pool: "named" } },
      bootstrap,
    });
    new RemediationPolicy("workers", { workerGroup: group, maxUnhealthy: 1 });
    await settled();
    const [policy] = registrations.of("pulumi-nodejs:dynamic/baremetal:RemediationPolicy");
    assert.deepEqual(policy?.["workerGroup"], { clusterName: "edge", machineDeployment: "edge-workers", namespace: "cpaas-system", replicas: 2 });
  });
});

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => [key, sorted(item)]),
  );
}
