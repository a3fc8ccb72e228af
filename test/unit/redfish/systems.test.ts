import assert from "node:assert/strict";
import { X509Certificate } from "node:crypto";

import { probeBmc } from "../../../provider/redfish/probe.ts";
import { standardResources, systemResource } from "../../testbed/bmc/resource-tree.ts";
import { PASSWORD, USERNAME, certificates, failure, startBench, stopBenches } from "./mock.ts";

describe("the System behind a BMC", () => {
  afterEach(stopBenches);

  it("has to be named where there are several", async () => {
    const { mock, bmc } = await startBench({ resources: standardResources(false, ["left", "right"]) });
    const error = await failure(bmc().forceOff(), "ambiguous");
    assert.match(error.message, /it has 2 Systems \(\/redfish\/v1\/Systems\/left, \/redfish\/v1\/Systems\/right\); name one of them in the address/);
    assert.deepEqual(mock.resets, []);
    await bmc({ address: `${mock.origin}/redfish/v1/Systems/right` }).forceOff();
    assert.equal(mock.log.at(-1), "POST /redfish/v1/Systems/right/Actions/ComputerSystem.Reset");
  });

  for (const id of ["1", "System.Embedded.1", "Self", "system", "Computer", "CZ1234ABCD"]) {
    it(`may have the id ${id}`, async () => {
      const { bmc } = await startBench({ resources: standardResources(false, [id]) });
      assert.equal((await bmc().readPower()).system, `/redfish/v1/Systems/${id}`);
    });
  }

  it("is looked for page by page", async () => {
    const resources = standardResources(false, ["1", "2"]);
    resources["/redfish/v1/Systems"] = { Members: [{ "@odata.id": "/redfish/v1/Systems/1" }], "Members@odata.nextLink": "/redfish/v1/Systems?$skip=1" };
    resources["/redfish/v1/Systems?$skip=1"] = { Members: [{ "@odata.id": "/redfish/v1/Systems/2" }] };
    const { bmc } = await startBench({ resources });
    await failure(bmc().readPower(), "ambiguous");
  });

  it("is not found where there is none", async () => {
    const { bmc } = await startBench({ resources: standardResources(false, []) });
    await failure(bmc().readPower(), "notFound");
  });

  it("is checked to be one where the address names it", async () => {
    const resources = standardResources(false);
    resources["/redfish/v1/Chassis/1"] = { "@odata.type": "#Chassis.v1_25_0.Chassis", PowerState: "Off" };
    const { mock, bmc } = await startBench({ resources });
    const error = await failure(bmc({ address: `${mock.origin}/redfish/v1/Chassis/1` }).readPower(), "notFound");
    assert.match(error.message, /is not a System but a #Chassis/);
    await failure(bmc({ address: `${mock.origin}/redfish/v1/Systems/9` }).readPower(), "notFound");
  });

  it("is found again after a moment in which the BMC had lost it", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("GET", "/Systems/1", { status: 404 }, 1);
    assert.equal((await bmc().readPower()).power, "on");
  });

  it("is followed through a redirect of the same origin, with the credentials", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("GET", "/Systems/by-name", { status: 307, headers: { location: `${mock.origin}/redfish/v1/Systems/1` } });
    assert.equal((await bmc({ address: `${mock.origin}/redfish/v1/Systems/by-name` }).readPower()).system, "/redfish/v1/Systems/1");
    assert.equal(mock.requests.at(-1)?.headers["authorization"]?.toString().startsWith("Basic "), true);
  });

  it("is not followed to another origin", async () => {
    const other = await startBench();
    const { mock, bmc } = await startBench();
    mock.answer("GET", "/Systems/1", { status: 308, headers: { location: `${other.mock.origin}/redfish/v1/Systems/1` } });
    await failure(bmc().readPower(), "invalid");
    assert.deepEqual(other.mock.log, []);
    mock.answer("GET", "/Systems", { status: 200, body: { Members: [{ "@odata.id": `${other.mock.origin}/redfish/v1/Systems/1` }] } });
    await failure(bmc().readPower(), "invalid");
    assert.deepEqual(other.mock.log, []);
  });

  it("is not acted on once it is other hardware than before", async () => {
    const { mock, bmc } = await startBench();
    await bmc().readPower();
    mock.resources["/redfish/v1/Systems/1"] = systemResource("1", { UUID: "11111111-0000-4000-8000-000000000000" });
    const error = await failure(bmc().forceOff(), "ambiguous");
    assert.match(error.message, /is another System than before/);
    assert.deepEqual(mock.resets, []);
  });

  it("is still the same where the BMC leaves out its ids for a while", async () => {
    const { mock, bmc } = await startBench();
    await bmc().readPower();
    mock.resources["/redfish/v1/Systems/1"] = systemResource("1", { UUID: null });
    await bmc().forceOff();
    assert.deepEqual(mock.resets, ["ForceOff"]);
  });

  it("is described, and nothing is left open", async () => {
    const resources = standardResources(true);
    resources["/redfish/v1/Systems/1"] = systemResource("1", { Links: { ManagedBy: [{ "@odata.id": "/redfish/v1/Managers/bmc" }] }, SerialNumber: "SN1" });
    resources["/redfish/v1/Managers/bmc"] = { FirmwareVersion: "7.10" };
    const { mock, clock } = await startBench({ resources, sessions: true });
    const { ca, server } = await certificates();
    const description = await probeBmc({ address: mock.origin, username: USERNAME, password: PASSWORD, certificateAuthority: ca.certificate }, { clock });
    const { at } = description.power;
    assert.deepEqual(description, {
      vendor: "Acme",
      model: "M1",
      firmware: "7.10",
      redfishVersion: "1.15.0",
      uuid: "00000000-0000-4000-8000-000000000031",
      serialNumber: "SN1",
      resetTypes: ["On", "ForceOff", "ForceRestart"],
      resetTypesTold: "inline",
      power: { power: "on", literal: "On", at, system: "/redfish/v1/Systems/1" },
      sessions: true,
      authentication: { session: "offered", basic: "unknown", used: "session" },
      clockSkewMs: 0,
      certificateFingerprint: new X509Certificate(server.certificate).fingerprint256,
      notes: [],
    });
    assert.equal(mock.sessions.size, 0);
  });
});
