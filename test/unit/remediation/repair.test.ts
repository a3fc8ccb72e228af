import assert from "node:assert/strict";

import { clusters, hostRemediations, machines } from "../../../provider/capi/kinds.ts";
import { nodes } from "../../../provider/cluster/kinds.ts";
import { OWNER_REMEDIATED } from "../../../provider/controller/remediation/views.ts";
import { machineInventories } from "../../../provider/hosts/kinds.ts";
import {
  allocationAnnotations,
  CONFIRMED_OFF_ANNOTATION,
  HISTORY_ANNOTATION,
  POWER_HOLD_ANNOTATION,
  UNHEALTHY_ANNOTATION,
} from "../../../provider/hosts/names.ts";
import { annotate, at, Bench, hostKey, key, machineName, namespace, nodeName, PASSWORD, strategy } from "./bench.ts";

describe("a remediation, on clusters in memory", () => {
  let bench: Bench;

  beforeEach(() => {
    bench = new Bench();
  });

  afterEach(() => {
    const written = JSON.stringify([bench.management.requests, bench.workload.requests, bench.log.lines, bench.events]);
    assert.equal(written.includes(PASSWORD), false, "the BMC's password was written");
  });

  const held = (): boolean => bench.hold.state === "held";

  async function repaired(): Promise<void> {
    await bench.until(() => bench.reason === "Booting" && !held());
    bench.boots("boot-2");
    await bench.until(() => bench.condition("Succeeded") === "True/NodeReady");
  }

  it("powers off, proves it, fences, drains, powers on and takes the taint away after a new boot, in that order", async () => {
    bench.remediate();
    await bench.until(() => bench.status.phase === "Waiting");
    assert.deepEqual(bench.deeds, [
      "patch hostremediations", // the finalizer
      "patch machineinventories", // the hold
      "replace hostremediations/status",
      "ForceOff",
      "replace hostremediations/status", // accepted
      "patch machineinventories", // what will be done to the Node
      "workload patch nodes",
      "replace hostremediations/status",
      "replace hostremediations/status",
      "patch machineinventories", // the intent to power on
      "replace hostremediations/status",
      "On",
    ]);
    assert.deepEqual(bench.taints, ["node.kubernetes.io/unreachable", "node.kubernetes.io/out-of-service=pulumi-baremetal"]);
    await repaired();
    assert.deepEqual(bench.taints, ["node.kubernetes.io/unreachable"]);
    assert.deepEqual(
      bench.bmc.actions.map(({ action }) => action),
      ["ForceOff", "On"],
    );
    const { fencing, retryCount } = bench.status;
    assert.deepEqual(
      [fencing?.mode, fencing?.bootBefore, fencing?.bootAfter, fencing?.readings.map(({ literal }) => literal), retryCount],
      ["Taint", "boot-1", "boot-2", ["Off", "Off"], undefined],
    );
    const history: unknown = JSON.parse(bench.object(machineInventories, hostKey).metadata.annotations?.[HISTORY_ANNOTATION] ?? "[]");
    assert.deepEqual(
      [history].flat().map((record) => at(record, "outcome")),
      ["PowerCycled"],
    );
    assert.ok(
      bench.events.includes("HostRemediation Fenced") && bench.events.includes("Machine OffProven") && bench.events.includes("MachineInventory PowerOffAsked"),
    );
    await bench.management.delete(hostRemediations, { namespace, name: machineName });
    await bench.until(() => !bench.exists);
  });

  it("needs no more than 22 requests of the management API", async () => {
    bench.remediate();
    bench.management.requests.length = 0;
    await repaired();
    assert.ok(bench.management.requests.length <= 22, `${bench.management.requests.length} requests`);
  });

  it("is not drained while a Pod is ending or a volume is attached, and says which", async () => {
    bench.remediate();
    bench.workload.seed(
      { group: "", version: "v1", plural: "pods", kind: "Pod", namespaced: true },
      { metadata: { name: "db-0", namespace: "default", deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["a/b"] }, spec: { nodeName } },
    );
    await bench.until(() => bench.reason === "Draining");
    await bench.until(() => bench.status.phase === "Waiting");
    const drained = bench.status.conditions?.find(({ type }) => type === "Drained");
    assert.deepEqual([drained?.status, drained?.reason, drained?.message], ["False", "DrainIncomplete", "Pod default/db-0"]);
    assert.ok(bench.clock.now() - Date.parse(bench.status.fencing?.offProvenAt ?? "") >= 20_000);
  });

  it("backs a Node up and deletes it before Kubernetes 1.28, and restores what the new one lacks", async () => {
    bench.workload.serverVersion = () => Promise.resolve("v1.27.9");
    bench.remediate();
    await bench.until(() => bench.reason === "Booting" && !held());
    assert.equal(bench.workload.peek(nodes, nodeName), undefined);
    bench.workload.seed(nodes, {
      metadata: { name: nodeName, labels: { zone: "b" } },
      spec: {},
      status: { nodeInfo: { bootID: "boot-2" }, conditions: [{ type: "Ready", status: "True" }] },
    });
    await bench.until(() => bench.condition("Succeeded") === "True/NodeReady");
    assert.deepEqual([bench.node?.metadata.labels, bench.node?.metadata.annotations], [{ zone: "b", rack: "1" }, { note: "kept" }]);
  });

  it("power-cycles a host whose Machine has no Node", async () => {
    bench.management.edit(machines, key, (machine) => (machine["status"] = {}));
    bench.remediate();
    await bench.until(() => bench.status.phase === "Waiting");
    assert.deepEqual([bench.condition("Fenced"), bench.workload.requests.length], ["Unknown/NoNode", 0]);
  });

  it("leaves somebody else's out-of-service taint alone, and takes it for the fence", async () => {
    bench.workload.edit(nodes, nodeName, (node) => {
      node["spec"] = { taints: [{ key: "node.kubernetes.io/out-of-service", value: "nodeshutdown", effect: "NoExecute" }] };
    });
    bench.remediate();
    await repaired();
    assert.deepEqual(bench.taints, ["node.kubernetes.io/out-of-service=nodeshutdown"]);
    assert.equal(bench.status.fencing?.mode, "Foreign");
  });

  it("does not take Ready for a new boot", async () => {
    bench.remediate();
    await bench.until(() => bench.reason === "Booting" && !held());
    bench.boots("boot-1");
    await bench.for(60_000);
    assert.deepEqual(bench.taints.length, 2);
    assert.notEqual(bench.condition("Succeeded"), "True/NodeReady");
  });

  it("never fences a host that is not proven off, says so, and goes on once the BMC answers", async () => {
    bench.bmc.fault = "timeout";
    bench.remediate();
    await bench.until(() => bench.reason === "OffNotProven");
    assert.deepEqual([bench.status.phase, bench.status.retryCount, bench.taints.length, held()], ["Failed", undefined, 1, true]);
    await bench.for(600_000);
    assert.deepEqual([bench.reason, bench.taints.length], ["OffNotProven", 1]);
    bench.bmc.fault = undefined;
    await repaired();
    assert.deepEqual([bench.status.attempts, bench.bmc.actions.map(({ action }) => action)], [1, ["ForceOff", "On"]]);
  });

  it("takes only the literal Off for off", async () => {
    bench.bmc.shown = "other";
    bench.remediate();
    await bench.for(19_000);
    assert.deepEqual([bench.bmc.power, bench.status.phase, bench.taints.length], ["off", "Running", 1]);
  });

  it("fences on a person's word for this very Machine, and uses it up", async () => {
    bench.bmc.fault = "unreachable";
    bench.remediate();
    await bench.until(() => bench.reason === "OffNotProven");
    bench.management.edit(machineInventories, hostKey, (host) => annotate(host, CONFIRMED_OFF_ANNOTATION, "another-machine"));
    await bench.for(60_000);
    assert.equal(bench.taints.length, 1);
    const { uid } = bench.object(machines, key).metadata;
    bench.management.edit(machineInventories, hostKey, (host) => annotate(host, CONFIRMED_OFF_ANNOTATION, uid));
    await bench.until(() => bench.taints.length === 2);
    assert.equal(bench.object(machineInventories, hostKey).metadata.annotations?.[CONFIRMED_OFF_ANNOTATION], undefined);
  });

  it("tries once more, then proves off, marks the host and offers the Machine, in that order", async () => {
    bench.bmc.ignoresOn = true;
    bench.remediate();
    await bench.until(() => bench.status.phase === "Deleting machine");
    assert.deepEqual(bench.bmc.actions.filter(({ action }) => action === "ForceOff").length, 3);
    assert.deepEqual([bench.status.retryCount, bench.status.attempts, bench.reason], [1, 2, "Offered"]);
    assert.deepEqual(bench.deeds.slice(-3), ["patch machineinventories", "patch machines/status", "replace hostremediations/status"]);
    const mark: unknown = JSON.parse(bench.object(machineInventories, hostKey).metadata.annotations?.[UNHEALTHY_ANNOTATION] ?? "");
    assert.deepEqual([at(mark, "reason"), at(mark, "by")], ["2 power cycles did not help (OnTimeout)", "remediation"]);
    const { status } = bench.object(machines, key);
    const list = (conditions: unknown): unknown[] => [conditions].flat().map((condition) => [at(condition, "type"), at(condition, "status")].join("="));
    assert.deepEqual(list(at(status, "conditions")), ["HealthCheckSucceeded=False", `${OWNER_REMEDIATED}=False`]);
    assert.deepEqual(list(at(status, "deprecated", "v1beta1", "conditions")), [`${OWNER_REMEDIATED}=False`]);
    assert.equal(bench.hold.state === "held" && bench.hold.hold.purpose, "replace");
    const deeds = bench.deeds.length;
    await bench.for(600_000);
    assert.equal(bench.deeds.length, deeds, "an offered Machine is left alone");
  });

  it("does not offer a Machine whose host cannot be marked", async () => {
    bench.bmc.ignoresOn = true;
    bench.remediate();
    bench.management.fail(({ body }) => JSON.stringify(body ?? "").includes(UNHEALTHY_ANNOTATION), "forbidden", { times: 1_000 });
    await assert.rejects(
      bench.until(() => bench.status.phase === "Deleting machine"),
      { kind: "forbidden" },
    );
    assert.equal(JSON.stringify(bench.object(machines, key)["status"]).includes(OWNER_REMEDIATED), false);
  });

  it("hands the hold of an offered Machine over when it is deleted", async () => {
    bench.bmc.ignoresOn = true;
    bench.remediate();
    await bench.until(() => bench.status.phase === "Deleting machine");
    bench.management.edit(machines, key, (machine) =>
      Object.assign(machine.metadata, { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["machine.cluster.x-k8s.io"] }),
    );
    await bench.until(() => !bench.finalizer);
    assert.deepEqual([held(), bench.bmc.power], [true, "off"]);
    assert.equal(bench.object(machines, key).metadata.annotations?.["cluster.x-k8s.io/skip-remediation"], "");
  });

  it("undoes one that is deleted mid-way: the host comes on again, the Node gets its place back", async () => {
    bench.remediate();
    await bench.until(() => bench.reason === "Draining");
    await bench.management.delete(hostRemediations, { namespace, name: machineName });
    await bench.until(() => bench.bmc.power === "on" && !held());
    assert.equal(bench.exists, true);
    bench.boots("boot-2");
    await bench.until(() => !bench.exists);
    assert.deepEqual([bench.taints, bench.bmc.actions.map(({ action }) => action)], [["node.kubernetes.io/unreachable"], ["ForceOff", "On"]]);
  });

  it("drops the hold at once where the BMC had refused the power-off", async () => {
    bench.remediate();
    bench.management.before = ({ write, key: written }) => {
      if (write && written === hostKey) bench.bmc.fault = "unauthorized";
    };
    await bench.until(() => held());
    await bench.management.delete(hostRemediations, { namespace, name: machineName });
    await bench.until(() => !bench.exists, 5_000);
    assert.deepEqual([held(), bench.bmc.actions], [false, []]);
  });

  /** One process writes the hold and loses the Lease; another asks power-off and dies; the first one leads again. */
  async function ledByAnotherMeanwhile(): Promise<void> {
    const first = bench.reconciler;
    bench.remediate();
    bench.management.fail(() => held(), "timeout");
    await assert.rejects(
      bench.until(() => bench.bmc.power === "off"),
      { kind: "timeout" },
    );
    assert.deepEqual([bench.hold.state === "held" && bench.hold.hold.wasOn, bench.bmc.actions], [true, []]);
    bench.restart();
    await bench.until(() => bench.bmc.power === "off");
    bench.reconciler = first;
  }

  async function comesOnAgain(): Promise<void> {
    await bench.management.delete(hostRemediations, { namespace, name: machineName });
    await bench.until(() => !bench.exists);
    assert.deepEqual(
      [held(), bench.bmc.power, bench.bmc.actions.map(({ action }) => action), bench.events.some((event) => event.endsWith("HoldDropped"))],
      [false, "on", ["ForceOff", "On"], false],
    );
  }

  it("does not drop the hold of a host that reads off, although it never asked for that itself", async () => {
    await ledByAnotherMeanwhile();
    await comesOnAgain();
  });

  it("remembers nothing of an earlier leadership: power-off may take effect after the first look", async () => {
    await ledByAnotherMeanwhile();
    bench.bmc.shown = "on";
    bench.reconciler.leads();
    await bench.management.delete(hostRemediations, { namespace, name: machineName });
    await bench.for(5_000);
    assert.deepEqual([held(), bench.exists, bench.bmc.power], [true, true, "off"]);
    bench.bmc.shown = undefined;
    await comesOnAgain();
  });

  it("undoes no hold whose remediation exists and is only not in view", async () => {
    bench.remediate();
    await bench.until(() => bench.reason === "Draining");
    const { hold } = bench;
    const deeds = bench.deeds.length;
    bench.unseen = ({ kind }) => kind === hostRemediations.kind;
    bench.restart();
    await bench.for(120_000);
    assert.deepEqual([bench.deeds.length, bench.hold, bench.bmc.power], [deeds, hold, "off"]);
    bench.unseen = () => false;
    await repaired();
  });

  for (const kind of ["kindNotServed", "timeout", "forbidden"] as const) {
    it(`undoes no hold while the API server answers ${kind} when it is asked for the remediation`, async () => {
      const { metadata } = bench.remediate();
      await bench.until(() => bench.reason === "Draining");
      bench.management.edit(hostRemediations, key, (object) => {
        object.metadata.finalizers = [];
      });
      await bench.management.delete(hostRemediations, { namespace, name: machineName }, { uid: metadata.uid });
      assert.equal(bench.exists, false);
      const deeds = bench.deeds.length;
      bench.management.fail(({ verb, resource }) => verb === "get" && resource.startsWith("hostremediations"), kind);
      await assert.rejects(bench.for(30_000), { kind });
      assert.equal(bench.deeds.length, deeds);
      await bench.until(() => bench.bmc.power === "on");
    });
  }

  it("leaves a power-on that the BMC refuses owed on the host, and goes on asking without the object", async () => {
    bench.remediate();
    await bench.until(() => bench.reason === "Draining");
    bench.bmc.fault = "busy";
    await bench.management.delete(hostRemediations, { namespace, name: machineName });
    await bench.until(() => !bench.exists);
    assert.deepEqual(bench.hold.state === "held" && [bench.hold.hold.purpose, bench.hold.hold.owed], ["undo", ["on", "untaint"]]);
    bench.restart();
    assert.deepEqual(bench.reconciler.sweep(), [key]);
    await bench.for(300_000);
    bench.bmc.fault = undefined;
    await bench.until(() => bench.bmc.power === "on");
    await bench.for(30_000);
    assert.deepEqual(bench.taints.length, 2, "the taint waits for a new boot");
    bench.boots("boot-2");
    await bench.until(() => !held());
    assert.deepEqual(bench.taints, ["node.kubernetes.io/unreachable"]);
  });

  it("lets the next remediation of the Machine take over what one before it owed", async () => {
    bench.remediate();
    await bench.until(() => bench.reason === "Draining");
    bench.management.remove(hostRemediations, key);
    bench.remediate();
    await repaired();
    assert.deepEqual([bench.taints, held()], [["node.kubernetes.io/unreachable"], false]);
  });

  for (const [what, pause] of [
    ["the Cluster", (): unknown => bench.management.edit(clusters, `${namespace}/edge`, (cluster) => (cluster["spec"] = { paused: true }))],
    ["the Machine", (): unknown => bench.management.edit(machines, key, (machine) => (machine.metadata.annotations = { "cluster.x-k8s.io/paused": "" }))],
  ] as const) {
    it(`does nothing to host or Node while ${what} is paused, and its deadlines stand still`, async () => {
      bench.remediate();
      await bench.until(() => bench.reason === "PoweringOff");
      bench.bmc.shown = "on";
      pause();
      const actions = bench.bmc.actions.length;
      await bench.for(3_600_000);
      assert.deepEqual([bench.reason, bench.bmc.actions.length, bench.taints.length, held()], ["Paused", actions, 1, true]);
      bench.management.edit(clusters, `${namespace}/edge`, (cluster) => (cluster["spec"] = {}));
      bench.management.edit(machines, key, (machine) => (machine.metadata.annotations = {}));
      await bench.once();
      assert.deepEqual([bench.status.attempts, bench.reason], [1, "PoweringOff"]);
    });
  }

  it("undoes what runs once the stop switch is on, and starts nothing", async () => {
    bench.remediate();
    await bench.until(() => bench.reason === "Draining");
    bench.settings = { stop: "true" };
    await bench.until(() => bench.bmc.power === "on" && !held());
    bench.boots("boot-2");
    await bench.until(() => bench.reason === "Stopped");
    assert.deepEqual([bench.finalizer, bench.status.phase, bench.taints.length], [false, undefined, 1]);
    await bench.for(60_000);
    assert.equal(held(), false);
    bench.settings = {};
    await bench.until(() => bench.status.attempts === 2 && held());
  });

  for (const [reason, phase, spoil] of [
    [
      "HostMismatch",
      "Failed",
      (): unknown => bench.management.edit(machineInventories, hostKey, (host) => annotate(host, allocationAnnotations.ownerUid, "another")),
    ],
    [
      "NoPowerDriver",
      "Failed",
      (): unknown => bench.management.edit(machineInventories, hostKey, (host) => annotate(host, "pulumi-baremetal.dev/bmc-address", undefined)),
    ],
    [
      "MachineDeleting",
      "Failed",
      (): unknown =>
        bench.management.edit(machines, key, (machine) =>
          Object.assign(machine.metadata, { deletionTimestamp: "2026-01-01T00:00:00Z", finalizers: ["machine.cluster.x-k8s.io"] }),
        ),
    ],
    [
      "InvalidSpec",
      "Failed",
      (): unknown => bench.management.edit(hostRemediations, key, (object) => (object["spec"] = { strategy: { ...strategy, timeoutSeconds: 5 } })),
    ],
    ["HeldByOther", undefined, (): unknown => bench.management.edit(machineInventories, hostKey, (host) => annotate(host, POWER_HOLD_ANNOTATION, "by hand"))],
    [
      "HostMismatch",
      "Failed",
      (): unknown =>
        bench.management.edit(
          hostRemediations,
          key,
          (object) =>
            (object.metadata.ownerReferences = [{ apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", name: machineName, uid: "an earlier one" }]),
        ),
    ],
  ] as const) {
    it(`does nothing and says ${reason}`, async () => {
      bench.remediate();
      spoil();
      await bench.until(() => bench.reason === reason);
      await bench.for(60_000);
      assert.deepEqual([bench.status.phase, bench.bmc.actions, bench.finalizer, bench.taints.length], [phase, [], false, 1]);
    });
  }

  it("never powers off the host that it runs on", async () => {
    bench.controllerNode = nodeName;
    bench.restart();
    bench.remediate();
    await bench.until(() => bench.reason === "OwnHost");
    assert.deepEqual([bench.status.phase, bench.bmc.actions], ["Failed", []]);
  });

  it("does nothing on a stale view, not even a status", async () => {
    bench.remediate();
    await bench.until(() => bench.reason === "PoweringOff");
    bench.fresh = false;
    const deeds = bench.deeds.length;
    await bench.for(120_000);
    assert.equal(bench.deeds.length, deeds);
  });

  it("finishes without the Node steps where the Node may not be written, and says so", async () => {
    bench.workload.fail(({ write }) => write, "forbidden", { times: 1_000 });
    bench.remediate();
    await assert.rejects(
      bench.until(() => bench.status.phase === "Waiting"),
      { kind: "forbidden" },
    );
    await bench.until(() => bench.status.phase === "Waiting");
    assert.equal(bench.condition("Fenced"), "False/NotFenced");
  });

  it("tries to write the Node again in the next remediation, however often it was forbidden before", async () => {
    bench.workload.fail(({ write }) => write, "forbidden");
    bench.remediate();
    await assert.rejects(
      bench.until(() => bench.status.phase === "Waiting"),
      { kind: "forbidden" },
    );
    await bench.until(() => bench.reason === "Booting" && !held());
    assert.equal(bench.condition("Fenced"), "False/NotFenced");
    bench.boots("boot-2");
    await bench.until(() => bench.condition("Succeeded") === "True/NodeReady");
    await bench.management.delete(hostRemediations, { namespace, name: machineName });
    await bench.until(() => !bench.exists);
    bench.boots("boot-2", "Unknown");
    bench.remediate();
    await bench.until(() => bench.reason === "Booting" && !held());
    assert.equal(bench.condition("Fenced")?.startsWith("True/"), true);
  });

  it("goes on without the Node steps once the workload API is away for their time", async () => {
    bench.workload.fail(() => true, "timeout", { times: 10_000 });
    bench.remediate();
    await bench.until(() => bench.status.phase === "Waiting");
    assert.equal(bench.condition("Fenced"), "False/NotFenced");
    await bench.for(1_800_000);
    assert.deepEqual([bench.reason, bench.status.attempts], ["WorkloadUnreachable", 1], "what cannot be seen is no reason for another power cycle");
  });

  it("counts a Node that does not stay Ready as failed after a minute", async () => {
    bench.remediate();
    await repaired();
    bench.boots("boot-2", "False");
    await bench.until(() => bench.condition("Succeeded") === "False/NotReadyAgain");
    await bench.until(() => bench.status.attempts === 2, 90_000);
  });

  for (let write = 1; write <= 16; write++) {
    for (const when of ["before", "after"] as const) {
      it(`ends the same way when it is killed ${when} write ${write}`, async () => {
        bench.remediate();
        const clusterOf = [bench.management, bench.workload];
        let writes = 0;
        let killed = false;
        const kill = (request: { write: boolean }): void => {
          if (!request.write || killed || ++writes !== write) return;
          killed = true;
          throw new Error("killed");
        };
        for (const cluster of clusterOf) cluster[when] = kill;
        const live = async (done: () => boolean): Promise<void> => {
          for (;;) {
            try {
              await bench.until(done);
              return;
            } catch (error) {
              if (!(error instanceof Error) || error.message !== "killed") throw error;
              bench.restart();
            }
          }
        };
        bench.after = () => {
          if (bench.exists && bench.reason === "Booting" && !held()) bench.boots("boot-2");
        };
        await live(() => bench.condition("Succeeded") === "True/NodeReady");
        assert.deepEqual([bench.bmc.actions.filter(({ action }) => action === "ForceOff").length, bench.bmc.power, held()], [1, "on", false]);
        assert.deepEqual(bench.taints, ["node.kubernetes.io/unreachable"]);
        assert.equal(bench.status.attempts, 1);
      });
    }
  }
});
