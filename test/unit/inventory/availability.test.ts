import assert from "node:assert/strict";

import type { LiveObject } from "../../../provider/cluster/objects.ts";
import { type AvailabilityPool, availabilityOf } from "../../../provider/hosts/availability.ts";
import { BmcTargetError, bmcTargetOf } from "../../../provider/hosts/bmc-target.ts";
import { secrets } from "../../../provider/cluster/kinds.ts";
import { FakeCluster } from "../fakes/fake-cluster.ts";

const pool: AvailabilityPool = { name: "workers", members: ["inv-1"], poolExists: (name) => name === "workers" || name === "others" };

function inventoryOf(
  change: { annotations?: Record<string, string>; spec?: object; status?: object; deletionTimestamp?: string; name?: string } = {},
): LiveObject {
  const { annotations = {}, spec = {}, status = { conditions: [{ type: "Ready", status: "True" }] }, name = "inv-1", ...metadata } = change;
  return {
    apiVersion: "elemental.cattle.io/v1beta1",
    kind: "MachineInventory",
    metadata: { name, namespace: "edge", uid: "u", resourceVersion: "1", annotations, ...metadata },
    spec,
    status,
  };
}

const ours = "baremetal.alauda.io";

describe("availability of an inventory", () => {
  const available: [string, Parameters<typeof inventoryOf>[0]][] = [
    ["registered and Ready", {}],
    ["released by a machine of the same pool", { annotations: { [`${ours}/allocation-state`]: "Available", [`${ours}/pool`]: "workers" } }],
    ["of a pool that is gone", { annotations: { [`${ours}/pool`]: "gone" } }],
    [
      "with volumes that are Prepared",
      { spec: { storage: { volumes: [{}] } }, status: { conditions: [{ type: "Ready", status: "True" }], storage: { phase: "Prepared" } } },
    ],
  ];
  for (const [name, change] of available)
    it(`is given when it is ${name}`, () => assert.deepEqual(availabilityOf(inventoryOf(change), pool), { available: true }));

  const not: [string, Parameters<typeof inventoryOf>[0]][] = [
    ["is not declared in pool workers", { name: "inv-9" }],
    ["is being deleted", { deletionTimestamp: "2026-01-01T00:00:00Z" }],
    ["is in use by machine m1", { annotations: { [`${ours}/allocation-state`]: "Allocated", [`${ours}/owner-uid`]: "x", [`${ours}/owner-name`]: "m1" } }],
    [
      "is being given up by machine m1",
      { annotations: { [`${ours}/allocation-state`]: "Preparing", [`${ours}/owner-uid`]: "x", [`${ours}/owner-name`]: "m1" } },
    ],
    ["belongs to pool others", { annotations: { [`${ours}/pool`]: "others" } }],
    [
      "is quarantined (stays off)",
      {
        annotations: {
          [`${ours}/allocation-state`]: "Quarantined",
          "pulumi-baremetal.dev/unhealthy": JSON.stringify({ reason: "stays off", at: "2026-01-01T00:00:00Z", by: "x" }),
        },
      },
    ],
    ["is marked unhealthy (a person said so)", { annotations: { "pulumi-baremetal.dev/unhealthy": "a person said so" } }],
    ["is held off by a repair", { annotations: { "pulumi-baremetal.dev/power-hold": "{}" } }],
    ["is being cleaned", { annotations: { [`${ours}/allocation-state`]: "Preparing" } }],
    ["is marked Allocated, but names no machine that uses it", { annotations: { [`${ours}/allocation-state`]: "Allocated" } }],
    ["is not Ready (it has no Ready condition yet)", { status: {} }],
    ["is not Ready (PlanFailure)", { status: { conditions: [{ type: "Ready", status: "False", reason: "PlanFailure" }] } }],
    ["declares storage volumes that are not Prepared", { spec: { storage: { volumes: [{}] } } }],
  ];
  for (const [reason, change] of not)
    it(`is not given when it ${reason}`, () => assert.deepEqual(availabilityOf(inventoryOf(change), pool), { available: false, reason }));

  it("is not given when it is not registered", () => {
    assert.deepEqual(availabilityOf(undefined, pool), { available: false, reason: "is not registered (no MachineInventory of that name)" });
  });

  it("is told of an odd object as of any other", () => {
    assert.deepEqual(availabilityOf({ ...inventoryOf(), status: { conditions: "odd" }, spec: 7 }, pool), {
      available: false,
      reason: "is not Ready (it has no Ready condition yet)",
    });
  });
});

describe("BMC of an inventory", () => {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const annotations = { "pulumi-baremetal.dev/bmc-address": "https://bmc", "pulumi-baremetal.dev/bmc-secret": "creds" };

  it("is none where none is named", async () => {
    assert.equal(await bmcTargetOf(inventoryOf(), new FakeCluster()), undefined);
  });

  it("has credentials, trust and the explicit opt-out", async () => {
    const cluster = new FakeCluster();
    cluster.seed(secrets, { metadata: { name: "creds", namespace: "edge" }, data: { username: base64("admin"), password: base64("s3cret") } });
    cluster.seed(secrets, { metadata: { name: "ca", namespace: "edge" }, data: { "ca.crt": base64("PEM") } });
    assert.deepEqual(await bmcTargetOf(inventoryOf({ annotations }), cluster), { address: "https://bmc", username: "admin", password: "s3cret" });
    const all = { ...annotations, "pulumi-baremetal.dev/bmc-ca-secret": "ca", "pulumi-baremetal.dev/bmc-insecure": "true" };
    assert.deepEqual(await bmcTargetOf(inventoryOf({ annotations: all }), cluster), {
      address: "https://bmc",
      username: "admin",
      password: "s3cret",
      certificateAuthority: "PEM",
      insecure: true,
    });
  });

  it("says what is missing, without any credential", async () => {
    const cluster = new FakeCluster();
    const message = async (change: Record<string, string>): Promise<string> => {
      const error: unknown = await bmcTargetOf(inventoryOf({ annotations: change }), cluster).catch((thrown: unknown) => thrown);
      return error instanceof BmcTargetError ? error.message : "";
    };
    assert.equal(
      await message(annotations),
      "the Secret edge/creds that MachineInventory inv-1 names for its BMC does not exist; create it with the keys username and password",
    );
    cluster.seed(secrets, { metadata: { name: "creds", namespace: "edge" }, data: { username: base64("admin") } });
    assert.equal(await message(annotations), "the Secret edge/creds has no key password; add it");
    assert.equal(
      await message({ "pulumi-baremetal.dev/bmc-address": "https://bmc" }),
      "MachineInventory inv-1 names a BMC but no Secret; set the annotation pulumi-baremetal.dev/bmc-secret",
    );
  });
});
