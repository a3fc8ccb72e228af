import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { RedfishAccess } from "../../../provider/redfish/access.ts";
import type { RedfishBmc } from "../../../provider/redfish/access.ts";
import { BmcError } from "../../../provider/redfish/bmc.ts";
import type { BmcErrorKind, BmcTarget } from "../../../provider/redfish/bmc.ts";
import { startBmcs } from "../../testbed/bmc/bmcs.ts";
import type { Bmcs, EmulatedBmc } from "../../testbed/bmc/bmcs.ts";
import { createCertificateAuthority } from "../../testbed/certificates.ts";
import { until } from "../../testbed/wait.ts";

async function fails(call: Promise<unknown>, kind: BmcErrorKind): Promise<void> {
  await assert.rejects(call, (error) => error instanceof BmcError && error.kind === kind);
}

describe("the BMCs of the test bed", function () {
  // Covers making the Python environment where there is none yet.
  this.timeout(180_000);
  let directory: string;
  let bmcs: Bmcs;
  let access: RedfishAccess;
  let first: EmulatedBmc;
  let second: EmulatedBmc;

  const newAccess = (): RedfishAccess => new RedfishAccess({ requestTimeoutMs: 1_000, spacingMs: 0, actionSpacingMs: 0 });
  const targetOf = (bmc: EmulatedBmc, address = bmc.address): BmcTarget => ({
    address,
    username: bmc.username,
    password: bmc.password,
    certificateAuthority: bmcs.certificateAuthority,
  });
  const reach = (bmc: EmulatedBmc, address = bmc.address): RedfishBmc => access.bmc(targetOf(bmc, address));

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), "bmcs-"));
    bmcs = await startBmcs({ directory, certificateAuthority: await createCertificateAuthority("bmc-ca"), hosts: ["rack1-01", "rack1-02"] });
    first = bmcs.bmc("rack1-01");
    second = bmcs.bmc("rack1-02");
    access = newAccess();
  });

  after(async () => {
    await access.close();
    await bmcs.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  afterEach(async () => {
    for (const bmc of bmcs.all) {
      await bmc.setFault({});
      await bmc.setPower({ offMs: 0, onMs: 0, neverOff: false, neverOn: false });
      await bmc.pressPower("On");
      await until(`${bmc.host} to be on`, () => bmc.power() === "On");
    }
  });

  it("turn a host off and on, and the journal tells what was asked and what became of it", async () => {
    const changes: string[] = [];
    const end = first.onPowerChange((power) => changes.push(power));
    await reach(first).forceOff();
    assert.equal((await reach(first).readPower()).power, "off");
    assert.equal((await reach(second).readPower()).power, "on");
    await reach(first).on();
    await until("the host to be on", () => changes.length === 2);
    end();
    assert.deepEqual(changes, ["Off", "On"]);
    assert.deepEqual(
      first.journal().map((entry) => (entry.event === "reset" ? `${entry.resetType ?? ""} ${entry.status}` : entry.power)),
      ["ForceOff 204", "Off", "On 204", "On"],
    );
    assert.deepEqual(second.journal(), []);
  });

  it("show their own System only, by its name too", async () => {
    const origin = new URL(first.address).origin;
    assert.equal((await reach(first, origin).readPower()).system, `/redfish/v1/Systems/${first.uuid}`);
    assert.equal((await reach(first, `${origin}/redfish/v1/Systems/rack1-01`).readPower()).system, `/redfish/v1/Systems/${first.uuid}`);
    await fails(reach(first, `${origin}/redfish/v1/Systems/${second.uuid}`).readPower(), "notFound");
    const description = await reach(first).describe();
    assert.equal(description.uuid, first.uuid);
    assert.equal(description.sessions, false);
  });

  it("take the time that was set, and the last command wins", async () => {
    await first.setPower({ offMs: 300 });
    const asked = Date.now();
    await reach(first).forceOff();
    assert.equal(first.power(), "On");
    await until("the host to be off", () => first.power() === "Off", { intervalMs: 10 });
    const off = first.journal().findLast((entry) => entry.event === "power");
    assert.ok(off !== undefined && off.at - asked >= 300, "the power changed before its time");

    await first.pressPower("On");
    await until("the host to be on", () => first.power() === "On");
    await first.setPower({ offMs: 60_000 });
    await reach(first).forceOff();
    await reach(first).on();
    await first.setPower({ offMs: 0 });
    assert.equal(first.power(), "On");
    const count = first.journal().length;
    await reach(first).forceOff();
    await until("the host to be off", () => first.power() === "Off");
    assert.equal(first.journal().length, count + 2);
  });

  it("may accept a command that never takes effect", async () => {
    await first.setPower({ neverOff: true });
    await reach(first).forceOff();
    assert.equal((await reach(first).readPower()).power, "on");
    await first.setPower({ neverOff: false, neverOn: true });
    await reach(first).forceOff();
    await reach(first).on();
    assert.equal((await reach(first).readPower()).power, "off");
  });

  it("fail each by itself", async () => {
    await first.setFault({ dead: true });
    await fails(reach(first).readPower(), "unreachable");
    assert.equal((await reach(second).readPower()).power, "on");
    await first.setFault({ hung: true });
    await fails(reach(first).readPower(), "timeout");
    await first.setFault({ unavailable: true });
    // Through an access of its own: a BMC that was busy is left alone for a while by whoever asked.
    const other = newAccess();
    await fails(other.bmc(targetOf(first)).forceOff(), "busy");
    await other.close();
    await first.setFault({ slowMs: 200 });
    const asked = Date.now();
    await reach(first).readPower();
    assert.ok(Date.now() - asked >= 200);
    await first.setFault({ refuseReset: 409 });
    await fails(reach(first).forceOff(), "conflict");
    assert.equal(first.power(), "On");
    assert.deepEqual(first.journal().findLast((entry) => entry.event === "reset")?.status, 409);
    // Off is read afterwards, so the lost answer is made up for; while it is not, whoever asked must know that it may have happened.
    await first.setFault({ losesAnswer: true });
    await first.setPower({ offMs: 300 });
    await fails(reach(first).forceOff(), "unreachable");
    await until("the host to be off", () => first.power() === "Off");
    await first.pressPower("On");
    await first.setPower({ offMs: 0 });
    const resets = (): number => first.journal().filter((entry) => entry.event === "reset").length;
    const before = resets();
    await reach(first).forceOff();
    assert.equal(resets(), before + 1);
    await first.setFault({});
    assert.equal((await reach(first).readPower()).power, "off");
  });

  it("ask for their own password", async () => {
    const target = { address: first.address, username: first.username, certificateAuthority: bmcs.certificateAuthority };
    await fails(access.bmc({ ...target, password: second.password }).forceOff(), "unauthorized");
    assert.equal(first.power(), "On");
    assert.equal((await reach(first).readPower()).power, "on");
    await first.setFault({ unauthorized: true });
    await fails(reach(first).readPower(), "unauthorized");
  });
});
