import assert from "node:assert/strict";

import fc from "fast-check";

import type { Clock } from "../../../provider/clock.ts";
import { systemClock } from "../../../provider/clock.ts";
import { RedfishAccess } from "../../../provider/redfish/access.ts";
import type { RedfishBmc } from "../../../provider/redfish/access.ts";
import { BmcError } from "../../../provider/redfish/bmc.ts";
import { HostileBmc } from "./hostile-bmc.ts";
import type { Seen, Spoiling } from "./hostile-bmc.ts";

const CASES = process.env["TEST_ALL"] === undefined ? 4_000 : 100_000;
const SEED = Number(process.env["FUZZ_SEED"] ?? Math.floor(Math.random() * 2 ** 31));
const WORKERS = 16;
/** Real milliseconds that a request is given, whatever the client asks for. */
const DEADLINE_MS = 40;
/** Real milliseconds after which a case hangs: many times what all of its requests may take. */
const HANGS_AFTER_MS = 15_000;
const PASSWORD = "pass-phrase-of-the-fuzz";

const calls = ["readPower", "forceOff", "on", "powerCycle", "resetTypes", "describe"] as const;
type Call = (typeof calls)[number];
const asked: Record<Call, string | undefined> = {
  readPower: undefined,
  resetTypes: undefined,
  describe: undefined,
  forceOff: "ForceOff",
  on: "On",
  powerCycle: "PowerCycle",
};

/** Pauses pass at once and are added to the time; a deadline is a short real one. */
class HurriedClock implements Clock {
  #ahead = 0;

  now(): number {
    return Date.now() + this.#ahead;
  }

  async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    if (milliseconds >= 5_000) return systemClock.sleep(DEADLINE_MS, signal);
    this.#ahead += milliseconds;
  }
}

