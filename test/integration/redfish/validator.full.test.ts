import assert from "node:assert/strict";

import { createCertificateAuthority, issueCertificate } from "../../testbed/certificates.ts";
import { MockBmc } from "../../testbed/bmc/mock-bmc.ts";
import type { MockBmcOptions } from "../../testbed/bmc/mock-bmc.ts";
import { clean } from "../../testbed/bmc/profile.ts";
import { profileNamed } from "../../testbed/bmc/profiles.ts";
import { resourcesOf } from "../../testbed/bmc/resource-tree.ts";
import { validate } from "../../testbed/bmc/validator.ts";
import type { Verdict } from "../../testbed/bmc/validator.ts";

const credentials = { username: "operator", password: "mock-pass-phrase" };

describe("DMTF's Redfish-Service-Validator", function () {
  // Covers making its Python environment and getting the schemas, where they are not there yet.
  this.timeout(600_000);

  async function verdictOn(options: Partial<MockBmcOptions>): Promise<Verdict> {
    const ca = await createCertificateAuthority("bmc-ca");
    const certificate = await issueCertificate(ca, { commonName: "bmc", ipAddresses: ["127.0.0.1"] });
    const mock = new MockBmc({ certificate, ...credentials, ...options });
    await mock.start();
    try {
      return await validate({ origin: mock.origin, ...credentials });
    } finally {
      await mock.stop();
    }
  }

  for (const profile of [clean, profileNamed("openbmc"), profileNamed("ibm-openbmc")]) {
    it(`has nothing against the profile ${profile.name}`, async () => {
      const { passed, warned, failed, complaints } = await verdictOn({ profile });
      assert.deepEqual({ warned, failed, complaints }, { warned: 0, failed: 0, complaints: [] });
      assert.ok(passed > 100, String(passed));
    });
  }

  it("would say so if it had", async () => {
    const resources = resourcesOf(clean);
    const system = resources["/redfish/v1/Systems/1"];
    assert.ok(typeof system === "object");
    resources["/redfish/v1/Systems/1"] = { ...system, SystemType: "Imaginary", Status: { State: 7 } };
    const { failed, complaints } = await verdictOn({ resources });
    assert.ok(failed >= 2, JSON.stringify(complaints));
    assert.ok(complaints.some((line) => line.includes("SystemType")));
  });
});
