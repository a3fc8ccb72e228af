import assert from "node:assert/strict";

import { machines } from "../../../provider/capi/kinds.ts";
import { Informer } from "../../../provider/controller/runtime/informer.ts";
import { FakeCluster } from "../fakes/fake-cluster.ts";
import { ManualClock, settle } from "../fakes/manual-clock.ts";
import { QuietLog } from "../fakes/quiet-log.ts";

interface Bench {
  cluster: FakeCluster;
  clock: ManualClock;
  informer: Informer;
  log: QuietLog;
  seen: string[];
}

describe("informer", () => {
  let stop: AbortController;
  let running: Promise<void>;

  async function start(prepare: (cluster: FakeCluster) => void = () => undefined): Promise<Bench> {
    const clock = new ManualClock();
    const cluster = new FakeCluster({ now: () => clock.now() });
    const log = new QuietLog();
    prepare(cluster);
    const informer = new Informer({ cluster, kind: machines, namespace: "edge", clock, log, random: () => 0 });
    const seen: string[] = [];
    informer.subscribe((object) => seen.push(object.metadata.name));
    running = informer.run(stop.signal);
    await settle();
    return { cluster, clock, informer, log, seen };
  }

  beforeEach(() => {
    stop = new AbortController();
  });

  afterEach(async () => {
    stop.abort();
    await running;
  });

  function seed(cluster: FakeCluster, name: string, namespace = "edge"): void {
    cluster.seed(machines, { metadata: { name, namespace }, spec: { clusterName: "edge" } });
  }

  it("sees what is there, what appears, changes and goes, in its namespace only", async () => {
    const { cluster, informer, seen } = await start((cluster) => seed(cluster, "m1"));
    assert.equal(informer.state, "live");
    assert.equal(informer.fresh(), true);
    seed(cluster, "m2");
    seed(cluster, "elsewhere", "other");
    cluster.edit(machines, "edge/m1", (object) => (object["spec"] = { clusterName: "changed" }));
    await settle();
    assert.deepEqual(
      informer.list().map((object) => object.metadata.name),
      ["m1", "m2"],
    );
    assert.deepEqual(informer.get("edge/m1")?.["spec"], { clusterName: "changed" });
    cluster.remove(machines, "edge/m1");
    await settle();
    assert.equal(informer.get("edge/m1"), undefined);
    assert.deepEqual(seen, ["m1", "m2", "m1", "m1"]);
  });

  it("goes on from where it was when the server ends the watch", async () => {
    const { cluster, clock, informer } = await start();
    await clock.advance(5_000);
    cluster.cutWatches();
    await clock.advance(1_000);
    seed(cluster, "m1");
    await settle();
    assert.notEqual(informer.get("edge/m1"), undefined);
    assert.equal(cluster.requests.filter(({ verb }) => verb === "list").length, 1);
    assert.equal(cluster.requests.filter(({ verb }) => verb === "watch").length, 2);
  });

  it("does not ask in a tight loop where watches end at once", async () => {
    const { cluster, clock } = await start();
    for (let count = 0; count < 20; count++) {
      cluster.cutWatches();
      await settle();
    }
    assert.ok(cluster.requests.filter(({ verb }) => verb === "watch").length <= 2);
    await clock.advance(1_000);
    assert.equal(cluster.watching, 1);
  });

  it("lists again when its position is lost, and tells of what went meanwhile", async () => {
    const { cluster, clock, informer, seen } = await start((cluster) => {
      seed(cluster, "m1");
      seed(cluster, "m2");
    });
    await clock.advance(5_000);
    cluster.cutWatches(undefined, "gone");
    cluster.remove(machines, "edge/m1");
    cluster.compact();
    await settle();
    await clock.advance(0);
    assert.deepEqual(
      informer.list().map((object) => object.metadata.name),
      ["m2"],
    );
    assert.equal(informer.fresh(), true);
    assert.deepEqual(seen, ["m1", "m2", "m1"]);
  });

  it("is not fresh while the API server is away, and is again after it", async () => {
    const { cluster, clock, informer } = await start((cluster) => seed(cluster, "m1"));
    cluster.fail(() => true, "unreachable", { times: 1_000 });
    cluster.cutWatches(undefined, "unreachable");
    await clock.advance(60_000);
    assert.equal(informer.state, "broken");
    assert.equal(informer.fresh(), false);
    assert.equal(informer.list().length, 1);
    assert.ok(cluster.requests.filter(({ verb }) => verb === "list").length < 15);
    cluster.heal();
    await clock.advance(16_000);
    assert.equal(informer.fresh(), true);
  });

  it("is not fresh any more when its watch has been silent for longer than 90 s", async () => {
    const { cluster, clock, informer } = await start();
    cluster.silenceWatches();
    await clock.advance(90_000);
    assert.equal(informer.fresh(), true);
    await clock.advance(1);
    assert.equal(informer.fresh(), false);
  });

  it("stays fresh by bookmarks", async () => {
    const { cluster, clock, informer } = await start();
    for (let minute = 0; minute < 5; minute++) {
      await clock.advance(60_000);
      cluster.bookmark();
      await settle();
    }
    assert.equal(informer.fresh(), true);
  });

  it("takes a kind that is not served as missing, and looks again every 30 s", async () => {
    const { cluster, clock, informer, log } = await start((cluster) => cluster.unserve(machines));
    await informer.settled();
    assert.equal(informer.state, "missing");
    assert.equal(informer.fresh(), false);
    await clock.advance(29_999);
    assert.equal(cluster.requests.length, 1);
    cluster.serve(machines);
    seed(cluster, "m1");
    await clock.advance(1);
    assert.equal(informer.state, "live");
    assert.notEqual(informer.get("edge/m1"), undefined);
    assert.equal(log.lines.filter(({ level }) => level === "warn").length, 1);
  });
});
