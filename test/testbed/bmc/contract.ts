/** What the Redfish client promises of any BMC, whatever is behind it. Run against the mock's profiles and against the real emulator. */
import assert from "node:assert/strict";

import type { RedfishAccess, RedfishBmc } from "../../../provider/redfish/access.ts";
import { BmcError } from "../../../provider/redfish/bmc.ts";
import type { BmcErrorKind, BmcTarget, PowerReading } from "../../../provider/redfish/bmc.ts";

export interface Subject {
  access: RedfishAccess;
  target: BmcTarget;
  /** The host's true power. */
  power(): "On" | "Off";
  /** Reset types that reached the BMC since the last call, with the status of each. */
  takeActions(): { type: unknown; status: number | undefined }[];
  /** Lets time pass until the BMC has followed. */
  settle(): Promise<void>;
  /** A certificate authority that the BMC's certificate is not of. */
  strangeAuthority: string;
  /** Requests that the BMC has seen so far; `undefined` where it does not count. */
  requests(): number | undefined;
  /** Sessions that are open; `undefined` where it does not tell. */
  openSessions(): number | undefined;
}

async function fails(call: Promise<unknown>, kind: BmcErrorKind): Promise<BmcError> {
  const error: unknown = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof BmcError, `expected a failure of kind ${kind}, got ${String(error)}`);
  assert.equal(error.kind, kind, error.message);
  return error;
}

/** Reads until it is so; each reading in between is one that may be. */
async function readsAtLast(subject: Subject, bmc: RedfishBmc, power: PowerReading["power"]): Promise<PowerReading> {
  for (let time = 0; time < 60; time += 1) {
    const reading = await bmc.readPower();
    assert.ok(reading.power !== "other" || ["PoweringOff", "PoweringOn"].includes(reading.literal), reading.literal);
    if (reading.power === power) return reading;
    await subject.settle();
  }
  return assert.fail(`it never read ${power}`);
}

/** Asks as a controller does: again where the BMC accepted it and nothing came of it. */
async function turned(subject: Subject, bmc: RedfishBmc, power: "on" | "off"): Promise<void> {
  for (let time = 0; time < 3; time += 1) {
    await (power === "off" ? bmc.forceOff() : bmc.on());
    for (let look = 0; look < 20; look += 1) {
      if ((await bmc.readPower()).power === power) return;
      await subject.settle();
    }
  }
  assert.fail(`it was never turned ${power}`);
}

/** Declares the cases; `begin` gives a BMC of its own to each, whose host is on. */
export function contract(begin: () => Promise<Subject>, offersForceOff: boolean): void {
  it("is read as on, at its own System", async () => {
    const subject = await begin();
    const reading = await subject.access.bmc(subject.target).readPower();
    assert.equal(reading.power, "on");
    assert.equal(reading.literal, "On");
    assert.match(reading.system, /^\/redfish\/v1\/Systems\/[^/]+\/?$/);
  });

  it(offersForceOff ? "is turned off and on by nothing but ForceOff and On" : "is not turned off by anything where ForceOff is not to be had", async () => {
    const subject = await begin();
    const bmc = subject.access.bmc(subject.target);
    if (!offersForceOff) {
      await fails(bmc.forceOff(), "unsupported");
      assert.equal(subject.power(), "On");
      assert.deepEqual(
        subject.takeActions().filter(({ type }) => type !== "ForceOff"),
        [],
      );
      return;
    }
    await turned(subject, bmc, "off");
    assert.equal(subject.power(), "Off");
    assert.deepEqual(new Set(subject.takeActions().map(({ type }) => type)), new Set(["ForceOff"]));
    await turned(subject, bmc, "on");
    assert.equal(subject.power(), "On");
    assert.deepEqual(new Set(subject.takeActions().map(({ type }) => type)), new Set(["On"]));
  });

  if (offersForceOff) {
    it("may be asked for what it is already", async () => {
      const subject = await begin();
      const bmc = subject.access.bmc(subject.target);
      await bmc.on();
      assert.equal(subject.power(), "On");
      await turned(subject, bmc, "off");
      await bmc.forceOff();
      assert.equal(subject.power(), "Off");
      await readsAtLast(subject, bmc, "off");
    });

    it("carries one ForceOff out once, however many ask for it at once", async () => {
      const subject = await begin();
      const bmc = subject.access.bmc(subject.target);
      await Promise.all([bmc.readPower(), bmc.forceOff(), bmc.readPower()]);
      await readsAtLast(subject, bmc, "off");
      const accepted = subject.takeActions().filter(({ status }) => status !== undefined && status < 300);
      assert.equal(accepted.length, 1);
    });
  }

  it("tells which reset types it offers, and what it is", async () => {
    const subject = await begin();
    const bmc = subject.access.bmc(subject.target);
    const types = await bmc.resetTypes();
    assert.ok(types.includes("On"), types.join());
    const description = await bmc.describe();
    assert.deepEqual(description.resetTypes, types);
    assert.equal(description.power.power, "on");
    assert.deepEqual(subject.takeActions(), []);
  });

  it("refuses another password at most twice, and does nothing for it", async () => {
    const subject = await begin();
    const bmc = subject.access.bmc({ ...subject.target, password: "not-the-password" });
    await fails(bmc.forceOff(), "unauthorized");
    const asked = subject.requests();
    await fails(bmc.forceOff(), "unauthorized");
    assert.equal(subject.requests(), asked);
    assert.deepEqual(subject.takeActions(), []);
    assert.equal(subject.power(), "On");
    assert.equal((await subject.access.bmc(subject.target).readPower()).power, "on");
  });

  it("hears nothing from a client that does not trust its certificate", async () => {
    const subject = await begin();
    const asked = subject.requests();
    await fails(subject.access.bmc({ ...subject.target, certificateAuthority: subject.strangeAuthority }).forceOff(), "untrusted");
    assert.equal(subject.requests(), asked);
  });

  it("has no System but its own", async () => {
    const subject = await begin();
    const { origin } = new URL(subject.target.address);
    await fails(subject.access.bmc({ ...subject.target, address: `${origin}/redfish/v1/Systems/not-there` }).forceOff(), "notFound");
    assert.deepEqual(subject.takeActions(), []);
  });

  it("is left without a session of ours", async () => {
    const subject = await begin();
    await subject.access.bmc(subject.target).readPower();
    await subject.access.close();
    assert.equal(subject.openSessions() ?? 0, 0);
  });
}
