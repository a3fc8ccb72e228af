import assert from "node:assert/strict";

import { proveOff } from "../../../../provider/hosts/off-proof.ts";
import type { RedfishBmc } from "../../../../provider/redfish/access.ts";
import type { PowerReading } from "../../../../provider/redfish/bmc.ts";
import { failureBody } from "../../../testbed/bmc/gatekeeper.ts";
import { clean, profile, vary } from "../../../testbed/bmc/profile.ts";
import { profileNamed } from "../../../testbed/bmc/profiles.ts";
import { failure, startBench, stopBenches } from "../mock.ts";
import type { Bench } from "../mock.ts";

const RESET = "/redfish/v1/Systems/1/Actions/ComputerSystem.Reset";

/** Off, off seen, on: the only way in which a host is rebooted. */
async function offAndOn({ clock }: Bench, bmc: RedfishBmc): Promise<PowerReading[]> {
  const readings: PowerReading[] = [];
  const readUntil = async (power: PowerReading["power"]): Promise<void> => {
    for (let time = 0; time < 60; time += 1) {
      const reading = await bmc.readPower();
      readings.push(reading);
      if (reading.power === power) return;
      clock.time += 1_000;
    }
    assert.fail(`it never read ${power}`);
  };
  await bmc.forceOff();
  await readUntil("off");
  await bmc.on();
  await readUntil("on");
  return readings;
}

