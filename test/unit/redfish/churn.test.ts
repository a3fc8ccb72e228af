import assert from "node:assert/strict";

import { clean } from "../../testbed/bmc/profile.ts";
import { until } from "../../testbed/wait.ts";
import { startBench, stopBenches } from "./mock.ts";

const MINUTE_MS = 60_000;

describe("an hour of BMCs that come and go", () => {
  afterEach(stopBenches);

  it("leaves sessions and connections only at those in use", async () => {
    const benches = await Promise.all(Array.from({ length: 20 }, () => startBench({ profile: clean })));
    const [first] = benches;
    assert.ok(first !== undefined);
    const { clock, bmc } = first;
    const sessions: number[] = [];
    // One access for all, as the controller has it; each BMC is in use for a few minutes and then no more.
    for (let minute = 0; minute < 60; minute += 1) {
      const { mock } = benches[Math.floor(minute / 3)] ?? first;
      await bmc({ address: mock.origin }).forceOff();
      await bmc({ address: mock.origin }).on();
      clock.advance(MINUTE_MS);
      await until("unused sessions to be given back", () => benches.reduce((sum, one) => sum + one.mock.sessions.size, 0) <= 5, { intervalMs: 5 });
      sessions.push(benches.reduce((sum, one) => sum + one.mock.sessions.size, 0));
    }
    assert.ok(Math.max(...sessions.slice(15)) <= 5, sessions.join());
    assert.ok(Math.min(...sessions) >= 1);
    await until("unused connections to be closed", () => benches.reduce((sum, one) => sum + one.mock.openConnections, 0) <= 5, { intervalMs: 5 });
    assert.ok(benches.every(({ mock }) => mock.connections === 1));
    assert.equal(clock.deadlines, 0);
  });

  it("does not forget that credentials are being left alone", async () => {
    const { mock, bmc, clock } = await startBench({ profile: clean });
    const other = await startBench({ profile: clean });
    await assert.rejects(bmc({ password: "wrong-pass-phrase" }).readPower());
    const asked = mock.requests.length;
    for (let minute = 0; minute < 50; minute += 1) {
      clock.advance(MINUTE_MS);
      await bmc({ address: other.mock.origin }).readPower();
    }
    await assert.rejects(bmc({ password: "wrong-pass-phrase" }).readPower());
    assert.equal(mock.requests.length, asked);
  });
});
