import assert from "node:assert/strict";

import { machines } from "../../../provider/capi/kinds.ts";
import { keyOf } from "../../../provider/cluster/objects.ts";
import { Controller, reconcileMetrics } from "../../../provider/controller/runtime/controller.ts";
import { Metrics } from "../../../provider/controller/runtime/metrics.ts";
import type { ReconcileResult, Reconciler } from "../../../provider/controller/runtime/reconciler.ts";
import { InformerStores } from "../../../provider/controller/runtime/stores.ts";
import { FakeCluster, fakeError } from "../fakes/fake-cluster.ts";
import { ManualClock, settle } from "../fakes/manual-clock.ts";
import { QuietLog } from "../fakes/quiet-log.ts";

describe("controller", () => {
  let clock: ManualClock;
  let cluster: FakeCluster;
  let log: QuietLog;
  let metrics: Metrics;
  let views: AbortController;
  let lost: AbortController;
  let stop: AbortController;
  let running: Promise<unknown>;
  let reconciled: string[];

  beforeEach(() => {
    clock = new ManualClock();
    cluster = new FakeCluster({ now: () => clock.now() });
    log = new QuietLog();
    metrics = new Metrics();
    views = new AbortController();
    lost = new AbortController();
    stop = new AbortController();
    reconciled = [];
  });

  afterEach(async () => {
    stop.abort();
    views.abort();
    await running;
  });

  async function start(reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult>, sweep?: () => readonly string[]): Promise<Controller> {
    const stores = new InformerStores({ cluster, namespaces: ["a", "b"], clock, log });
    const reconciler: Reconciler = {
      name: "test",
      watches: [{ kind: machines, keys: (object) => [keyOf(object)] }],
      ...(sweep === undefined ? {} : { sweep }),
      reconcile: async (key, signal) => {
        reconciled.push(key);
        return reconcile(key, signal);
      },
    };
    const controller = new Controller({ reconciler, stores, clock, log, metrics: reconcileMetrics(metrics) });
    running = Promise.all([stores.run(views.signal), controller.run(lost.signal, stop.signal)]);
    await settle();
    return controller;
  }

  const seed = (name: string, namespace = "a"): void => void cluster.seed(machines, { metadata: { name, namespace }, spec: {} });

  it("reconciles what is there at start and what changes later, in all namespaces", async () => {
    seed("m1");
    seed("m2", "b");
    seed("m3", "c");
    await start(() => Promise.resolve({}));
    assert.deepEqual(reconciled.toSorted(), ["a/m1", "b/m2"]);
    cluster.edit(machines, "a/m1", (object) => (object["spec"] = { changed: true }));
    await settle();
    assert.deepEqual(reconciled.slice(2), ["a/m1"]);
  });

  it("reconciles again after the time that a reconcile asked for", async () => {
    seed("m1");
    await start(() => Promise.resolve(reconciled.length === 1 ? { againAfterMs: 5_000 } : {}));
    await clock.advance(4_999);
    assert.equal(reconciled.length, 1);
    await clock.advance(1);
    assert.equal(reconciled.length, 2);
  });

  it("tries again with backoff after a throw, and does not shout about conflicts", async () => {
    seed("m1");
    await start(() => Promise.reject(reconciled.length === 1 ? fakeError("conflict") : new TypeError("broken")));
    assert.deepEqual(
      log.lines.filter(({ message }) => message === "reconcile failed"),
      [],
    );
    await clock.advance(1_000);
    assert.ok(reconciled.length >= 2);
    const failure = log.lines.find(({ message }) => message === "reconcile failed");
    assert.equal(failure?.level, "error");
    assert.deepEqual(failure.fields["error"], { name: "TypeError", message: "broken" });
    assert.match(metrics.text(), /pulumi_baremetal_reconciles_total\{controller="test",result="conflict"\} 1\n/);
  });

  it("sweeps at start and every minute", async () => {
    await start(
      () => Promise.resolve({}),
      () => ["a/owed"],
    );
    assert.deepEqual(reconciled, ["a/owed"]);
    await clock.advance(60_000);
    assert.deepEqual(reconciled, ["a/owed", "a/owed"]);
  });

  it("lets reconciles under way end when it is stopped, and starts none", async () => {
    seed("m1");
    let finish: () => void = () => undefined;
    let seenAborted: boolean | undefined;
    await start(async (_key, signal) => {
      await new Promise<void>((resolve) => (finish = resolve));
      seenAborted = signal.aborted;
      return {};
    });
    stop.abort();
    seed("m2");
    await settle();
    finish();
    await settle();
    assert.deepEqual(reconciled, ["a/m1"]);
    assert.equal(seenAborted, false);
  });

  it("tells reconciles under way when the Lease is lost", async () => {
    seed("m1");
    let aborted = false;
    await start(async (_key, signal) => {
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
      aborted = signal.aborted;
      return {};
    });
    lost.abort();
    await settle();
    assert.equal(aborted, true);
  });

  it("starts although a kind is not served, and works once it is", async () => {
    cluster.unserve(machines);
    await start(() => Promise.resolve({}));
    cluster.serve(machines);
    seed("m1");
    await clock.advance(30_000);
    assert.deepEqual(reconciled, ["a/m1"]);
  });
});
