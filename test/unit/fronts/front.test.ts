import assert from "node:assert/strict";

import sinon from "sinon";

import { systemClock } from "../../../provider/clock.ts";
import { ClusterError } from "../../../provider/cluster/errors.ts";
import { dynamicFront } from "../../../provider/fronts/dynamic/front.ts";
import type { DynamicFront } from "../../../provider/fronts/dynamic/front.ts";
import { PartialFailure, UNKNOWN } from "../../../provider/resources/lifecycle.ts";
import type { Lifecycle, VerbContext } from "../../../provider/resources/lifecycle.ts";
import { FakeCluster } from "../fakes/fake-cluster.ts";

type AnyLifecycle = Lifecycle<unknown, unknown>;

const inputs = { resourceName: "workers", owner: "p/s/workers", replicas: 3 };
const stored = { ...inputs, __provider: "text" };

describe("the dynamic front", () => {
  const openCluster = sinon.stub();
  let lifecycle: sinon.SinonStubbedInstance<AnyLifecycle>;
  let front: DynamicFront;
  let lines: string[];

  beforeEach(() => {
    lines = [];
    openCluster.reset();
    lifecycle = {
      check: sinon.stub<Parameters<AnyLifecycle["check"]>, ReturnType<AnyLifecycle["check"]>>(),
      diff: sinon.stub<Parameters<AnyLifecycle["diff"]>, ReturnType<AnyLifecycle["diff"]>>(),
      create: sinon.stub<Parameters<AnyLifecycle["create"]>, ReturnType<AnyLifecycle["create"]>>(),
      read: sinon.stub<Parameters<AnyLifecycle["read"]>, ReturnType<AnyLifecycle["read"]>>(),
      update: sinon.stub<Parameters<AnyLifecycle["update"]>, ReturnType<AnyLifecycle["update"]>>(),
      delete: sinon.stub<Parameters<AnyLifecycle["delete"]>, ReturnType<AnyLifecycle["delete"]>>(),
    };
    front = dynamicFront({
      resources: { WorkerGroup: { lifecycle, inputKeys: ["resourceName", "owner", "replicas"] } },
      openCluster,
      bmcs: { bmc: () => assert.fail("no BMC is used here"), close: () => Promise.resolve() },
      clock: systemClock,
      print: (line) => lines.push(line),
    });
  });

  it("checks without the stored provider, and without olds for what does not exist yet", async () => {
    lifecycle.check.resolves({ inputs: { ...inputs, namespace: undefined }, failures: [{ property: "replicas", reason: "too many" }] });
    const news = { ...stored, version: UNKNOWN };
    assert.deepEqual(await front.call("WorkerGroup", "check", [{}, news]), { inputs, failures: [{ property: "replicas", reason: "too many" }] });
    assert.deepEqual(lifecycle.check.firstCall.args.slice(1), [undefined, { ...inputs, version: UNKNOWN }]);
    await front.call("WorkerGroup", "check", [stored, news]);
    assert.deepEqual(lifecycle.check.secondCall.args[1], inputs);
  });

  it("leaves the comparison to the engine where something differs, so that it can show what", async () => {
    lifecycle.diff.onFirstCall().resolves({ changed: true, replaces: ["clusterName"], deleteBeforeReplace: true });
    lifecycle.diff.onSecondCall().resolves({ changed: false, replaces: [], deleteBeforeReplace: false });
    const news = { ...stored, replicas: 4 };
    assert.deepEqual(await front.call("WorkerGroup", "diff", ["ns/w", stored, news]), { replaces: ["clusterName"], deleteBeforeReplace: true });
    assert.deepEqual(await front.call("WorkerGroup", "diff", ["ns/w", stored, stored]), { changes: false });
    assert.deepEqual(lifecycle.diff.firstCall.args.slice(1), ["ns/w", inputs, { ...inputs, replicas: 4 }]);
  });

  it("tells the engine of a change that no input shows, which it would skip otherwise", async () => {
    lifecycle.diff.resolves({ changed: true, replaces: [], deleteBeforeReplace: false });
    assert.deepEqual(await front.call("WorkerGroup", "diff", ["ns/w", stored, stored]), { changes: true, replaces: [], deleteBeforeReplace: false });
  });

  it("creates, updates and deletes with outputs as JSON", async () => {
    lifecycle.create.resolves({ id: "ns/w", state: { ...inputs, at: new Date(0), none: undefined } });
    lifecycle.update.resolves({ ...inputs, big: 4n });
    lifecycle.delete.resolves();
    assert.deepEqual(await front.call("WorkerGroup", "create", [stored]), { id: "ns/w", outs: { ...inputs, at: "1970-01-01T00:00:00.000Z" } });
    assert.deepEqual(await front.call("WorkerGroup", "update", ["ns/w", stored, stored]), { outs: { ...inputs, big: 4 } });
    assert.equal(await front.call("WorkerGroup", "delete", ["ns/w", stored]), undefined);
    assert.deepEqual(lifecycle.delete.firstCall.args.slice(1), ["ns/w", inputs]);
  });

  it("reads: gone is an empty id, and what is there now comes back as inputs too, so that drift shows", async () => {
    lifecycle.read.onFirstCall().resolves(undefined);
    lifecycle.read.onSecondCall().resolves({ id: "ns/w", state: { ...inputs, replicas: 2, machineDeployment: "edge-workers" } });
    assert.deepEqual(await front.call("WorkerGroup", "read", ["ns/w", stored]), { id: "" });
    assert.deepEqual(await front.call("WorkerGroup", "read", ["ns/w", stored]), {
      id: "ns/w",
      props: { ...inputs, replicas: 2, machineDeployment: "edge-workers" },
      inputs: { ...inputs, replicas: 2 },
    });
  });

  it("keeps what was created in part, with the provider that can go on with it", async () => {
    lifecycle.create.rejects(new PartialFailure("ns/w", { replicas: 3 }, ["not ready"]));
    await assert.rejects(front.call("WorkerGroup", "create", [stored]), {
      id: "ns/w",
      properties: { replicas: 3, __provider: "text" },
      reasons: ["not ready"],
      message: "not ready",
    });
    lifecycle.update.rejects(new PartialFailure("ns/w", { replicas: 4 }, ["not ready"]));
    await assert.rejects(front.call("WorkerGroup", "update", ["ns/w", stored, { ...stored, __provider: "new text" }]), {
      id: "ns/w",
      properties: { replicas: 4, __provider: "new text" },
    });
  });

  it("configures namespace and kubeconfig from the stack, and opens the cluster once", async () => {
    const cluster = new FakeCluster();
    openCluster.onFirstCall().rejects(new ClusterError("unreachable", "GET /version", "down"));
    openCluster.resolves(cluster);
    const contexts: VerbContext[] = [];
    lifecycle.check.callsFake(async (context) => {
      contexts.push(context);
      await context.cluster();
      return { inputs, failures: [] };
    });
    const values: Record<string, string> = { "baremetal:namespace": "cpaas-system", "baremetal:kubeconfig": "/k" };
    await front.call("WorkerGroup", "configure", [{ get: (key: string) => values[key] }]);
    await assert.rejects(front.call("WorkerGroup", "check", [{}, stored]), {
      message: "the management cluster does not answer: down; check the kubeconfig (baremetal:kubeconfig, else KUBECONFIG) and the way to it",
    });
    await front.call("WorkerGroup", "check", [{}, stored]);
    await front.call("WorkerGroup", "check", [{}, stored]);
    assert.equal(openCluster.callCount, 2);
    assert.deepEqual(openCluster.lastCall.args, [{ kubeconfig: "/k", context: undefined, namespace: "cpaas-system" }]);
    assert.equal(contexts[0]?.defaultNamespace, "cpaas-system");
  });

  it("prefixes lines with kind and logical name", async () => {
    lifecycle.check.callsFake((context) => {
      context.report.info("takes rack1-07");
      return Promise.resolve({ inputs, failures: [] });
    });
    await front.call("WorkerGroup", "check", [{}, stored]);
    assert.deepEqual(lines, ["pulumi-baremetal: WorkerGroup workers: takes rack1-07"]);
  });

  it("explains a kind or a verb that this version does not know", async () => {
    await assert.rejects(front.call("Future", "create", [stored]), {
      message: /^this version of the npm package pulumi-baremetal does not know the resource Future;/,
    });
    await assert.rejects(front.call("WorkerGroup", "list", [stored]), {
      message: /^this version of the npm package pulumi-baremetal does not know the verb list;/,
    });
  });
});
