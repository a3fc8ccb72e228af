import assert from "node:assert/strict";

import { clean, vary } from "../../../testbed/bmc/profile.ts";
import { profileNamed } from "../../../testbed/bmc/profiles.ts";
import { systemResource } from "../../../testbed/bmc/resource-tree.ts";
import { failure, startBench, stopBenches } from "../mock.ts";

describe("a quirk of discovery", () => {
  afterEach(stopBenches);

  it("Q46: several Systems in an order that changes: unnamed is refused, named hits the right one each time", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("nvidia-gb200") });
    for (let time = 0; time < 4; time += 1) await failure(bmc().forceOff(), "ambiguous");
    assert.deepEqual(mock.resets, []);
    for (let time = 0; time < 4; time += 1) {
      await bmc({ address: `${mock.origin}/redfish/v1/Systems/HGX_Baseboard_0` }).forceOff();
      await bmc({ address: `${mock.origin}/redfish/v1/Systems/HGX_Baseboard_0` }).on();
    }
    assert.ok(mock.actions.every(({ path }) => path === "/redfish/v1/Systems/HGX_Baseboard_0/Actions/ComputerSystem.Reset"));
  });

  it("Q46: several Systems are told apart by the hardware that is expected, whatever their order", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("nvidia-gb200") });
    for (let time = 0; time < 4; time += 1) {
      await bmc({ expected: { serialNumber: "V00000002" } }).forceOff();
      await bmc({ expected: { serialNumber: "V00000002" } }).on();
    }
    assert.ok(mock.actions.length >= 8 && mock.actions.every(({ path }) => path.startsWith("/redfish/v1/Systems/HGX_Baseboard_0/")));
    await failure(bmc({ expected: { serialNumber: "elsewhere" } }).forceOff(), "ambiguous");
    await failure(bmc({ expected: {} }).forceOff(), "ambiguous");
    assert.equal(mock.actions.filter(({ path }) => path.includes("System_0/")).length, 0);
  });

  it("Q46: the one System is acted on only where it is the expected hardware, in either byte order of its UUID", async () => {
    const uuid = "00112233-4455-6677-8899-aabbccddeeff";
    const { mock, bmc } = await startBench({ profile: vary(clean, { systems: { members: [{ id: "1", uuid: uuid.toUpperCase(), serial: "SN-1" }] } }) });
    const error = await failure(bmc({ expected: { uuid: "99999999-4455-6677-8899-aabbccddeeff" } }).forceOff(), "ambiguous");
    assert.match(error.message, /is not the expected hardware/);
    await failure(bmc({ expected: { uuid, serialNumber: "SN-2" } }).forceOff(), "ambiguous");
    assert.deepEqual(mock.resets, []);
    await bmc({ expected: { uuid } }).forceOff();
    await bmc({ expected: { uuid: "33221100-5544-7766-8899-aabbccddeeff", serialNumber: "sn-1" } }).on();
    assert.deepEqual(mock.resets, ["ForceOff", "On"]);
  });

  it("Q46: a System that became other hardware between two actions is not acted on, even between two tries of one", async () => {
    const { mock, bmc } = await startBench();
    await bmc().readPower();
    mock.answer(
      "POST",
      "/ComputerSystem.Reset",
      { status: 400, body: { error: { "@Message.ExtendedInfo": [{ MessageId: "iLO.2.14.InvalidOperationForSystemState" }] } } },
      1,
    );
    mock.rule((request) => {
      if (request.method === "POST") mock.resources["/redfish/v1/Systems/1"] = systemResource("1", { UUID: "11111111-0000-4000-8000-000000000000" });
      return undefined;
    });
    await failure(bmc().forceOff(), "ambiguous");
    assert.deepEqual(mock.resets, ["ForceOff"]);
    assert.equal(mock.power, "On");
  });

  for (const id of ["1", "System.Embedded.1", "Self", "system", "Computer", "437XR1138R2"]) {
    it(`Q47: the id ${id} is found by links, and may be given with or without a slash at the end`, async () => {
      for (const trailingSlash of [false, true]) {
        const { mock, bmc } = await startBench({ profile: vary(clean, { systems: { members: [{ id }], trailingSlash } }) });
        await bmc().forceOff();
        assert.equal(mock.power, "Off");
        for (const end of ["", "/"]) assert.equal((await bmc({ address: `${mock.origin}/redfish/v1/Systems/${id}${end}` }).readPower()).power, "off");
      }
    });
  }

  it("Q48: no action ever goes to a chassis", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("dell-c6420") });
    await bmc().forceOff();
    await bmc().on();
    await bmc().describe();
    assert.ok(mock.log.every((line) => !line.startsWith("POST /redfish/v1/Chassis")));
    const lures = await startBench({ profile: vary(clean, { resets: { target: "/redfish/v1/Chassis/1/Actions/Chassis.Reset" } }) });
    await failure(lures.bmc().forceOff(), "unsupported");
    assert.ok(lures.mock.log.every((line) => line.startsWith("GET") || line.endsWith("/Sessions")));
  });

  for (const target of [
    "/redfish/v1/Systems/2/Actions/ComputerSystem.Reset",
    "/redfish/v1/Systems/11/Actions/ComputerSystem.Reset",
    "/redfish/v1/Managers/bmc/Actions/Manager.Reset",
    "/redfish/v1/Chassis/1/Actions/Chassis.Reset",
    "/redfish/v1/AccountService/Accounts",
    "/redfish/v1/Systems/1",
    "../2/Actions/ComputerSystem.Reset",
  ]) {
    it(`a reset that the System says is at ${target} is refused: it is not its own`, async () => {
      const { mock, bmc } = await startBench({ profile: vary(clean, { resets: { target } }) });
      await failure(bmc().forceOff(), "unsupported");
      assert.ok(mock.log.every((line) => line.startsWith("GET") || line.endsWith("/Sessions")));
    });
  }

  it("Q52: a System that is not found for a moment is found at the second look", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("dell-idrac9") });
    assert.equal((await bmc().readPower()).power, "on");
    assert.deepEqual(
      mock.requests.filter(({ path }) => path.endsWith("/System.Embedded.1")).map(({ status }) => status),
      [404, 200],
    );
  });

  it("Q52: a System whose path changed is found anew by links", async () => {
    const { mock, bmc } = await startBench();
    await bmc().readPower();
    mock.resources["/redfish/v1/Systems/renamed"] = systemResource("renamed", { UUID: (mock.resources["/redfish/v1/Systems/1"] as { UUID: string }).UUID });
    mock.resources["/redfish/v1/Systems"] = { Members: [{ "@odata.id": "/redfish/v1/Systems/renamed" }] };
    delete mock.resources["/redfish/v1/Systems/1"];
    assert.equal((await bmc().readPower()).system, "/redfish/v1/Systems/renamed");
  });
});
