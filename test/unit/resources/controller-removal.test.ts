import assert from "node:assert/strict";

import { configMaps } from "../../../provider/cluster/kinds.ts";
import { machineInventories } from "../../../provider/hosts/kinds.ts";
import { resources } from "../../../provider/resources/index.ts";
import type { Json } from "../../../provider/resources/inputs.ts";
import type { FakeCluster } from "../fakes/fake-cluster.ts";
import type { TestContext } from "./context.ts";
import { contextFor, run } from "./context.ts";
import { fakeManagement, NAMESPACE, seedInventory } from "./fake-cluster-api.ts";

const { ControllerRemoval } = resources;
const settings = `${NAMESPACE}/pulumi-baremetal`;
const HOLD = "pulumi-baremetal.dev/power-hold";
const inputs: Json = { namespaces: [NAMESPACE], settings: { namespace: NAMESPACE, name: "pulumi-baremetal" }, waitTimeout: "60s" };

function world(data: Record<string, string> = {}): { cluster: FakeCluster; context: TestContext } {
  const cluster = fakeManagement();
  cluster.seed(configMaps, { metadata: { name: "pulumi-baremetal", namespace: NAMESPACE }, data });
  return { cluster, context: contextFor(cluster) };
}

function dataOf(cluster: FakeCluster): unknown {
  return cluster.peek(configMaps, settings)?.["data"];
}

describe("the last step of the controller's removal", () => {
  it("turns a stop switch off that an earlier removal left on, and touches nothing else", async () => {
    const { cluster, context } = world({ stop: "true", budget: "1" });
    const { id, state } = await ControllerRemoval.create(context, inputs);
    assert.equal(id, settings);
    assert.deepEqual(dataOf(cluster), { stop: "false", budget: "1" });
    assert.equal(state["stopped"], false);
  });

  it("takes another waitTimeout into its state, by which a removal goes", async () => {
    const { context } = world();
    const { state } = await ControllerRemoval.create(context, inputs);
    const news = { ...inputs, waitTimeout: "7m" };
    assert.equal((await ControllerRemoval.diff(context, settings, state, news)).changed, true);
    assert.equal((await ControllerRemoval.update(context, settings, state, news))["waitTimeout"], "7m");
  });

  it("writes nothing where the switch is off", async () => {
    const { cluster, context } = world();
    await ControllerRemoval.create(context, inputs);
    assert.deepEqual(
      cluster.requests.filter(({ write }) => write),
      [],
    );
  });

  it("turns the switch on, then waits until no host is held and the controller has seen the switch", async () => {
    const { cluster, context } = world({ budget: "1" });
    seedInventory(cluster, "inv-1", { [HOLD]: "{}" });
    const begun = context.clock.now();
    let seconds = 0;
    await run(context, ControllerRemoval.delete(context, settings, inputs), () => {
      assert.deepEqual(dataOf(cluster), { stop: "true", budget: "1" });
      if (++seconds === 7) cluster.edit(machineInventories, `${NAMESPACE}/inv-1`, (object) => (object.metadata.annotations = {}));
    });
    assert.equal((context.clock.now() - begun) / 1000, 17);
    assert.ok(context.lines.includes("status: hosts still held off: MachineInventory cpaas-system/inv-1"));
  });

  it("begins its count anew when a repair starts that had not seen the switch", async () => {
    const { cluster, context } = world();
    seedInventory(cluster, "inv-1");
    const begun = context.clock.now();
    let seconds = 0;
    await run(context, ControllerRemoval.delete(context, settings, inputs), () => {
      seconds++;
      if (seconds === 3) cluster.edit(machineInventories, `${NAMESPACE}/inv-1`, (object) => (object.metadata.annotations = { [HOLD]: "{}" }));
      if (seconds === 20) cluster.edit(machineInventories, `${NAMESPACE}/inv-1`, (object) => (object.metadata.annotations = {}));
    });
    assert.equal((context.clock.now() - begun) / 1000, 30);
  });

  it("fails past its time and names the hosts that are still held", async () => {
    const { cluster, context } = world();
    seedInventory(cluster, "inv-1", { [HOLD]: "{}" });
    await assert.rejects(run(context, ControllerRemoval.delete(context, settings, inputs)), {
      message:
        "after 60s, hosts still held off: MachineInventory cpaas-system/inv-1. The controller stays, with nothing new begun, so that they are started again; the controller has to start the hosts that it holds off; look at its Pods and at the BMCs of these hosts. Then run destroy again, or run up to let it work on",
    });
    assert.deepEqual(dataOf(cluster), { stop: "true" });
    assert.equal((await ControllerRemoval.diff(context, settings, { ...inputs, stopped: false }, inputs)).changed, true);
    await ControllerRemoval.update(context, settings, inputs, inputs);
    assert.deepEqual(dataOf(cluster), { stop: "false" });
  });
});