const paths = [
  "/redfish/v1/Systems/2/Actions/ComputerSystem.Reset",
  "/redfish/v1/Managers/1/Actions/Manager.Reset",
  "/redfish/v1/AccountService/Accounts",
  "/redfish/v1/Systems/1",
  "/redfish/v1/Chassis/1/Actions/Chassis.Reset",
  "/redfish/v1/Systems/2",
  "http://203.0.113.1/redfish/v1",
  "//203.0.113.1/x",
  "/",
  "",
];
const fields = [
  ["Systems"],
  ["Systems", "@odata.id"],
  ["Links", "Sessions", "@odata.id"],
  ["Members"],
  ["Members", "@odata.id"],
  ["Members@odata.nextLink"],
  ["@odata.id"],
  ["@odata.type"],
  ["@odata.etag"],
  ["PowerState"],
  ["UUID"],
  ["Actions"],
  ["Actions", "#ComputerSystem.Reset", "target"],
  ["Actions", "#ComputerSystem.Reset", "@Redfish.ActionInfo"],
  ["Actions", "#ComputerSystem.Reset", "ResetType@Redfish.AllowableValues"],
  ["Parameters"],
  ["Parameters", "AllowableValues"],
  ["FirmwareVersion"],
];
const value = fc.oneof(
  fc.constantFrom<unknown>("Off", "off", "On", null, 7, [], {}, ["ForceOff"], [null]),
  fc.constantFrom(...paths),
  fc.string({ unit: "binary" }),
  fc.jsonValue({ maxDepth: 3 }),
);
const severalSystems: Spoiling = {
  what: "field",
  path: ["Members"],
  value: [{ "@odata.id": "/redfish/v1/Systems/1" }, { "@odata.id": "/redfish/v1/Systems/2" }],
};
const lure: fc.Arbitrary<Spoiling> = fc.record({
  what: fc.constant("field" as const),
  path: fc.constant(["Actions", "#ComputerSystem.Reset", "target"]),
  value: fc.constantFrom(...paths),
});
const headerValue = fc.string({ unit: fc.constantFrom("a", "b", "c", "0", "1", "9", "-", ":", "/", " ", ",", ";", '"', "W", "\\", "%") });
const spoiling: fc.Arbitrary<Spoiling> = fc.oneof(
  { weight: 2, arbitrary: fc.constant<Spoiling>({ what: "status", status: 401 }) },
  { weight: 1, arbitrary: fc.constant(severalSystems) },
  { weight: 2, arbitrary: lure },
  { weight: 4, arbitrary: fc.record({ what: fc.constant("field" as const), path: fc.constantFrom(...fields), value }) },
  {
    weight: 3,
    arbitrary: fc.record({
      what: fc.constant("body" as const),
      body: fc.oneof(
        fc.json(),
        fc.string({ unit: "binary" }),
        fc.constantFrom(
          "",
          "{",
          "null",
          '{"error":{}}{"error":{}}',
          "<html>",
          "[".repeat(10_000),
          `{"error":{"message":"${PASSWORD} secret-token"}}`,
          '{"error":{"@Message.ExtendedInfo":{"MessageId":"x.InvalidOperationForSystemState"}}}',
          "\ufeff{}",
        ),
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      what: fc.constant("status" as const),
      status: fc.oneof(
        fc.constantFrom(200, 202, 301, 307, 308, 400, 401, 403, 404, 406, 409, 412, 428, 429, 500, 503, 504),
        fc.integer({ min: 200, max: 999 }),
      ),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      what: fc.constant("header" as const),
      name: fc.constantFrom(
        "Location",
        "Retry-After",
        "ETag",
        "X-Auth-Token",
        "Content-Length",
        "Transfer-Encoding",
        "Content-Encoding",
        "Connection",
        "Date",
        "Upgrade",
      ),
      value: fc.oneof(headerValue, fc.constantFrom(...paths, "chunked", "gzip", "0", "5", "99999999", "-1", "close", "h2c", "secret-token-2")),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      what: fc.constant("raw" as const),
      bytes: fc.oneof(
        fc.string({ unit: "binary" }),
        fc.constantFrom("HTTP/1.1 200 OK\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "HTTP/0.9 hello", "\r\n\r\n", "HTTP/1.1 200 OK\r\nA: b\n\n{}"),
      ),
    }),
  },
  { weight: 2, arbitrary: fc.record({ what: fc.constant("cut" as const), share: fc.double({ min: 0, max: 1, noNaN: true }) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("stall" as const), share: fc.double({ min: 0, max: 0.99, noNaN: true }) }) },
  { weight: 1, arbitrary: fc.record({ what: fc.constant("slow" as const), pieces: fc.integer({ min: 2, max: 20 }) }) },
);
const story = fc.record({
  call: fc.constantFrom(...calls),
  spoilings: fc.array(fc.option(spoiling, { nil: undefined, freq: 3 }), { minLength: 1, maxLength: 9 }),
});
type Story = { call: Call; spoilings: (Spoiling | undefined)[] };

async function run(bmc: RedfishBmc, call: Call): Promise<{ outcome: "ok" | BmcError["kind"] }> {
  try {
    await bmc[call]();
    return { outcome: "ok" };
  } catch (error) {
    assert.ok(error instanceof BmcError, `not a BmcError: ${String(error)}`);
    const shown = `${error.message} ${error.stack ?? ""}`;
    assert.ok(!shown.includes(PASSWORD) && !shown.includes("secret-token"), `a credential is shown: ${shown}`);
    return { outcome: error.kind };
  }
}

/** Nothing but what was asked, and not again unless the BMC said that it did nothing. */
function checkActions(seen: readonly Seen[], call: Call): void {
  for (const { method, path } of seen) {
    assert.ok(method === "GET" || method === "POST" || (method === "DELETE" && /\/sessions\/[^/]+\/?$/i.test(path)), `${method} ${path}`);
    assert.ok(!(method === "POST" && path.toLowerCase().includes("/chassis/")), path);
  }
  const posts = seen.filter(({ method, body }) => method === "POST" && !body.includes('"UserName"'));
  const type = asked[call];
  for (const [index, { path, body, refused }] of posts.entries()) {
    assert.ok(type !== undefined, `${call} sent a POST to ${path}`);
    assert.equal(body, JSON.stringify({ ResetType: type }));
    assert.match(path, /^\/redfish\/v1\/Systems\/[^/]+\/.*Actions\/|^\/Systems\/[^/]+\/.*Actions\//i);
    assert.ok(refused || index === posts.length - 1, `${type} was sent again after an answer that did not refuse it`);
  }
}

async function tell(bmc: HostileBmc, { call, spoilings }: Story): Promise<BmcError["kind"] | "ok"> {
  bmc.reset();
  bmc.spoilings = spoilings;
  const access = new RedfishAccess({ clock: new HurriedClock(), connectTimeoutMs: 5_000, requestTimeoutMs: 5_000, spacingMs: 0, actionSpacingMs: 0 });
  const target = { address: bmc.origin, username: "operator", password: PASSWORD, insecure: true };
  let timer: NodeJS.Timeout | undefined;
  const hangs = new Promise<never>((_resolve, reject) => (timer = setTimeout(() => reject(new Error("it hangs")), HANGS_AFTER_MS)));
  try {
    const work = async (): Promise<BmcError["kind"] | "ok"> => {
      const { outcome } = await run(access.bmc(target), call);
      await access.close();
      return outcome;
    };
    const outcome = await Promise.race([work(), hangs]);
    checkActions(bmc.seen, call);
    return outcome;
  } finally {
    clearTimeout(timer);
  }
}

describe("the Redfish client before a hostile BMC", () => {
  const bmcs = Array.from({ length: WORKERS }, () => new HostileBmc());
  before(() => Promise.all(bmcs.map((bmc) => bmc.start())));
  after(() => Promise.all(bmcs.map((bmc) => bmc.stop())));

  it(`neither crashes nor hangs nor does what was not asked, in ${CASES} cases`, async function () {
    this.timeout(process.env["TEST_ALL"] === undefined ? 120_000 : 1_800_000);
    const outcomes = new Map<string, number>();
    const batch = 2_000;
    for (let done = 0; done < CASES; done += batch) {
      const stories: Story[] = fc.sample(story, { numRuns: Math.min(batch, CASES - done), seed: SEED + done });
      const left = stories.values();
      await Promise.all(
        bmcs.map(async (bmc) => {
          for (const next of left) {
            try {
              const outcome = await tell(bmc, next);
              outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
            } catch (error) {
              throw new Error(
                `FUZZ_SEED=${SEED}: ${error instanceof Error ? error.message : String(error)}\n${JSON.stringify(next)}\n${JSON.stringify(bmc.seen)}`,
                { cause: error },
              );
            }
          }
        }),
      );
    }
    const shown = [...outcomes].map(([outcome, count]) => `${outcome} ${count}`).join(", ");
    console.log(`      FUZZ_SEED=${SEED}: ${shown}`);
    // Were one kind of outcome missing, the cases would no longer reach what they are for.
    for (const outcome of [
      "ok",
      "timeout",
      "unreachable",
      "invalid",
      "busy",
      "conflict",
      "notFound",
      "unsupported",
      "unauthorized",
      "forbidden",
      "server",
      "ambiguous",
    ])
      assert.ok(outcomes.has(outcome), `no case ended as ${outcome}: ${shown}`);
  });
});
