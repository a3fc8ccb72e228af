import assert from "node:assert/strict";

import { standardResources, systemResource } from "../../testbed/bmc/resource-tree.ts";
import { failure, startBench, stopBenches } from "./mock.ts";

const SYSTEM = "/redfish/v1/Systems/1";
const RESET = `${SYSTEM}/Actions/ComputerSystem.Reset`;

describe("power over Redfish", () => {
  afterEach(stopBenches);

  it("is read from the only System, found by links from the service root", async () => {
    const { mock, bmc, clock } = await startBench();
    const reading = await bmc().readPower();
    assert.deepEqual(reading, { power: "on", literal: "On", at: clock.now(), system: SYSTEM });
    assert.deepEqual(mock.log, ["GET /redfish/v1/", "GET /redfish/v1/Systems", `GET ${SYSTEM}`]);
  });

  for (const [value, power, literal] of [
    ["Off", "off", "Off"],
    ["PoweringOff", "other", "PoweringOff"],
    ["off", "other", "off"],
    ["Off ", "other", "Off "],
    ["", "other", ""],
    ["Paused", "other", "Paused"],
    [null, "other", "null"],
    [undefined, "other", ""],
    [["Off"], "other", '["Off"]'],
  ] as const) {
    it(`counts ${value === undefined ? "a missing PowerState" : JSON.stringify(value)} as ${power}`, async () => {
      const { mock, bmc } = await startBench();
      mock.power = value;
      const reading = await bmc().readPower();
      assert.equal(reading.power, power);
      assert.equal(reading.literal, literal);
    });
  }

  it("is turned off and on with ForceOff and On at the target that the System names", async () => {
    const moved = "/redfish/v1/Systems/1/Actions/Oem/Elsewhere.Reset";
    const resources = standardResources(false);
    resources[SYSTEM] = systemResource("1", {
      Actions: { "#ComputerSystem.Reset": { target: moved, "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "ForceRestart"] } },
    });
    const { mock, bmc } = await startBench({ resources });
    await bmc().forceOff();
    assert.equal((await bmc().readPower()).power, "off");
    await bmc().on();
    assert.equal((await bmc().readPower()).power, "on");
    assert.deepEqual(mock.resets, ["ForceOff", "On"]);
    assert.deepEqual(
      mock.log.filter((line) => line.startsWith("POST")),
      [`POST ${moved}`, `POST ${moved}`],
    );
  });

  it("is not asked for where the reset type is not offered", async () => {
    const resources = standardResources(false);
    resources[SYSTEM] = systemResource("1", {
      Actions: { "#ComputerSystem.Reset": { target: RESET, "ResetType@Redfish.AllowableValues": ["On", "PowerCycle"] } },
    });
    const { mock, bmc } = await startBench({ resources });
    const error = await failure(bmc().forceOff(), "unsupported");
    assert.match(error.message, /does not offer ForceOff, only On, PowerCycle/);
    assert.deepEqual(mock.resets, []);
    assert.deepEqual(await bmc().resetTypes(), ["On", "PowerCycle"]);
  });

  it("takes the offered reset types from ActionInfo where they are not inline", async () => {
    const resources = standardResources(false);
    const info = "/redfish/v1/Systems/1/ResetActionInfo";
    resources[SYSTEM] = systemResource("1", { Actions: { "#ComputerSystem.Reset": { target: RESET, "@Redfish.ActionInfo": info } } });
    resources[info] = { Parameters: [{ Name: "ResetType", AllowableValues: ["ForceOff", "On", "Nmi"] }] };
    const { bmc } = await startBench({ resources });
    assert.deepEqual(await bmc().resetTypes(), ["ForceOff", "On", "Nmi"]);
  });

  it("assumes On and ForceOff where nothing is said about what is offered", async () => {
    const resources = standardResources(false);
    resources[SYSTEM] = systemResource("1", { Actions: { "#ComputerSystem.Reset": { target: RESET } } });
    const { mock, bmc } = await startBench({ resources });
    assert.deepEqual(await bmc().resetTypes(), ["On", "ForceOff"]);
    await bmc().forceOff();
    assert.deepEqual(mock.resets, ["ForceOff"]);
  });

  it("never goes through a chassis", async () => {
    const resources = standardResources(false);
    resources[SYSTEM] = systemResource("1", { Actions: { "#ComputerSystem.Reset": { target: "/redfish/v1/Chassis/1/Actions/Chassis.Reset" } } });
    const { mock, bmc } = await startBench({ resources });
    await failure(bmc().forceOff(), "unsupported");
    assert.deepEqual(
      mock.log.filter((line) => !line.startsWith("GET")),
      [],
    );
  });

  it("is off where ForceOff is refused because it already is", async () => {
    const { mock, bmc } = await startBench();
    mock.power = "Off";
    mock.answer("POST", RESET, { status: 409, body: { error: { "@Message.ExtendedInfo": { MessageId: "IDRAC.2.8.PSU501" } } } });
    await bmc().forceOff();
    assert.deepEqual(mock.resets, ["ForceOff"]);
    assert.equal(mock.log.at(-1), `GET ${SYSTEM}`);
  });

  it("refused as invalid in the present state is a conflict that says what the state reads, and is not repeated", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("POST", RESET, {
      status: 400,
      body: { error: { "@Message.ExtendedInfo": [{ MessageId: "iLO.2.14.UnsupportedOperation", Message: "not now" }] } },
    });
    const error = await failure(bmc().forceOff(), "conflict");
    assert.match(error.message, /answered 400: not now \(UnsupportedOperation\); the System reads "On"/);
    assert.deepEqual(mock.resets, ["ForceOff"]);
  });

  it("asked with a value that the BMC does not know is unsupported", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("POST", RESET, { status: 400, body: { error: { "@Message.ExtendedInfo": [{ MessageId: "Base.1.13.ActionParameterNotSupported" }] } } });
    await failure(bmc().forceOff(), "unsupported");
  });

  it("is never asked a second time after the connection broke", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("POST", RESET, { status: 0, instead: "reset" });
    await failure(bmc().forceOff(), "unreachable");
    assert.deepEqual(mock.resets, ["ForceOff"]);
  });

  it("is read again once where the connection broke", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("GET", SYSTEM, { status: 0, instead: "reset" }, 1);
    assert.equal((await bmc().readPower()).power, "on");
    assert.equal(mock.log.filter((line) => line === `GET ${SYSTEM}`).length, 2);
  });

  it("accepted with 202 and a task is left to the state", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("POST", RESET, { status: 202, headers: { location: "/redfish/v1/TaskService/Tasks/9", "retry-after": "Wed, 21 Oct 2026 07:28:00 GMT" } });
    await bmc().forceOff();
    assert.equal((await bmc().readPower()).power, "on");
    assert.deepEqual(mock.resets, ["ForceOff"]);
  });

  it("carries a tag only once the BMC asks for one", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("GET", SYSTEM, { status: 200, headers: { etag: 'W/"41"' }, body: systemResource("1") });
    mock.rule((request) => (request.method === "POST" && request.headers["if-match"] === undefined ? { status: 428 } : undefined));
    await bmc().forceOff();
    assert.deepEqual(
      mock.requests.filter(({ method }) => method === "POST").map(({ headers }) => headers["if-match"]),
      [undefined, 'W/"41"'],
    );
  });

  for (const [etag, tags] of [
    ['W/"41"', [undefined, 'W/"41"', '"41"']],
    ['""41""', [undefined, '""41""', '"41"']],
    ['""', [undefined]],
  ] as const) {
    it(`gives up after trying the forms of the tag ${etag}`, async () => {
      const { mock, bmc } = await startBench();
      mock.answer("GET", SYSTEM, { status: 200, headers: { etag }, body: systemResource("1") });
      mock.answer("POST", RESET, { status: 412 });
      await failure(bmc().forceOff(), "conflict");
      assert.deepEqual(
        mock.requests.filter(({ method }) => method === "POST").map(({ headers }) => headers["if-match"]),
        tags,
      );
    });
  }
});
