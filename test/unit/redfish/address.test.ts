import assert from "node:assert/strict";

import { parseBmcAddress } from "../../../provider/redfish/address.ts";
import { BmcError } from "../../../provider/redfish/bmc.ts";

describe("the address of a BMC", () => {
  const accepted: [string, string, string | undefined][] = [
    ["https://10.0.7.7", "https://10.0.7.7", undefined],
    ["https://10.0.7.7/", "https://10.0.7.7", undefined],
    ["https://10.0.7.7/redfish/v1/", "https://10.0.7.7", undefined],
    ["https://BMC7.example:8443/redfish/v1/Systems/1", "https://bmc7.example:8443", "/redfish/v1/Systems/1"],
    ["https://[fd00::7]:8443/redfish/v1/Systems/System.Embedded.1/", "https://[fd00::7]:8443", "/redfish/v1/Systems/System.Embedded.1"],
    ["redfish://10.0.7.7/redfish/v1/Systems/Self", "https://10.0.7.7", "/redfish/v1/Systems/Self"],
    ["redfish:10.0.7.7", "https://10.0.7.7", undefined],
    ["idrac-virtualmedia+https://10.0.7.7/redfish/v1/Systems/System.Embedded.1", "https://10.0.7.7", "/redfish/v1/Systems/System.Embedded.1"],
    ["ilo5-redfish://10.0.7.7:444", "https://10.0.7.7:444", undefined],
  ];
  for (const [address, origin, systemPath] of accepted) {
    it(`is understood as ${address}`, () => {
      const parsed = parseBmcAddress(address);
      assert.equal(parsed.origin, origin);
      assert.equal(parsed.systemPath, systemPath);
    });
  }

  const refused: [string, RegExp][] = [
    ["10.0.7.7", /does not name a Redfish service; write https:\/\//],
    ["10.0.7.7:8443", /does not name a Redfish service/],
    ["ipmi://10.0.7.7", /does not name a Redfish service/],
    ["https://", /host or port is not valid/],
    ["https://10.0.7.7:99999", /host or port is not valid/],
    ["http://10.0.7.7", /plain HTTP would send the password in the clear/],
    ["redfish+http://10.0.7.7", /plain HTTP would send the password in the clear/],
    ["https://10.0.7.7/redfish/v1/Systems/1?x=1", /must not have a query/],
    ["https://10.0.7.7/ipmi", /the path is not one of a Redfish service/],
  ];
  for (const [address, message] of refused) {
    it(`is refused as ${address}`, () => {
      assert.throws(
        () => parseBmcAddress(address),
        (error) => error instanceof BmcError && error.kind === "invalid" && message.test(error.message),
      );
    });
  }

  it("is refused with credentials in it, and they are not repeated", () => {
    assert.throws(
      () => parseBmcAddress("https://admin:topsecret@10.0.7.7/redfish/v1"),
      (error) =>
        error instanceof BmcError &&
        !`${error.message} ${error.address}`.includes("topsecret") &&
        error.message.includes("credentials do not belong into the address"),
    );
  });

  it("may be plain HTTP where insecure is set", () => {
    assert.equal(parseBmcAddress("redfish+http://10.0.7.7", { insecure: true }).origin, "http://10.0.7.7");
  });
});
