import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";

import { failureBody } from "../../../testbed/bmc/gatekeeper.ts";
import { clean, vary } from "../../../testbed/bmc/profile.ts";
import type { Tags } from "../../../testbed/bmc/profile.ts";
import { profileNamed } from "../../../testbed/bmc/profiles.ts";
import { until } from "../../../testbed/wait.ts";
import { certificates, failure, startBench, stopBenches } from "../mock.ts";

const SYSTEM = "/redfish/v1/Systems/1";
const RESET = `${SYSTEM}/Actions/ComputerSystem.Reset`;

describe("a quirk of HTTP or TLS", () => {
  afterEach(stopBenches);

  it("Q34: where an action needs the System's tag, it is sent once more with a fresh one", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("huawei-2288h-v5") });
    await bmc().forceOff();
    await bmc().on();
    assert.equal(mock.power, "On");
    assert.deepEqual(
      mock.actions.map(({ headers, status }) => [headers["if-match"], status]),
      [
        [undefined, 428],
        ['W/"1"', 204],
        [undefined, 428],
        ['W/"2"', 204],
      ],
    );
  });

  it("Q35: where a tag does harm, none is ever sent", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("lenovo-xcc2") });
    await bmc().forceOff();
    await bmc().on();
    assert.ok(mock.requests.every(({ headers }) => headers["if-match"] === undefined));
    assert.equal(mock.power, "On");
  });

  for (const [form, wants, outcome] of [
    ["weak", "a tag", "accepted"],
    ["weak", "a strong tag", "accepted"],
    ["doubled", "a tag", "accepted"],
    ["doubled", "a strong tag", "accepted"],
    ["empty", "a tag", "refused"],
    ["empty", "a strong tag", "refused"],
    ["none", "a tag", "refused"],
  ] as [Tags["form"], Tags["wants"], string][]) {
    it(`Q35: a ${form} tag where ${wants} is wanted is ${outcome} after at most three tries`, async () => {
      const { mock, bmc } = await startBench({ profile: vary(clean, { tags: { form, wants } }) });
      if (outcome === "accepted") await bmc().forceOff();
      else await failure(bmc().forceOff(), "conflict");
      assert.equal(mock.power, outcome === "accepted" ? "Off" : "On");
      assert.ok(mock.actions.length <= 3);
    });
  }

  it("Q36: one that refuses to be asked for no compression is not asked for it a second time", async () => {
    const { mock, bmc } = await startBench({ profile: vary(clean, { connection: { refusesIdentity: true } }) });
    await bmc().readPower();
    await bmc().forceOff();
    assert.equal(mock.requests.filter(({ headers }) => headers["accept-encoding"] === "identity").length, 1);
    assert.equal(mock.power, "Off");
  });

  it("Q37: a connection that breaks after the action was taken leads to a reading, not to a second action", async () => {
    const { mock, bmc, clock } = await startBench({ profile: clean });
    mock.answer("POST", RESET, { status: 0, instead: "reset", effective: true }, 1);
    await bmc().forceOff();
    assert.deepEqual(mock.resets, ["ForceOff"]);
    assert.equal(mock.log.at(-1), `GET ${SYSTEM}`);
    assert.equal(mock.host().changes(clock.now()).length, 1);
  });

  it("Q37: where the reading does not show it, whoever asked is told that it may have happened", async () => {
    const { mock, bmc, clock } = await startBench({ profile: profileNamed("late-off") });
    mock.answer("POST", RESET, { status: 0, instead: "reset", effective: true }, 1);
    await failure(bmc().forceOff(), "unreachable");
    assert.deepEqual(mock.resets, ["ForceOff"]);
    clock.time += 30_000;
    assert.equal((await bmc().readPower()).power, "off");
    assert.equal(mock.host().changes(clock.now()).length, 1);
  });

  it("Q37: one that closes the connection after each answer is served on a new one each time", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("supermicro-x10") });
    await bmc().forceOff();
    await bmc().on();
    assert.equal(mock.power, "On");
    assert.equal(new Set(mock.requests.map(({ connection }) => connection)).size, mock.requests.length);
  });

  it("Q38: HTTP/1.1 is spoken where it can be, and HTTP/2 where there is nothing else", async () => {
    const second = await startBench({ profile: profileNamed("http2-only") });
    await second.bmc().forceOff();
    assert.equal(second.mock.power, "Off");
    assert.ok((await second.bmc().describe()).notes.includes("speaks HTTP/2 only"));
    const first = await startBench({ profile: clean });
    await first.bmc().forceOff();
    assert.equal(first.mock.power, "Off");
    assert.ok(!(await first.bmc().describe()).notes.includes("speaks HTTP/2 only"));
  });

  for (const certificate of ["self-signed", "expired", "wrong name"] as const) {
    it(`Q39: a certificate that is ${certificate} is refused before any credential is sent`, async () => {
      const { mock, bmc } = await startBench({ profile: vary(clean, { tls: { certificate } }) });
      const error = await failure(bmc().forceOff(), "untrusted");
      assert.match(error.message, /no credentials were sent/);
      assert.deepEqual(mock.log, []);
      const described = await bmc({ insecure: true }).describe();
      assert.ok(described.notes.includes("is not verified by its certificate (insecure)"));
      await bmc({ certificateFingerprint: described.certificateFingerprint ?? "" }).forceOff();
      assert.equal(mock.power, "Off");
    });
  }

  it("Q39: a fingerprint takes the place of an authority, in any way of writing it, and refuses all other certificates", async () => {
    const { mock, bmc } = await startBench({ profile: clean });
    const { server } = await certificates();
    const { fingerprint256 } = new X509Certificate(server.certificate);
    for (const certificateFingerprint of [fingerprint256, fingerprint256.toLowerCase(), fingerprint256.replaceAll(":", ""), `SHA256:${fingerprint256}`])
      assert.equal((await bmc({ certificateFingerprint }).readPower()).power, "on");
    const asked = mock.requests.length;
    const error = await failure(bmc({ certificateFingerprint: "0".repeat(64) }).forceOff(), "untrusted");
    assert.ok(error.message.includes(fingerprint256));
    await failure(bmc({ certificateFingerprint: "0".repeat(64), insecure: true }).forceOff(), "untrusted");
    const wrong = await failure(bmc({ certificateFingerprint: "no fingerprint" }).forceOff(), "invalid");
    assert.match(wrong.message, /64 hexadecimal digits/);
    assert.equal(mock.requests.length, asked);
  });

  it("Q39: TLS 1.1 is spoken only where that is asked for", async () => {
    const { mock, bmc } = await startBench({ profile: vary(clean, { tls: { old: true } }) });
    const error = await failure(bmc().forceOff(), "untrusted");
    assert.match(error.message, /set legacyTls where that is meant/);
    assert.deepEqual(mock.log, []);
    await bmc({ legacyTls: true }).forceOff();
    assert.equal(mock.power, "Off");
  });

  it("Q40: fifty that are silent do not make fifty others wait, and all who wait for a silent one hear of it at once", async () => {
    const silent = await Promise.all(Array.from({ length: 50 }, () => startBench({ profile: clean })));
    for (const { mock } of silent) mock.answer("GET", "/redfish/v1/", { status: 0, instead: "never" });
    const [first] = silent;
    assert.ok(first !== undefined);
    const live = await Promise.all(Array.from({ length: 50 }, () => startBench({ profile: clean })));
    // All through one access, as the controller does it.
    const waiting = silent.flatMap(({ mock }) => [1, 2, 3].map(() => failure(first.bmc({ address: mock.origin }).readPower(), "timeout")));
    const readings = await Promise.all(live.map(({ mock }) => first.bmc({ address: mock.origin }).readPower()));
    assert.ok(readings.every(({ power }) => power === "on"));
    await until("the silent ones to be asked", () => silent.every(({ mock }) => mock.requests.length === 1));
    first.clock.advance(10_000);
    await Promise.all(waiting);
    assert.ok(silent.every(({ mock }) => mock.requests.length === 1));
  });

  it("Q41: a BMC that restarts is unreachable, then busy, then slow to log in, and then there again with a new session", async () => {
    const { mock, bmc, clock } = await startBench({ profile: profileNamed("ibm-openbmc") });
    assert.equal((await bmc().readPower()).power, "on");
    mock.sessions.clear();
    mock.dropConnections();
    let state: "down" | "starting" | "up" = "down";
    mock.rule(() => (state === "down" ? { status: 0, instead: "reset" } : state === "starting" ? { status: 503 } : undefined));
    for (let second = 0; second < 90; second += 10) {
      await failure(bmc().readPower(), "unreachable");
      clock.time += 10_000;
    }
    state = "starting";
    await failure(bmc().readPower(), "busy");
    clock.time += 3_000;
    state = "up";
    let letIn = (): void => undefined;
    const promise = new Promise<void>((resolve) => (letIn = resolve));
    mock.rule((request) =>
      request.method === "POST" && !request.path.includes("/Actions/") ? { ...mock.gatekeeper.login(request.body, clock.now()), after: promise } : undefined,
    );
    const reading = bmc().readPower();
    await until("the login to be asked for", () => mock.log.filter((line) => line.startsWith("POST")).length === 2);
    clock.advance(12_000);
    letIn();
    assert.equal((await reading).power, "on");
    assert.equal(mock.sessions.size, 1);
  });

  it("Q42: one that answers 504 for ever is reported as hanging, and proves nothing", async () => {
    const { mock, bmc, clock } = await startBench({ profile: clean });
    await bmc().readPower();
    mock.answer("GET", SYSTEM, { status: 504 });
    for (let minute = 0; minute < 10; minute += 1) {
      const error = await failure(bmc().readPower(), "server");
      assert.match(error.message, /the BMC itself hangs, reset it by its own means/);
      await failure(bmc().forceOff(), "server");
      clock.time += 60_000;
    }
    assert.deepEqual(mock.resets, []);
  });

  for (const name of ["nvidia-gb200", "cisco-cimc", "intel-computer"]) {
    it(`Q44: 202 leaves it to the state, and the task is not asked for (${name})`, async () => {
      const { mock, bmc } = await startBench({ profile: profileNamed(name) });
      const address = `${mock.origin}/redfish/v1/Systems/${mock.profile.systems.members[0]?.id ?? ""}`;
      await bmc({ address }).forceOff();
      assert.equal((await bmc({ address }).readPower()).power, "off");
      assert.deepEqual(
        mock.actions.map(({ status }) => status),
        [202],
      );
      assert.ok(mock.log.every((line) => !line.includes("/TaskService")));
    });
  }

  it("Q45: the wait that a busy BMC names is kept, between one second and five minutes", async () => {
    const { mock, bmc, clock } = await startBench({ profile: clean });
    await bmc().readPower();
    for (const [named, waits] of [
      ["7", 7_000],
      ["0", 1_000],
      ["-5", 1_000],
      ["99999", 300_000],
      [new Date(clock.now() + 3_600_000).toUTCString(), 300_000],
    ] as const) {
      for (const status of [503, 429]) {
        mock.answer("GET", SYSTEM, { status, headers: { "retry-after": named } }, 1);
        assert.equal((await failure(bmc().readPower(), "busy")).retryAfterMs, waits);
        clock.time += waits - 1;
        const asked = mock.requests.length;
        await failure(bmc().forceOff(), "busy");
        assert.equal(mock.requests.length, asked);
        clock.time += 1;
        assert.equal((await bmc().readPower()).power, "on");
      }
    }
    assert.deepEqual(mock.resets, []);
  });

  for (const [what, body] of [
    ["messages as an object", { error: { code: "Base.1.0.GeneralError", "@Message.ExtendedInfo": { MessageId: "Base.1.0.GeneralError", Message: "broken" } } }],
    ["two JSON documents", `${JSON.stringify(failureBody("Base.1.0.GeneralError"))}${JSON.stringify(failureBody("Base.1.0.GeneralError"))}`],
    ["an HTML page", "<html><body>500</body></html>"],
    ["nothing", undefined],
    ["null", null],
    ["an array", [1, 2]],
  ] as const) {
    it(`Q49: an error whose body is ${what} is an error like any other`, async () => {
      const { mock, bmc } = await startBench({ profile: clean });
      await bmc().readPower();
      mock.answer("GET", SYSTEM, { status: 500, body }, 1);
      await failure(bmc().readPower(), "server");
      mock.answer("POST", RESET, { status: 500, body }, 1);
      await failure(bmc().forceOff(), "server");
      assert.equal(mock.power, "On");
      assert.equal((await bmc().readPower()).power, "on");
    });
  }

  it("Q51: a missing licence is a reason of its own that no repetition helps against", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("supermicro-x10") });
    mock.answer("POST", RESET, { status: 403, body: failureBody("SMC.1.0.LicenseRequired", "Not licensed to perform this request") });
    const error = await failure(bmc().forceOff(), "forbidden");
    assert.match(error.message, /the BMC lacks a licence for it/);
    assert.equal(mock.actions.length, 1);
  });

  for (const status of [301, 302, 307, 308]) {
    it(`a redirect with ${status} to another origin is refused, and that one hears nothing`, async () => {
      const other = await startBench({ profile: clean });
      const { mock, bmc } = await startBench({ profile: clean });
      mock.answer("GET", SYSTEM, { status, headers: { location: `${other.mock.origin}${SYSTEM}` } });
      await failure(bmc().readPower(), "invalid");
      mock.answer("POST", "/Sessions", { status, headers: { location: `${other.mock.origin}/redfish/v1/SessionService/Sessions` } });
      mock.sessions.clear();
      await failure(bmc().forceOff(), "invalid");
      assert.deepEqual(other.mock.log, []);
    });
  }
});
