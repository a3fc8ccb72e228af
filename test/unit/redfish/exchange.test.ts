import assert from "node:assert/strict";
import { createServer } from "node:net";
import type { AddressInfo } from "node:net";

import { systemClock } from "../../../provider/clock.ts";
import { failure, startBench, stopBenches } from "./mock.ts";

describe("talking to a BMC", () => {
  afterEach(stopBenches);

  it("asks one thing at a time, on one connection, with a pause between", async () => {
    const { mock, bmc } = await startBench({ now: Date.now }, { clock: systemClock, spacingMs: 30 });
    let open = 0;
    let most = 0;
    mock.rule(() => {
      open += 1;
      most = Math.max(most, open);
      setImmediate(() => (open -= 1));
      return undefined;
    });
    await Promise.all([bmc().readPower(), bmc().readPower(), bmc().readPower()]);
    assert.equal(most, 1);
    assert.deepEqual([...new Set(mock.requests.map(({ connection }) => connection))], [1]);
    const gaps = mock.requests.slice(1).map(({ at }, index) => at - (mock.requests[index]?.at ?? 0));
    assert.equal(gaps.length > 0 && gaps.every((gap) => gap >= 25), true);
  });

  it("does not let one BMC wait for another that is silent", async () => {
    const silent = await startBench({}, { clock: systemClock, requestTimeoutMs: 60_000 });
    silent.mock.answer("GET", "/redfish/v1/", { status: 0, instead: "never" });
    const { mock } = await startBench();
    const abort = new AbortController();
    const hanging = failure(silent.bmc().readPower(abort.signal), "timeout");
    assert.equal((await silent.bmc({ address: mock.origin }).readPower()).power, "on");
    abort.abort();
    await hanging;
  });

  it("gives up at its deadline", async () => {
    const { mock, bmc } = await startBench({}, { clock: systemClock, requestTimeoutMs: 100, spacingMs: 0 });
    mock.answer("GET", "/redfish/v1/", { status: 0, instead: "never" });
    const error = await failure(bmc().readPower(), "timeout");
    assert.match(error.message, /was not answered within 0.1 s/);
  });

  it("keeps the queue going when a caller gives up waiting in it", async () => {
    const { mock, bmc } = await startBench({}, { clock: systemClock, requestTimeoutMs: 200, spacingMs: 0 });
    mock.answer("GET", "/redfish/v1/", { status: 0, instead: "never" }, 1);
    const first = failure(bmc().readPower(), "timeout");
    const abort = new AbortController();
    const second = failure(bmc().readPower(abort.signal), "timeout");
    abort.abort();
    await second;
    await first;
    assert.equal((await bmc().readPower()).power, "on");
  });

  it("leaves a busy BMC alone for as long as it asks, within bounds", async () => {
    const { mock, bmc, clock } = await startBench();
    mock.answer("GET", "/Systems", { status: 503, headers: { "retry-after": "7" } }, 1);
    const first = await failure(bmc().readPower(), "busy");
    assert.equal(first.retryAfterMs, 7_000);
    clock.time += 6_000;
    const asked = mock.log.length;
    assert.equal((await failure(bmc().readPower(), "busy")).retryAfterMs, 1_000);
    assert.equal(mock.log.length, asked);
    clock.time += 1_000;
    assert.equal((await bmc().readPower()).power, "on");
    mock.answer("GET", "/Systems", { status: 503, headers: { "retry-after": "99999" } }, 1);
    assert.equal((await failure(bmc().readPower(), "busy")).retryAfterMs, 300_000);
  });

  it("takes a date for the wait as well", async () => {
    const { mock, bmc, clock } = await startBench();
    mock.answer("GET", "/Systems", { status: 503, headers: { "retry-after": new Date(clock.time + 20_000).toUTCString() } }, 1);
    const { retryAfterMs } = await failure(bmc().readPower(), "busy");
    assert.ok(retryAfterMs !== undefined && retryAfterMs > 18_000 && retryAfterMs <= 20_000, String(retryAfterMs));
    clock.time += 20_000;
    assert.equal((await bmc().readPower()).power, "on");
  });

  it("leaves a busy BMC alone for 3, 6, 12, 24 and then 30 s where it names no wait", async () => {
    const { mock, bmc, clock } = await startBench();
    await bmc().readPower();
    mock.answer("GET", "/Systems/1", { status: 503 }, 6);
    mock.answer("GET", "/Systems", { status: 503 }, 6);
    const waits: (number | undefined)[] = [];
    for (let time = 0; time < 6; time += 1) {
      const { retryAfterMs } = await failure(bmc().readPower(), "busy");
      waits.push(retryAfterMs);
      clock.time += (retryAfterMs ?? 0) - 1;
      const asked = mock.log.length;
      await failure(bmc().readPower(), "busy");
      assert.equal(mock.log.length, asked);
      clock.time += 1;
    }
    assert.deepEqual(waits, [3_000, 6_000, 12_000, 24_000, 30_000, 30_000]);
    mock.rule((request) => (request.method === "GET" ? { status: 200, body: mock.resources[request.path.replace(/(.)\/$/, "$1")] } : undefined));
    assert.equal((await bmc().readPower()).power, "on");
  });

  it("asks for no compression, save where that is refused", async () => {
    const { mock, bmc } = await startBench();
    mock.rule((request) => (request.headers["accept-encoding"] === "identity" ? { status: 406 } : undefined));
    await bmc().readPower();
    assert.deepEqual(
      mock.requests.map(({ headers }) => headers["accept-encoding"]),
      ["identity", undefined, undefined, undefined],
    );
  });

  for (const [what, body] of [
    ["an HTML page", "<html>oops</html>"],
    ["two JSON documents", '{"error":{}}{"error":{}}'],
    ["nothing", ""],
    ["messages as one object", { error: { "@Message.ExtendedInfo": { MessageId: "Base.1.0.GeneralError", Message: "broken" } } }],
    ["messages as a number", { error: { "@Message.ExtendedInfo": 7 } }],
  ] as const) {
    it(`reports a failure of the BMC whose body is ${what}`, async () => {
      const { mock, bmc } = await startBench();
      mock.answer("GET", "/Systems/1", { status: 500, body });
      await failure(bmc().readPower(), "server");
    });
  }

  it("does not take something else for Redfish", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("GET", "/Systems", { status: 200, body: "<html>hello</html>" });
    await failure(bmc().readPower(), "invalid");
  });

  it("does not read an answer without end", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("GET", "/Systems/1", { status: 200, body: " ".repeat(2 * 1024 * 1024) });
    const error = await failure(bmc().readPower(), "invalid");
    assert.match(error.message, /the answer is larger than a megabyte/);
  });

  it("says that nothing listens there, and that what listens is not TLS", async () => {
    const { bmc } = await startBench();
    const server = createServer((socket) =>
      socket
        .on("error", () => undefined)
        .resume()
        .end("no\r\n"),
    );
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
    await failure(bmc({ address }).readPower(), "unreachable");
    await new Promise((resolve) => server.close(resolve));
    const error = await failure(bmc({ address }).readPower(), "unreachable");
    assert.match(error.message, /ECONNREFUSED/);
  });

  it("fails for an unusable address, certificate authority or password without a request", async () => {
    const { mock, bmc } = await startBench();
    await failure(bmc({ password: "" }).readPower(), "invalid");
    await failure(bmc({ address: "ipmi://10.0.0.1" }).readPower(), "invalid");
    await failure(bmc({ certificateAuthority: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n" }).readPower(), "untrusted");
    await failure(bmc({ certificateAuthority: "-----BEGIN CERTIFICATE-----\n!!!!\n" }).readPower(), "untrusted");
    await failure(bmc({ certificateAuthority: "/etc/ssl/ca.crt" }).readPower(), "invalid");
    assert.deepEqual(mock.log, []);
  });
});