describe("a quirk of power", () => {
  afterEach(stopBenches);

  it("Q01: On that is refused with 409 for a while after a power-off is asked again, spaced, within one attempt", async () => {
    const { mock, bmc, clock } = await startBench({ profile: profileNamed("dell-idrac10") });
    mock.power = "Off";
    await bmc().on();
    clock.time += 1_000;
    assert.equal((await bmc().readPower()).power, "on");
    assert.deepEqual(mock.resets, ["On", "On", "On", "On"]);
    assert.deepEqual(
      mock.actions.map(({ status }) => status),
      [409, 409, 409, 204],
    );
    const gaps = mock.actions.slice(1).map(({ at }, index) => at - (mock.actions[index]?.at ?? 0));
    assert.ok(
      gaps.every((gap) => gap >= 2_000),
      gaps.join(),
    );
  });

  it("Q02: a command refused with 409 because its state is reached already has succeeded, after one more reading", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("dell-idrac9") });
    await bmc().on();
    assert.deepEqual(
      mock.log.slice(-2).map((line) => line.split(" ")[0]),
      ["POST", "GET"],
    );
    mock.power = "Off";
    await bmc().forceOff();
    assert.deepEqual(
      mock.actions.map(({ status }) => status),
      [409, 409],
    );
  });

  it("Q03: 400 with the message of a System that is not ready is asked again, with another message it fails at once", async () => {
    const { mock, bmc } = await startBench();
    mock.answer("POST", RESET, { status: 400, body: failureBody("iLO.2.14.InvalidOperationForSystemState") }, 2);
    await bmc().forceOff();
    assert.deepEqual(
      mock.actions.map(({ status }) => status),
      [400, 400, 204],
    );
    mock.power = "On";
    mock.answer("POST", RESET, { status: 400, body: failureBody("iLO.2.14.SomethingElse") });
    await failure(bmc().forceOff(), "conflict");
    assert.equal(mock.actions.length, 4);
  });

  it("Q05: what is not in the advertised set is never sent, and no graceful action at all", async () => {
    const bench = await startBench({ profile: vary(clean, { resets: { types: ["On", "ForceOff", "ForceRestart"] } }) });
    await offAndOn(bench, bench.bmc());
    assert.deepEqual(bench.mock.resets, ["ForceOff", "On"]);
  });

  it("Q06: a GracefulRestart that is a hard reset is not relied on: a reboot is ForceOff, Off seen, On", async () => {
    const bench = await startBench({ profile: profileNamed("dell-idrac8") });
    await offAndOn(bench, bench.bmc());
    assert.deepEqual(bench.mock.resets, ["ForceOff", "On"]);
  });

  it("Q07: without ForceRestart a reboot is two actions with Off observed between", async () => {
    const bench = await startBench({ profile: profileNamed("ibm-openbmc") });
    const readings = await offAndOn(bench, bench.bmc());
    assert.deepEqual(bench.mock.resets, ["ForceOff", "On"]);
    const [off, on] = bench.mock.actions;
    assert.ok(readings.some(({ power, at }) => power === "off" && at > (off?.at ?? 0) && at <= (on?.at ?? 0)));
    assert.deepEqual(
      bench.mock
        .host()
        .changes(bench.clock.now())
        .map(({ power }) => power),
      ["Off", "On"],
    );
  });

  it("Q07: a ForceOff that is advertised with nothing behind it is unsupported, and the host stays on", async () => {
    const { mock, bmc } = await startBench({ profile: profileNamed("sonic-bmc") });
    await failure(bmc().forceOff(), "unsupported");
    assert.equal(mock.power, "On");
    assert.deepEqual(mock.resets, ["ForceOff"]);
  });

  it("Q08: reset types come inline, from ActionInfo that is read once, or are assumed", async () => {
    const inline = await startBench({ profile: clean });
    assert.ok((await inline.bmc().resetTypes()).includes("GracefulShutdown"));
    assert.equal((await inline.bmc().describe()).resetTypesTold, "inline");

    const told = await startBench({ profile: profileNamed("openbmc") });
    await told.bmc().resetTypes();
    await told.bmc().forceOff();
    await told.bmc().on();
    assert.equal((await told.bmc().describe()).resetTypesTold, "action info");
    assert.equal(told.mock.log.filter((line) => line.endsWith("/ResetActionInfo")).length, 1);

    const silent = await startBench({ profile: profileNamed("hpe-ilo4") });
    assert.deepEqual(await silent.bmc().resetTypes(), ["On", "ForceOff"]);
    assert.equal((await silent.bmc().describe()).resetTypesTold, "assumed");
  });

  it("Q08: assumed reset types are unlearned from a 400", async () => {
    const { bmc } = await startBench({ profile: vary(profileNamed("hpe-ilo4"), { resets: { understood: ["PowerCycle"] } }) });
    await failure(bmc().forceOff(), "unsupported");
  });

  it("Q09: with no list at all just On and ForceOff are used, and the description says that they are assumed", async () => {
    const bench = await startBench({ profile: profileNamed("hpe-ilo4") });
    await offAndOn(bench, bench.bmc());
    assert.deepEqual(bench.mock.resets, ["ForceOff", "On"]);
    const { notes } = await bench.bmc().describe();
    assert.ok(notes.includes("does not say which reset types it offers: On and ForceOff are assumed"), notes.join("; "));
  });

  for (const [quirk, name, never] of [
    ["Q10: ForceRestart, which can hang the host, is never sent", "lenovo-xcc2", ["ForceRestart"]],
    ["Q11: ForceRestart, which takes other boards' power too, is never sent", "lenovo-xcc2", ["ForceRestart"]],
    ["Q14: PushPowerButton and ForceRestart, which may be soft, are never sent", "hpe-ilo5", ["PushPowerButton", "ForceRestart"]],
  ] as const) {
    it(quirk, async () => {
      const bench = await startBench({ profile: profileNamed(name) });
      await offAndOn(bench, bench.bmc());
      const sent = new Set(bench.mock.resets);
      for (const type of never) assert.ok(bench.mock.profile.resets.types.includes(type) && !sent.has(type), type);
      assert.deepEqual(sent, new Set(["ForceOff", "On"]));
    });
  }

  it("Q12: On that is accepted and has no effect is not taken for on, and works when it is asked again", async () => {
    const { mock, bmc, clock } = await startBench({ profile: profileNamed("lenovo-xcc-drops-on") });
    mock.power = "Off";
    await bmc().on();
    for (let time = 0; time < 5; time += 1) {
      assert.equal((await bmc().readPower()).power, "off");
      clock.time += 3_000;
    }
    await bmc().on();
    assert.equal((await bmc().readPower()).power, "on");
    assert.deepEqual(mock.resets, ["On", "On"]);
  });

  it("Q15: a set without PushPowerButton is enough", async () => {
    const bench = await startBench({ profile: profileNamed("lenovo-xcc") });
    assert.ok(!bench.mock.profile.resets.types.includes("PushPowerButton"));
    await offAndOn(bench, bench.bmc());
  });

  it("Q16: off is proven by two literal Off in a row, seconds apart, and a stale On in between begins anew", async () => {
    const { mock, bmc, clock } = await startBench();
    const askedAt = clock.now();
    const readings: PowerReading[] = [];
    const proven: boolean[] = [];
    for (const value of ["Off", "On", "Off", "Off"]) {
      mock.power = value;
      readings.push(await bmc().readPower());
      proven.push(proveOff(readings, askedAt, 2_000).proven);
      clock.time += 2_000;
    }
    assert.deepEqual(proven, [false, false, false, true]);
    assert.equal(mock.log.filter((line) => line === "GET /redfish/v1/Systems/1").length, 4);
  });

  it("Q16: a state that is shown twenty seconds late is waited for, not guessed", async () => {
    const bench = await startBench({ profile: profileNamed("late-off") });
    const bmc = bench.bmc();
    await bmc.forceOff();
    const askedAt = bench.clock.now();
    const readings: PowerReading[] = [];
    while (!proveOff(readings, askedAt, 2_000).proven) {
      readings.push(await bmc.readPower());
      bench.clock.time += 2_000;
      assert.ok(readings.length < 60, "never proven");
    }
    assert.equal(bench.mock.host().truth(bench.clock.now()), "Off");
    assert.ok((readings.at(-1)?.at ?? 0) - askedAt >= 20_000);
    assert.deepEqual(bench.mock.resets, ["ForceOff"]);
  });

  for (const value of ["PoweringOff", "PoweringOn", "Paused", null, "", "off", "OFF", "off ", " Off", 0, false, ["Off"], { Off: true }, undefined]) {
    it(`Q17: ${value === undefined ? "a missing PowerState" : JSON.stringify(value)} is not off, however often it is read`, async () => {
      const { mock, bmc, clock } = await startBench();
      mock.power = value;
      const readings: PowerReading[] = [];
      for (let time = 0; time < 3; time += 1) {
        readings.push(await bmc().readPower());
        clock.time += 3_000;
      }
      assert.deepEqual(
        readings.map(({ power }) => power),
        ["other", "other", "other"],
      );
      assert.equal(proveOff(readings, 0, 2_000).proven, false);
    });
  }

  it("Q18: a refused reset is an error at once, and an accepted one that does nothing is never reported as done", async () => {
    const refused = await startBench();
    refused.mock.answer("POST", RESET, { status: 400, body: failureBody("Base.1.8.GeneralError") });
    await failure(refused.bmc().forceOff(), "conflict");
    assert.equal(refused.mock.actions.length, 1);

    const deaf = await startBench({ profile: vary(clean, { power: { ignoresOff: Number.POSITIVE_INFINITY } }) });
    await deaf.bmc().forceOff();
    const readings: PowerReading[] = [];
    for (let second = 0; second < 60; second += 1) {
      readings.push(await deaf.bmc().readPower());
      deaf.clock.time += 1_000;
    }
    assert.equal(proveOff(readings, 0, 2_000).proven, false);
    assert.ok(readings.every(({ power }) => power === "on"));
  });

  it("Q20: an action that is refused for ever is asked a bounded number of times", async () => {
    const { mock, bmc, clock } = await startBench();
    mock.answer("POST", RESET, { status: 400, body: failureBody("iLO.2.14.InvalidOperationForSystemState") });
    const askedAt = clock.now();
    await failure(bmc().forceOff(), "conflict");
    assert.ok(mock.actions.length <= 6, String(mock.actions.length));
    assert.ok(clock.now() - askedAt <= 12_000);
  });

  it("Q21: the action goes to the target that the System names, wherever it moved", async () => {
    const bench = await startBench({ profile: profileNamed("fujitsu-irmc-s5") });
    await offAndOn(bench, bench.bmc());
    assert.deepEqual([...new Set(bench.mock.actions.map(({ path }) => path))], ["/redfish/v1/Systems/0/Actions/Oem/FTSComputerSystem.Reset"]);
  });

  it("Q22: while the host still reads On nothing but the one ForceOff is sent, and On refused is no reboot", async () => {
    const { mock, bmc, clock } = await startBench({ profile: vary(clean, { power: { ignoresOff: Number.POSITIVE_INFINITY } }) });
    await bmc().forceOff();
    for (let second = 0; second < 60; second += 1) {
      assert.equal((await bmc().readPower()).literal, "On");
      clock.time += 1_000;
    }
    assert.deepEqual(mock.resets, ["ForceOff"]);
    assert.deepEqual(mock.host().changes(clock.now()), []);
  });

  it("Q22: a host that can only be cycled is rebooted once, never fenced; one that can be turned off is not cycled", async () => {
    const only = await startBench({ profile: profileNamed("power-cycle-only") });
    await failure(only.bmc().forceOff(), "unsupported");
    await only.bmc().powerCycle();
    assert.deepEqual(only.mock.resets, ["PowerCycle"]);
    const { notes } = await only.bmc().describe();
    assert.ok(notes.includes("does not offer ForceOff: its host can be rebooted with PowerCycle but never fenced"), notes.join("; "));
    const able = await startBench({ profile: clean });
    const error = await failure(able.bmc().powerCycle(), "unsupported");
    assert.match(error.message, /offers ForceOff, so it is turned off and on and not cycled blindly/);
    assert.deepEqual(able.mock.resets, []);
  });

  it("Q23: requests never overlap, and keep their distance; power actions keep a greater one", async () => {
    const { mock, bmc } = await startBench({ profile: vary(profileNamed("supermicro-x10"), {}) });
    await Promise.all([bmc().readPower(), bmc().forceOff(), bmc().on(), bmc().readPower(), bmc().forceOff()]);
    const { requests, actions } = mock;
    for (const [index, request] of requests.slice(1).entries()) {
      const before = requests[index];
      assert.ok(
        before?.answeredAt !== undefined && request.at - before.answeredAt >= 100,
        `${request.path} came ${request.at - (before?.answeredAt ?? 0)} ms after an answer`,
      );
    }
    assert.equal(actions.length, 3);
    for (const [index, action] of actions.slice(1).entries()) assert.ok(action.at - (actions[index]?.at ?? 0) >= 1_000);
  });

  it("Q53: the reset types of the Manager are not taken for the System's", async () => {
    const { mock, bmc } = await startBench({ profile: profile("graceful manager", "", { resets: { managerTypes: ["GracefulRestart"] } }) });
    await bmc().describe();
    assert.ok((await bmc().resetTypes()).includes("ForceOff"));
    await bmc().forceOff();
    assert.deepEqual(mock.resets, ["ForceOff"]);
  });
});
