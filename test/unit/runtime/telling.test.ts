import assert from "node:assert/strict";

import { machines } from "../../../provider/capi/kinds.ts";
import { configMaps, events } from "../../../provider/cluster/kinds.ts";
import { ClusterError } from "../../../provider/cluster/errors.ts";
import { ClusterEvents } from "../../../provider/controller/runtime/events.ts";
import { type HealthReport, HealthServer } from "../../../provider/controller/runtime/health.ts";
import { JsonLog } from "../../../provider/controller/runtime/log.ts";
import { Metrics } from "../../../provider/controller/runtime/metrics.ts";
import { PolledSettings } from "../../../provider/controller/runtime/settings.ts";
import { FakeCluster } from "../fakes/fake-cluster.ts";
import { ManualClock } from "../fakes/manual-clock.ts";
import { QuietLog } from "../fakes/quiet-log.ts";

describe("events", () => {
  it("writes one object for what repeats within ten minutes", async () => {
    const clock = new ManualClock();
    const cluster = new FakeCluster({ now: () => clock.now() });
    const machine = cluster.seed(machines, { metadata: { name: "m1", namespace: "edge" } });
    const recorder = new ClusterEvents({ cluster, clock, log: new QuietLog(), component: "controller", instance: "pod-1" });
    for (let count = 0; count < 3; count++) {
      recorder.record(machine, { type: "Warning", reason: "OffNotProven", message: "the BMC does not answer" });
      await clock.advance(1_000);
    }
    recorder.record(machine, { type: "Normal", reason: "Cleaned", message: "" });
    await recorder.flush();
    const written = cluster.all(events);
    assert.deepEqual(
      written.map((event) => [event["reason"], event["count"], event["type"]]),
      [
        ["OffNotProven", 3, "Warning"],
        ["Cleaned", 1, "Normal"],
      ],
    );
    const involved = written[0]?.["involvedObject"];
    assert.equal(typeof involved === "object" && involved !== null && Reflect.get(involved, "uid"), machine.metadata.uid);
    await clock.advance(600_000);
    recorder.record(machine, { type: "Warning", reason: "OffNotProven", message: "the BMC does not answer" });
    await recorder.flush();
    assert.equal(cluster.all(events).length, 3);
  });

  it("never throws, and goes on after a failed write", async () => {
    const clock = new ManualClock();
    const cluster = new FakeCluster({ now: () => clock.now() });
    const machine = cluster.seed(machines, { metadata: { name: "m1", namespace: "edge" } });
    const log = new QuietLog();
    const recorder = new ClusterEvents({ cluster, clock, log, component: "controller", instance: "pod-1" });
    cluster.fail(({ verb }) => verb === "create", "forbidden");
    recorder.record(machine, { type: "Normal", reason: "A", message: "a" });
    recorder.record(machine, { type: "Normal", reason: "B", message: "b" });
    await recorder.flush();
    assert.deepEqual(
      cluster.all(events).map((event) => event["reason"]),
      ["B"],
    );
    assert.equal(log.lines.length, 1);
  });
});

describe("metrics", () => {
  it("are told in the text form of Prometheus", () => {
    const metrics = new Metrics();
    const counter = metrics.counter("acts_total", "Acts.");
    counter.add({ kind: 'a"b' });
    counter.add({ kind: 'a"b' }, 2);
    metrics.gauge("depth", "Depth.", () => [[{}, 7]]);
    const seconds = metrics.histogram("seconds", "Seconds.", [1, 5]);
    seconds.observe(0.5);
    seconds.observe(3);
    assert.equal(
      metrics.text(),
      [
        "# HELP acts_total Acts.",
        "# TYPE acts_total counter",
        'acts_total{kind="a\\"b"} 3',
        "# HELP depth Depth.",
        "# TYPE depth gauge",
        "depth 7",
        "# HELP seconds Seconds.",
        "# TYPE seconds histogram",
        'seconds_bucket{le="1"} 1',
        'seconds_bucket{le="5"} 2',
        'seconds_bucket{le="+Inf"} 2',
        "seconds_sum 3.5",
        "seconds_count 2",
        "",
      ].join("\n"),
    );
  });
});

describe("log", () => {
  it("is one JSON object a line, errors by kind and message", () => {
    const lines: string[] = [];
    const log = new JsonLog(new ManualClock(), (line) => lines.push(line)).with({ controller: "x" });
    log.warn("failed", { error: new ClusterError("conflict", "PUT /x", "changed", { status: 409 }) });
    assert.deepEqual(JSON.parse(lines[0] ?? ""), {
      time: "2026-01-01T00:00:00.000Z",
      level: "warn",
      message: "failed",
      controller: "x",
      error: { name: "ClusterError", message: "changed", kind: "conflict", request: "PUT /x", status: 409 },
    });
    assert.ok(lines[0]?.endsWith("}\n"));
  });
});

describe("settings", () => {
  const key = { namespace: "system", name: "pulumi-baremetal" };

  function polled(cluster: FakeCluster): { settings: PolledSettings; changes: () => number } {
    let count = 0;
    const settings = new PolledSettings({ cluster, key, clock: new ManualClock(), log: new QuietLog(), changed: () => count++ });
    return { settings, changes: () => count };
  }

  it("start nothing before they have been read", async () => {
    const cluster = new FakeCluster();
    const { settings } = polled(cluster);
    cluster.fail(() => true, "unreachable");
    assert.equal(settings.stopped(), true);
    await settings.read();
    assert.equal(settings.stopped(), true);
    await settings.read();
    assert.equal(settings.stopped(), false);
  });

  it("follow the stop switch, and stand while they cannot be read", async () => {
    const cluster = new FakeCluster();
    const { settings, changes } = polled(cluster);
    cluster.seed(configMaps, { metadata: key, data: { stop: "true", cleanTimeoutSeconds: "20", other: "x" } });
    await settings.read();
    assert.deepEqual(
      [settings.stopped(), settings.number("cleanTimeoutSeconds", 600), settings.number("other", 5), settings.number("absent", 7)],
      [true, 20, 5, 7],
    );
    cluster.fail(() => true, "server");
    await settings.read();
    assert.equal(settings.stopped(), true);
    cluster.edit(configMaps, "system/pulumi-baremetal", (object) => (object["data"] = { stop: "false" }));
    await settings.read();
    await settings.read();
    assert.equal(settings.stopped(), false);
    assert.equal(changes(), 2);
  });
});

describe("health server", () => {
  let server: HealthServer;
  afterEach(async () => server.close());

  it("answers by what it is told, and gives metrics", async () => {
    let ready: HealthReport = { problems: ["no view yet"] };
    server = new HealthServer({ live: () => ({ problems: [] }), ready: () => ready, metrics: () => "up 1\n" });
    const port = await server.listen("127.0.0.1", 0);
    const ask = async (path: string): Promise<[number, string]> => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`);
      return [answer.status, await answer.text()];
    };
    assert.deepEqual(await ask("/healthz"), [200, '{"ok":true,"problems":[]}\n']);
    assert.deepEqual(await ask("/readyz"), [503, '{"ok":false,"problems":["no view yet"]}\n']);
    ready = { problems: [], notes: { leading: true } };
    assert.deepEqual(await ask("/readyz"), [200, '{"ok":true,"problems":[],"leading":true}\n']);
    assert.deepEqual(await ask("/metrics"), [200, "up 1\n"]);
    assert.equal((await ask("/other"))[0], 404);
  });
});
