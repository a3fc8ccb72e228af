import assert from "node:assert/strict";

import { baremetalMachines } from "../../../provider/hosts/kinds.ts";
import { metal3Remediations } from "../../../provider/capi/kinds.ts";
import { customResourceDefinitions, leases } from "../../../provider/cluster/kinds.ts";
import { qualifiedName } from "../../../provider/cluster/objects.ts";
import { ArgumentsError, argumentsOf } from "../../../provider/controller/arguments.ts";
import { KindOwnership } from "../../../provider/controller/kind-ownership.ts";
import { ControllerProcess } from "../../../provider/controller/process.ts";
import { JsonLog } from "../../../provider/controller/runtime/log.ts";
import { FakeBmcs } from "../fakes/fake-bmcs.ts";
import { FakeCluster } from "../fakes/fake-cluster.ts";
import { ManualClock } from "../fakes/manual-clock.ts";
import { QuietLog } from "../fakes/quiet-log.ts";

const env = { POD_NAMESPACE: "system", POD_NAME: "controller-0", POD_IP: "127.0.0.1", NODE_NAME: "n1" };

describe("arguments of the process", () => {
  it("are what the Pod says", () => {
    assert.deepEqual(argumentsOf({ controllers: "inventory, remediation,inventory", namespaces: "a,b,a", settings: "system/config" }, env, "host"), {
      controllers: ["inventory", "remediation"],
      namespaces: ["a", "b"],
      settings: { namespace: "system", name: "config" },
      podName: "controller-0",
      podNamespace: "system",
      listenAddress: "127.0.0.1",
      nodeName: "n1",
    });
  });

  it("have defaults", () => {
    assert.deepEqual(argumentsOf({}, { POD_NAMESPACE: "system" }, "host"), {
      controllers: ["remediation"],
      namespaces: ["system"],
      settings: { namespace: "system", name: "pulumi-baremetal" },
      podName: "host",
      podNamespace: "system",
      listenAddress: "0.0.0.0",
      nodeName: "",
    });
  });

  const wrong: [Parameters<typeof argumentsOf>[0], Record<string, string>, string][] = [
    [{ controllers: "repair" }, env, '--controllers: "repair" is no controller; choose from remediation, inventory'],
    [{ controllers: "," }, env, "--controllers is empty; name at least one of remediation, inventory"],
    [{ namespaces: " , " }, env, "--namespaces is empty; name the namespaces whose machines are looked after"],
    [{ settings: "config" }, env, '--settings: "config" is not <namespace>/<name of a ConfigMap>'],
    [{}, {}, "the environment variable POD_NAMESPACE is not set; set it to the namespace of the Pod (fieldRef metadata.namespace)"],
  ];
  for (const [values, given, message] of wrong) {
    it(`are refused: ${message}`, () => {
      assert.throws(
        () => argumentsOf(values, given, "host"),
        (error) => error instanceof ArgumentsError && error.message === message,
      );
    });
  }
});

describe("a kind that another installation may have brought", () => {
  const name = qualifiedName(metal3Remediations);

  it("is worked on only while its definition is ours or not there", async () => {
    const clock = new ManualClock();
    const cluster = new FakeCluster({ now: () => clock.now() });
    const ownership = new KindOwnership({ cluster, clock, log: new QuietLog() });
    const end = new AbortController();
    let working = 0;
    const work = async (halt: AbortSignal): Promise<void> => {
      working++;
      await new Promise<void>((resolve) => halt.addEventListener("abort", () => resolve(), { once: true }));
      working--;
    };
    const done = ownership.whileOurs(metal3Remediations, work, end.signal);
    await clock.advance(0);
    assert.deepEqual([working, ownership.foreign()], [1, []]);
    cluster.seed(customResourceDefinitions, { metadata: { name, labels: { "cluster.x-k8s.io/provider": "infrastructure-metal3" } } });
    await clock.advance(30_000);
    assert.deepEqual([working, ownership.foreign()], [0, [name]]);
    cluster.fail(() => true, "unreachable");
    await clock.advance(30_000);
    assert.equal(working, 0);
    cluster.edit(customResourceDefinitions, name, ({ metadata }) => (metadata.labels = { "app.kubernetes.io/managed-by": "pulumi-baremetal" }));
    await clock.advance(30_000);
    assert.deepEqual([working, ownership.foreign()], [1, []]);
    end.abort();
    await done;
    assert.equal(working, 0);
  });
});

describe("the controller process", () => {
  it("stays ready without Cluster API, names what is missing, and releases the Lease when it is stopped", async () => {
    const clock = new ManualClock();
    const cluster = new FakeCluster({ now: () => clock.now() });
    cluster.unserve(baremetalMachines);
    const lines: string[] = [];
    const log = new JsonLog(clock, (line) => lines.push(line));
    const settings = argumentsOf({ controllers: "inventory,remediation" }, env, "host");
    const controller = new ControllerProcess({ cluster, bmcs: new FakeBmcs(clock), clock, log, arguments: settings, healthPort: 0 });
    const stop = new AbortController();
    const done = controller.run(stop.signal);
    await clock.advance(100);
    const started = lines.find((line) => line.includes('"started"')) ?? "";
    const port = /"health":"127\.0\.0\.1:(\d+)"/.exec(started)?.[1];
    const ask = async (path: string): Promise<[number, string]> => {
      const answer = await fetch(`http://127.0.0.1:${port ?? ""}${path}`);
      return [answer.status, await answer.text()];
    };
    const [status, body] = await ask("/readyz");
    assert.equal(status, 200);
    assert.deepEqual(JSON.parse(body), {
      ok: true,
      problems: [],
      leading: true,
      missingKinds: ["baremetalmachines.infrastructure.cluster.x-k8s.io"],
      foreignKinds: [],
      stopped: false,
    });
    const [, metrics] = await ask("/metrics");
    assert.match(metrics, /pulumi_baremetal_kind_missing\{kind="baremetalmachines\.infrastructure\.cluster\.x-k8s\.io"\} 1\n/);
    assert.match(metrics, /pulumi_baremetal_leader 1\n/);
    stop.abort();
    await clock.advance(1_000);
    await done;
    const spec = cluster.peek(leases, "system/pulumi-baremetal-controller")?.["spec"];
    assert.equal(typeof spec === "object" && spec !== null && Reflect.get(spec, "holderIdentity"), "");
  });
});
