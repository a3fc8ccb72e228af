import assert from "node:assert/strict";

import { RedfishAccess } from "../../../../provider/redfish/access.ts";
import { SESSIONS } from "../../../testbed/bmc/gatekeeper.ts";
import { clean, vary } from "../../../testbed/bmc/profile.ts";
import { profileNamed } from "../../../testbed/bmc/profiles.ts";
import type { MockRequest } from "../../../testbed/bmc/mock-bmc.ts";
import { PASSWORD, USERNAME, certificates, failure, startBench, stopBenches } from "../mock.ts";
import type { Bench } from "../mock.ts";

/** Requests that carried credentials, or asked for a session with them. */
function withCredentials(requests: readonly MockRequest[]): MockRequest[] {
  return requests.filter(({ headers, method, path }) => headers["authorization"] !== undefined || (method === "POST" && path === SESSIONS));
}

/** The same BMC as another process of ours would reach it. */
async function anotherProcess({ mock, clock }: Bench): Promise<RedfishAccess> {
  const { ca } = await certificates();
  const access = new RedfishAccess({ clock, random: () => 0 });
  await access.bmc({ address: mock.origin, username: USERNAME, password: PASSWORD, certificateAuthority: ca.certificate }).readPower();
  return access;
}

describe("a quirk of authentication", () => {
  afterEach(stopBenches);

  it("Q24: a hundred repairs and a restart use one session at a time of a table of two", async () => {
    const bench = await startBench({ profile: vary(clean, { authentication: { maxSessions: 2 } }) });
    const { mock, bmc, clock } = bench;
    for (let cycle = 0; cycle < 100; cycle += 1) {
      await bmc().forceOff();
      await bmc().on();
      clock.time += 1_000;
      assert.equal(mock.sessions.size, 1);
    }
    await bench.access.close();
    assert.equal(mock.sessions.size, 0);
    const after = await anotherProcess(bench);
    assert.equal(mock.sessions.size, 1);
    await after.close();
    assert.equal(mock.log.filter((line) => line === `POST ${SESSIONS}`).length, 2);
  });

  it("Q24: with a full session table it still powers off, and comes back to sessions later", async () => {
    const { mock, bmc, clock } = await startBench({ profile: profileNamed("dell-idrac8") });
    for (let other = 0; other < 4; other += 1) mock.sessions.set(`someone-${other}`, `${SESSIONS}/someone-${other}`);
    await bmc().forceOff();
    assert.equal(mock.power, "Off");
    assert.equal(mock.sessions.size, 4);
    mock.sessions.delete("someone-0");
    clock.time += 61_000;
    await bmc().readPower();
    assert.ok(mock.sessions.has("token-1"));
  });

  it("Q24: sessions that killed processes of ours left in a full table are ended, and nobody else's", async () => {
    const bench = await startBench({ profile: vary(clean, { authentication: { maxSessions: 3 } }) });
    const { mock, bmc } = bench;
    mock.sessions.set("someone", `${SESSIONS}/someone`);
    const killed = [await anotherProcess(bench), await anotherProcess(bench)];
    assert.equal(mock.sessions.size, 3);
    await bmc().forceOff();
    assert.equal(mock.power, "Off");
    assert.equal(mock.sessions.size, 2);
    assert.ok(mock.sessions.has("someone"));
    for (const access of killed) await access.close();
  });

  it("Q24: a BMC that refuses the mark on our sessions gets them without it", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("openbmc") });
    await bmc().readPower();
    await bmc().forceOff();
    assert.deepEqual(
      mock.requests.filter(({ method, path }) => method === "POST" && path === SESSIONS).map(({ body }) => Object.keys(body as object).length),
      [3, 2],
    );
    assert.equal(mock.sessions.size, 1);
  });

  it("Q25: one that has sessions alone and one that has Basic alone are both let in", async () => {
    const sessions = await startBench({ profile: profileNamed("sessions-only") });
    await sessions.bmc().forceOff();
    assert.equal(sessions.mock.power, "Off");
    assert.equal(withCredentials(sessions.mock.requests).length, 1);
    const basic = await startBench({ profile: profileNamed("supermicro-x10") });
    await basic.bmc().forceOff();
    assert.equal(basic.mock.power, "Off");
    assert.ok(!basic.mock.log.includes(`POST ${SESSIONS}`));
  });

  it("Q25: which of the two is used can be set", async () => {
    const { mock, bmc } = await startBench({ profile: clean });
    await bmc({ authentication: "basic" }).readPower();
    assert.ok(!mock.log.includes(`POST ${SESSIONS}`));
    const full = await startBench({ profile: vary(clean, { authentication: { maxSessions: 0 } }) });
    await failure(full.bmc({ authentication: "session" }).readPower(), "busy");
    assert.ok(full.mock.requests.every(({ headers }) => headers["authorization"] === undefined));
    const none = await startBench({ profile: profileNamed("supermicro-x10") });
    await failure(none.bmc({ authentication: "session" }).readPower(), "unsupported");
  });

  it("Q27: a password that was changed is used with the next call, and the session of the old one ends", async () => {
    const { mock, bmc } = await startBench({ profile: clean });
    await bmc().readPower();
    assert.deepEqual([...mock.sessions.keys()], ["token-1"]);
    mock.gatekeeper.password = "rotated-pass-phrase";
    await bmc({ password: "rotated-pass-phrase" }).readPower();
    await bmc({ password: "rotated-pass-phrase" }).readPower();
    assert.deepEqual([...mock.sessions.keys()], ["token-2"]);
    assert.equal(mock.log.filter((line) => line === `DELETE ${SESSIONS}/1`).length, 1);
  });

  it("Q28: one refusal of valid credentials is borne", async () => {
    const { mock, bmc } = await startBench({ profile: vary(clean, { authentication: { refusesEvery: 2, sessions: false } }) });
    for (let time = 0; time < 10; time += 1) assert.equal((await bmc().readPower()).power, "on");
    assert.ok(mock.requests.filter(({ status }) => status === 401).length >= 5);
  });

  it("Q28: refusals without end are tried at most three times, and then held", async () => {
    const { mock, bmc, clock } = await startBench({ profile: clean });
    mock.rule(({ headers }) => (headers["x-auth-token"] === undefined && headers["authorization"] === undefined ? undefined : { status: 401 }));
    await failure(bmc().readPower(), "unauthorized");
    const tried = mock.requests.length;
    assert.ok(mock.requests.filter(({ status }) => status === 401).length <= 3);
    clock.time += 600_000;
    await failure(bmc().readPower(), "unauthorized");
    assert.equal(mock.requests.length, tried);
  });

  for (const name of ["openbmc", "hpe-ilo6", "supermicro-x10"]) {
    it(`Q29: a wrong password is tried at most twice in an hour, whoever asks, and a right one is tried at once (${name})`, async () => {
      const { mock, bmc, clock } = await startBench({ profile: profileNamed(name) });
      const workers = Array.from({ length: 8 }, () => failure(bmc({ password: "wrong-pass-phrase" }).forceOff(), "unauthorized"));
      await Promise.all(workers);
      for (let minute = 0; minute < 59; minute += 1) {
        clock.time += 60_000;
        await failure(bmc({ password: "wrong-pass-phrase" }).readPower(), "unauthorized");
      }
      assert.ok(withCredentials(mock.requests).length <= 2, String(withCredentials(mock.requests).length));
      assert.equal((await bmc().readPower()).power, "on");
      assert.deepEqual(mock.resets, []);
    });
  }

  it("Q30: an account that has to change its password is tried once, and the reason says so", async () => {
    const { mock, bmc, clock } = await startBench({ profile: vary(clean, { authentication: { passwordExpired: true } }) });
    const error = await failure(bmc().forceOff(), "forbidden");
    assert.match(error.message, /the account must change its password first/);
    const asked = mock.requests.length;
    assert.equal(mock.requests.filter(({ status }) => status === 403).length, 1);
    for (let minute = 0; minute < 50; minute += 1) {
      clock.time += 60_000;
      assert.match((await failure(bmc().readPower(), "forbidden")).message, /must change its password first/);
    }
    assert.equal(mock.requests.length, asked);
    assert.deepEqual(mock.resets, []);
  });

  it("Q32: a session service that wants credentials is not asked: the root links the sessions", async () => {
    const { mock, bmc } = await startBench({ profile: vary(clean, { authentication: { serviceGuarded: true } }) });
    await bmc().readPower();
    assert.ok(!mock.log.includes("GET /redfish/v1/SessionService"));
    assert.equal(mock.sessions.size, 1);
  });

  it("Q33: a token that changes with each answer is followed", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("xfusion") });
    await bmc().forceOff();
    await bmc().on();
    for (let time = 0; time < 5; time += 1) assert.equal((await bmc().readPower()).power, "on");
    assert.equal(mock.log.filter((line) => line === `POST ${SESSIONS}`).length, 1);
    assert.ok(mock.requests.every(({ status }) => status !== 401));
  });
});
