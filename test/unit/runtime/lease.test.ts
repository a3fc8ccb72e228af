import assert from "node:assert/strict";

import { leases } from "../../../provider/cluster/kinds.ts";
import { LeaderElection, leaseTimes } from "../../../provider/controller/runtime/lease.ts";
import { FakeCluster } from "../fakes/fake-cluster.ts";
import { ManualClock } from "../fakes/manual-clock.ts";
import { QuietLog } from "../fakes/quiet-log.ts";

const key = { namespace: "system", name: "controller" };

interface Candidate {
  election: LeaderElection;
  /** When it began to lead, and when it was told to end. */
  history: { began: number; told?: number }[];
  stop: AbortController;
  done: Promise<void>;
}

describe("leader election", () => {
  let clock: ManualClock;
  let cluster: FakeCluster;
  let elapsed: () => number;
  let candidates: Candidate[];

  beforeEach(() => {
    clock = new ManualClock();
    let skew = 0;
    const jump = clock.jump.bind(clock);
    // What runs on is not what the wall clock says.
    clock.jump = (milliseconds) => {
      skew += milliseconds;
      jump(milliseconds);
    };
    elapsed = () => clock.now() - skew;
    cluster = new FakeCluster({ now: () => clock.now() });
    candidates = [];
  });

  afterEach(async () => {
    cluster.before = undefined;
    cluster.heal();
    for (const { stop } of candidates) stop.abort();
    await clock.advance(60_000);
    await Promise.all(candidates.map(async ({ done }) => done));
  });

  function start(identity: string, through: FakeCluster = cluster): Candidate {
    const election = new LeaderElection({ cluster: through, key, identity, clock, log: new QuietLog(), elapsed });
    const stop = new AbortController();
    const history: Candidate["history"] = [];
    const lead = async (lost: AbortSignal): Promise<void> => {
      const turn: Candidate["history"][number] = { began: elapsed() };
      history.push(turn);
      await new Promise<void>((resolve) => AbortSignal.any([lost, stop.signal]).addEventListener("abort", () => resolve(), { once: true }));
      turn.told = elapsed();
    };
    const candidate = { election, history, stop, done: election.run(lead, stop.signal) };
    candidates.push(candidate);
    return candidate;
  }

  function holder(): unknown {
    const spec = cluster.peek(leases, "system/controller")?.["spec"];
    return typeof spec === "object" && spec !== null ? Reflect.get(spec, "holderIdentity") : undefined;
  }

  it("lets one lead and the other wait", async () => {
    const a = start("a");
    await clock.advance(0);
    const b = start("b");
    await clock.advance(120_000);
    assert.equal(a.election.leading, true);
    assert.equal(a.history.length, 1);
    assert.equal(b.history.length, 0);
    assert.equal(holder(), "a");
  });

  it("hands over at once when the leader is stopped", async () => {
    const a = start("a");
    await clock.advance(0);
    const b = start("b");
    await clock.advance(10_000);
    const stopped = elapsed();
    a.stop.abort();
    await clock.advance(2_100);
    assert.equal(b.election.leading, true);
    assert.ok((b.history[0]?.began ?? 0) - stopped <= 2_000);
    assert.equal(holder(), "b");
  });

  it("keeps the Lease renewed until the leader's work has come to its end", async () => {
    let finish: () => void = () => undefined;
    const stop = new AbortController();
    const election = new LeaderElection({ cluster, key, identity: "slow", clock, log: new QuietLog(), elapsed });
    const done = election.run(async () => new Promise<void>((resolve) => (finish = resolve)), stop.signal);
    await clock.advance(0);
    const b = start("b");
    stop.abort();
    await clock.advance(60_000);
    assert.equal(holder(), "slow");
    assert.equal(b.history.length, 0);
    finish();
    await clock.advance(2_100);
    await done;
    assert.equal(b.election.leading, true);
  });

  it("fails over within 15 s when the leader vanishes, whatever the wall clocks say", async () => {
    // A leader of another process, whose last renewal has a time that is five minutes off.
    const renewTime = new Date(clock.now() + 300_000).toISOString().replace("Z", "000Z");
    cluster.seed(leases, {
      metadata: { ...key },
      spec: { holderIdentity: "gone", leaseDurationSeconds: 12, renewTime, acquireTime: renewTime, leaseTransitions: 3 },
    });
    const began = elapsed();
    const b = start("b");
    await clock.advance(11_000);
    assert.equal(b.history.length, 0);
    await clock.advance(4_000);
    assert.equal(b.election.leading, true);
    const took = (b.history[0]?.began ?? 0) - began;
    assert.ok(took >= leaseTimes.leaseMs && took <= 15_000, `took ${took} ms`);
  });

  it("is not made to take over early by a wall clock that jumps", async () => {
    const a = start("a");
    await clock.advance(0);
    const b = start("b");
    await clock.advance(2_000);
    clock.jump(3_600_000);
    await clock.advance(10_000);
    assert.equal(b.history.length, 0);
    assert.equal(a.history.length, 1);
  });

  it("tells a leader that cannot renew to stop well before another may take over", async () => {
    const own = new FakeCluster({ now: () => clock.now() });
    const a = start("a", own);
    await clock.advance(4_000);
    assert.equal(a.election.leading, true);
    const renewals = own.requests.filter(({ verb }) => verb === "replace").length;
    assert.equal(renewals, 1);
    const lastRenewal = 3_000;
    const began = elapsed() - 4_000;
    own.fail(() => true, "timeout", { times: 1_000 });
    await clock.advance(20_000);
    const told = (a.history[0]?.told ?? Number.POSITIVE_INFINITY) - began;
    assert.equal(told, lastRenewal + leaseTimes.renewDeadlineMs);
    assert.ok(told + 3_000 < lastRenewal + leaseTimes.leaseMs);
  });

  it("stops at once when another holds the Lease", async () => {
    const a = start("a");
    await clock.advance(1_000);
    cluster.edit(leases, "system/controller", (lease) => (lease["spec"] = { holderIdentity: "b", leaseDurationSeconds: 12 }));
    await clock.advance(2_000);
    assert.equal(a.history.length, 1);
    assert.notEqual(a.history[0]?.told, undefined);
    assert.equal(a.election.leading, false);
  });

  it("goes on when the answer of a renewal is lost", async () => {
    const a = start("a");
    await clock.advance(1_000);
    cluster.fail(({ verb }) => verb === "replace", "timeout", { after: true });
    await clock.advance(30_000);
    assert.equal(a.history.length, 1);
    assert.equal(a.election.leading, true);
  });

  it("takes its own Lease up again at once after a restart", async () => {
    cluster.seed(leases, { metadata: { ...key }, spec: { holderIdentity: "a", leaseDurationSeconds: 12, leaseTransitions: 1 } });
    const a = start("a");
    await clock.advance(0);
    assert.equal(a.election.leading, true);
  });
});
