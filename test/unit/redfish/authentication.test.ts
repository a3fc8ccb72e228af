import assert from "node:assert/strict";

import { createCertificateAuthority } from "../../testbed/certificates.ts";
import { PASSWORD, failure, startBench, stopBenches } from "./mock.ts";

const SESSIONS = "/redfish/v1/SessionService/Sessions";

describe("authentication at a BMC", () => {
  afterEach(stopBenches);

  const authenticated = (requests: readonly { headers: Record<string, unknown>; path: string; method: string }[]): number =>
    requests.filter(
      ({ headers, path, method }) =>
        headers["authorization"] !== undefined || headers["x-auth-token"] !== undefined || (method === "POST" && path === SESSIONS),
    ).length;

  it("uses one session for all users and ends it on close", async () => {
    const { mock, bmc, access } = await startBench({ sessions: true });
    await Promise.all([bmc().readPower(), bmc().readPower(), bmc().forceOff()]);
    await bmc().readPower();
    assert.equal(mock.log.filter((line) => line === `POST ${SESSIONS}`).length, 1);
    assert.equal(
      mock.requests.some(({ headers }) => headers.authorization !== undefined),
      false,
    );
    assert.equal(mock.sessions.size, 1);
    await access.close();
    assert.equal(mock.sessions.size, 0);
    await failure(bmc().readPower(), "unreachable");
  });

  it("logs in once more when the session has ended, and sends the action once", async () => {
    const { mock, bmc } = await startBench({ sessions: true });
    await bmc().readPower();
    mock.rule((request) =>
      request.method === "POST" && request.path.includes("/Actions/") && request.headers["x-auth-token"] === "token-1" ? { status: 401 } : undefined,
    );
    await bmc().forceOff();
    assert.equal(mock.log.filter((line) => line === `POST ${SESSIONS}`).length, 2);
    assert.deepEqual(
      mock.requests.filter(({ path }) => path.includes("/Actions/")).map(({ headers }) => headers["x-auth-token"]),
      ["token-1", "token-2"],
    );
    assert.equal(mock.power, "Off");
  });

  it("takes over a token that the BMC renews with each answer", async () => {
    const { mock, bmc } = await startBench({ sessions: true });
    let token = "token-1";
    mock.rule((request) => {
      if (request.headers["x-auth-token"] === undefined) return undefined;
      if (request.headers["x-auth-token"] !== token) return { status: 401 };
      mock.sessions.clear();
      token = `${token}x`;
      mock.sessions.set(token, "/redfish/v1/SessionService/Sessions/1");
      return { status: 200, headers: { "x-auth-token": token }, body: mock.resources[request.path] };
    });
    await bmc().readPower();
    await bmc().readPower();
    assert.equal(mock.log.filter((line) => line === `POST ${SESSIONS}`).length, 1);
  });

  it("falls back to Basic for a while when the session table is full, and still powers off", async () => {
    const { mock, bmc, clock } = await startBench({ sessions: true });
    mock.answer("POST", SESSIONS, { status: 503, body: { error: { "@Message.ExtendedInfo": [{ MessageId: "IDRAC.2.8.RAC0218" }] } } }, 1);
    await bmc().forceOff();
    assert.equal(mock.power, "Off");
    await bmc().readPower();
    assert.equal(mock.log.filter((line) => line === `POST ${SESSIONS}`).length, 1);
    clock.time += 61_000;
    await bmc().readPower();
    assert.equal(mock.sessions.size, 1);
  });

  it("does not fall back to Basic again where Basic is refused", async () => {
    const { mock, bmc } = await startBench({ sessions: true });
    mock.answer("POST", SESSIONS, { status: 503 }, 2);
    mock.rule((request) => (request.headers.authorization === undefined ? undefined : { status: 401 }));
    await failure(bmc().readPower(), "busy");
    await failure(bmc().readPower(), "busy");
    assert.equal(mock.requests.filter(({ headers }) => headers.authorization !== undefined).length, 1);
    assert.equal((await bmc().readPower()).power, "on");
  });

  it("bears one refusal of valid credentials", async () => {
    const { mock, bmc, clock } = await startBench();
    mock.answer("GET", "/Systems", { status: 401 }, 1);
    assert.equal((await bmc().readPower()).power, "on");
    assert.ok(clock.slept.includes(1_000), "the second try came without a pause");
  });

  for (const sessions of [false, true]) {
    it(`tries wrong credentials twice, whoever asks, and then not before an hour has passed or they change (${sessions ? "session" : "Basic"})`, async () => {
      const { mock, bmc, clock } = await startBench({ sessions });
      const wrong = { password: "wrong-pass-phrase" };
      await failure(bmc(wrong).readPower(), "unauthorized");
      for (let minute = 0; minute < 59; minute += 1) {
        clock.time += 60_000;
        const error = await failure(bmc({ ...wrong, address: `${mock.origin}/redfish/v1/Systems/1` }).forceOff(), "unauthorized");
        assert.ok(!error.message.includes("wrong-pass-phrase"));
      }
      assert.equal(authenticated(mock.requests), 2);
      assert.equal((await bmc().readPower()).power, "on");
      clock.time += 120_000;
      await failure(bmc(wrong).readPower(), "unauthorized");
      assert.equal(mock.requests.filter(({ body }) => (body as { Password?: string } | undefined)?.Password === "wrong-pass-phrase").length, sessions ? 3 : 0);
    });
  }

  it("ends nothing but a session, whatever the BMC calls its session", async () => {
    const { mock, bmc, access } = await startBench({ sessions: true });
    mock.sessions.set("token-odd", "/redfish/v1/AccountService/Accounts/1");
    mock.answer("POST", SESSIONS, { status: 201, headers: { "x-auth-token": "token-odd", location: "/redfish/v1/AccountService/Accounts/1" } });
    await bmc().readPower();
    await access.close();
    assert.ok(mock.log.every((line) => !line.startsWith("DELETE")));
  });

  it("ends the session of a password that was changed", async () => {
    const { mock, bmc } = await startBench({ sessions: true });
    await bmc().readPower();
    mock.answer("POST", SESSIONS, { status: 201, headers: { "x-auth-token": "token-new", location: `${SESSIONS}/new` } });
    mock.sessions.set("token-new", `${SESSIONS}/new`);
    await bmc({ password: "rotated-pass-phrase" }).readPower();
    assert.deepEqual([...mock.sessions.keys()], ["token-new"]);
  });

  it("tells that the account has to change its password, and does not try again by itself", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("GET", "/Systems", { status: 403, body: { "@Message.ExtendedInfo": [{ MessageId: "Base.1.8.PasswordChangeRequired" }] } });
    const error = await failure(bmc().readPower(), "forbidden");
    assert.match(error.message, /must change its password first/);
    assert.equal(authenticated(mock.requests), 1);
  });

  it("does not repeat a password that the BMC itself repeats", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("GET", "/Systems", { status: 500, body: { error: { message: `login ${PASSWORD} failed` } } });
    const error = await failure(bmc().readPower(), "server");
    assert.match(error.message, /login \*\*\* failed/);
  });

  it("sends nothing to a BMC whose certificate is not trusted", async () => {
    const { mock, bmc } = await startBench();
    const stranger = await createCertificateAuthority("someone-else");
    const error = await failure(bmc({ certificateAuthority: stranger.certificate }).forceOff(), "untrusted");
    assert.match(error.message, /no credentials were sent/);
    assert.deepEqual(mock.log, []);
    await failure(bmc({ address: mock.origin.replace("127.0.0.1", "localhost") }).readPower(), "untrusted");
    assert.deepEqual(mock.log, []);
    assert.equal((await bmc({ certificateAuthority: stranger.certificate, insecure: true }).readPower()).power, "on");
  });
});
