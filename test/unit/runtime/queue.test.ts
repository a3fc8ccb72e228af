import assert from "node:assert/strict";

import { backoffAfter } from "../../../provider/controller/runtime/backoff.ts";
import { WorkQueue } from "../../../provider/controller/runtime/queue.ts";
import { ManualClock, settle } from "../fakes/manual-clock.ts";

function queueOf(clock = new ManualClock()): { queue: WorkQueue; clock: ManualClock } {
  return { queue: new WorkQueue({ clock, backoff: { first: 100, most: 1_000 }, random: () => 0 }), clock };
}

describe("work queue", () => {
  it("hands a key out once however often it is added", async () => {
    const { queue } = queueOf();
    queue.add("a");
    queue.add("a");
    queue.add("b");
    assert.equal(await queue.next(), "a");
    assert.equal(await queue.next(), "b");
    assert.equal(queue.length, 0);
  });

  it("never hands out a key that is being worked on, and hands it out once more after that", async () => {
    const { queue } = queueOf();
    queue.add("a");
    assert.equal(await queue.next(), "a");
    queue.add("a");
    queue.add("a");
    let second: string | undefined;
    void queue.next().then((key) => (second = key));
    await settle();
    assert.equal(second, undefined);
    queue.done("a");
    await settle();
    assert.equal(second, "a");
    queue.done("a");
    assert.equal(queue.length, 0);
  });

  it("keeps the earlier of two delays", async () => {
    const { queue, clock } = queueOf();
    queue.addAfter("a", 5_000);
    queue.addAfter("a", 1_000);
    queue.addAfter("a", 3_000);
    await clock.advance(999);
    assert.equal(queue.length, 0);
    await clock.advance(1);
    assert.equal(queue.length, 1);
    assert.equal(await queue.next(), "a");
    queue.done("a");
    await clock.advance(10_000);
    assert.equal(queue.length, 0);
  });

  it("waits longer after each failure, and forgets them after a success", async () => {
    const { queue, clock } = queueOf();
    const waits: number[] = [];
    queue.add("a");
    for (let count = 0; count < 5; count++) {
      await queue.next();
      const wait = queue.failed("a");
      waits.push(wait);
      await clock.advance(wait - 1);
      assert.equal(queue.length, 0);
      await clock.advance(1);
    }
    assert.deepEqual(waits, [100, 200, 400, 800, 1_000]);
    await queue.next();
    queue.done("a");
    queue.add("a");
    await queue.next();
    assert.equal(queue.failed("a"), 100);
  });

  it("tells waiting workers when it is stopped and drops what is delayed", async () => {
    const { queue, clock } = queueOf();
    const waiting = queue.next();
    queue.addAfter("a", 10);
    queue.stop();
    assert.equal(await waiting, undefined);
    queue.add("b");
    await clock.advance(100);
    assert.equal(await queue.next(), undefined);
    assert.equal(clock.sleeping, 0);
  });
});

describe("backoff", () => {
  it("doubles up to its limit and is shortened by at most half", () => {
    const limits = { first: 100, most: 1_000 };
    assert.deepEqual(
      [1, 2, 3, 4, 5, 50].map((failures) => backoffAfter(failures, limits, 0)),
      [100, 200, 400, 800, 1_000, 1_000],
    );
    assert.equal(backoffAfter(1, limits, 0.999), 50);
  });
});
