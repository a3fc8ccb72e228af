import assert from "node:assert/strict";

import { remediationCrds } from "../../../provider/controller/crds/index.ts";
import { isNewBootOf, missingFrom } from "../../../provider/controller/remediation/boot.ts";
import { backupOf, fenceModeOf } from "../../../provider/controller/remediation/decide/fence.ts";
import { withRecord } from "../../../provider/controller/remediation/host-history.ts";
import { forIntent, newMemory, withAsk, withReading } from "../../../provider/controller/remediation/memory.ts";
import { offerPatch } from "../../../provider/controller/remediation/offer.ts";
import { parseGoDuration, readPolicy } from "../../../provider/controller/remediation/policy.ts";
import { backoffMs, offIsDue, onIsDue } from "../../../provider/controller/remediation/power.ts";
import type { NodeView, PowerView } from "../../../provider/controller/remediation/snapshot.ts";
import { POWER_HOLD_ANNOTATION } from "../../../provider/hosts/names.ts";
import { isCurrent, proveOff } from "../../../provider/hosts/off-proof.ts";
import { mayBeTakenOver, owedOf, type PowerHold, readHold, writeHold } from "../../../provider/hosts/power-hold.ts";
import type { LiveObject } from "../../../provider/cluster/objects.ts";
import type { PowerReading } from "../../../provider/redfish/bmc.ts";

const reading = (at: number, power: PowerReading["power"]): PowerReading => ({ power, literal: power, at, system: "/redfish/v1/Systems/1" });
const node = (fields: Partial<NodeView>): NodeView => ({
  name: "edge-w1",
  uid: "new",
  resourceVersion: "1",
  deleting: false,
  providerID: undefined,
  bootID: undefined,
  ready: false,
  heartbeatAt: undefined,
  outOfService: "none",
  labels: {},
  annotations: {},
  ...fields,
});

describe("the proof that a host is off", () => {
  const cases: [string, [number, PowerReading["power"]][], boolean][] = [
    [
      "two Off readings far enough apart",
      [
        [1, "off"],
        [3, "off"],
      ],
      true,
    ],
    [
      "two Off readings too close",
      [
        [1, "off"],
        [2, "off"],
      ],
      false,
    ],
    ["one Off reading", [[5, "off"]], false],
    [
      "an Off reading from before the request",
      [
        [-1, "off"],
        [1, "off"],
      ],
      false,
    ],
    [
      "On in between",
      [
        [1, "off"],
        [2, "on"],
        [4, "off"],
      ],
      false,
    ],
    [
      "On afterwards",
      [
        [1, "off"],
        [3, "off"],
        [4, "on"],
      ],
      false,
    ],
    [
      "a transitional value in between",
      [
        [1, "off"],
        [2, "other"],
        [4, "off"],
      ],
      false,
    ],
    [
      "two again after On",
      [
        [1, "off"],
        [2, "on"],
        [4, "off"],
        [6, "off"],
      ],
      true,
    ],
    ["nothing", [], false],
  ];
  for (const [what, readings, proven] of cases) {
    it(`${proven ? "holds" : "does not hold"} for ${what}`, () => {
      assert.equal(
        proveOff(
          readings.map(([at, power]) => reading(at, power)),
          0,
          2,
        ).proven,
        proven,
      );
    });
  }

  it("is acted upon only while it is fresh", () => {
    const proof = proveOff([reading(1, "off"), reading(3, "off")], 0, 2);
    assert.deepEqual([isCurrent(proof, 10_003), isCurrent(proof, 10_004)], [true, false]);
  });

  it("takes two readings even where no distance is asked for", () => {
    assert.deepEqual([proveOff([reading(1, "off")], 0, 0).proven, proveOff([reading(1, "off"), reading(1, "off")], 0, 0).proven], [false, true]);
  });
});

describe("the power-hold annotation", () => {
  const hold: Omit<PowerHold, "owed"> = {
    by: "remediation",
    purpose: "reboot",
    remediation: { kind: "HostRemediation", namespace: "a", name: "m", uid: "r" },
    machine: { namespace: "a", name: "m", uid: "machine" },
    host: "host",
    cluster: { namespace: "a", name: "edge" },
    wasOn: null,
    attempt: 1,
    askedAt: "2026-01-01T00:00:00.000Z",
    offBy: "2026-01-01T00:05:00.000Z",
  };

  it("reads back what was written", () => {
    assert.deepEqual(readHold({ [POWER_HOLD_ANNOTATION]: writeHold(hold) }), { state: "held", hold: { ...hold, owed: ["on"] } });
  });

  it("is the same text whatever the order of the fields", () => {
    assert.equal(writeHold(Object.fromEntries(Object.entries(hold).reverse()) as typeof hold), writeHold(hold));
  });

  it("names the field that is wrong", () => {
    const problem = (value: string): unknown => Reflect.get(readHold({ [POWER_HOLD_ANNOTATION]: value }), "problem");
    assert.equal(problem("off"), "annotation pulumi-baremetal.dev/power-hold is not JSON");
    assert.equal(
      problem(JSON.stringify({ ...hold, owed: [], attempt: "one" })),
      'annotation pulumi-baremetal.dev/power-hold: field "attempt" is missing or wrong',
    );
  });

  it("says what is owed", () => {
    const at = hold.askedAt;
    assert.deepEqual(owedOf({ ...hold, fence: { mode: "Taint", at } }), ["on", "untaint"]);
    assert.deepEqual(owedOf({ ...hold, onSeenAt: at, fence: { mode: "Delete", at } }), ["restore"]);
    assert.deepEqual(owedOf({ ...hold, purpose: "replace" }), []);
  });

  it("goes over to another only for its own Machine, and never from a repair under way", () => {
    const whole = (purpose: PowerHold["purpose"]): PowerHold => ({ ...hold, purpose, owed: [] });
    assert.deepEqual(
      [
        mayBeTakenOver(whole("replace"), "machine"),
        mayBeTakenOver(whole("undo"), "machine"),
        mayBeTakenOver(whole("reboot"), "machine"),
        mayBeTakenOver(whole("replace"), "another"),
      ],
      [true, true, false, false],
    );
  });
});

describe("the policy of a remediation", () => {
  it("has the defaults of the documents", () => {
    const defaults = {
      valid: true,
      policy: {
        retryLimit: 1,
        offTimeoutMs: 300_000,
        drainTimeoutMs: 300_000,
        onTimeoutMs: 300_000,
        readyTimeoutMs: 600_000,
        offConfirmationMs: 2_000,
        drainConfirmationMs: 5_000,
      },
    };
    assert.deepEqual([readPolicy(undefined), readPolicy({}), readPolicy({ strategy: {} })], [defaults, defaults, defaults]);
  });

  it("reads the older version's duration", () => {
    const ready = (timeout: string): unknown => {
      const read = readPolicy({ strategy: { timeout } });
      return read.valid ? read.policy.readyTimeoutMs : read.problem;
    };
    assert.equal(ready("5m0s"), 300_000);
    assert.equal(ready("0s"), 600_000);
    assert.equal(ready("99s"), "spec.strategy.timeout: must be at least 100s");
    assert.equal(ready("soon"), 'spec.strategy.timeout: "soon" is no duration; write it as 600s or 10m');
  });

  it("names a field that cannot be", () => {
    const read = readPolicy({ strategy: { retryLimit: 0 } });
    assert.match(read.valid ? "" : read.problem, /^spec\.strategy\.retryLimit: /);
  });

  it("parses durations as Go writes them", () => {
    assert.deepEqual(["1h30m", "1.5m", "100ms", "0", "", "5", "1d"].map(parseGoDuration), [5400, 90, 0.1, 0, undefined, undefined, undefined]);
  });
});

describe("how a Node is fenced", () => {
  it("goes by the leading digits of the workload's version", () => {
    const versions = ["v1.28.0", "1.27.9", "v1.28+", "v1.30.3-eks-1", "v2.0.0", "v1.27.16+k3s1", "", "unknown", undefined];
    assert.deepEqual(versions.map(fenceModeOf), ["Taint", "Delete", "Taint", "Taint", "Taint", "Delete", undefined, undefined, undefined]);
  });

  it("leaves out of a backup what others write anew, and keeps what an earlier one still holds", () => {
    const before = node({
      uid: "old",
      labels: { rack: "1" },
      annotations: { "csi.volume.kubernetes.io/nodeid": "{}", "cluster.x-k8s.io/machine": "m", note: "n" },
    });
    assert.deepEqual(backupOf(before, { uid: "older", labels: { zone: "a", rack: "0" }, annotations: {} }), {
      uid: "old",
      labels: { zone: "a", rack: "1" },
      annotations: { note: "n" },
    });
  });

  it("does not back up without end", () => {
    const { labels } = backupOf(node({ labels: { big: "x".repeat(70_000), small: "y" } }));
    assert.deepEqual(Object.keys(labels), []);
  });

  it("restores only what the new Node lacks, and nothing to the Node that was backed up", () => {
    const backup = { uid: "old", labels: { rack: "1", zone: "a" }, annotations: {} };
    assert.deepEqual(missingFrom(node({ labels: { zone: "b" } }), backup), { uid: "old", labels: { rack: "1" }, annotations: {} });
    assert.equal(missingFrom(node({ uid: "old" }), backup), undefined);
  });

  it("knows a new boot by its id, and only where none was known by a kubelet status after power-on", () => {
    const asked = "2026-01-01T00:00:00.000Z";
    const later = Date.parse(asked) + 1;
    const cases: [string | undefined, Partial<NodeView>, boolean][] = [
      ["a", { bootID: "b" }, true],
      ["a", { bootID: "a", heartbeatAt: later, ready: true }, false],
      ["a", { heartbeatAt: later }, false],
      [undefined, { bootID: "b", heartbeatAt: later }, true],
      [undefined, { bootID: "b", heartbeatAt: later - 1 }, false],
      [undefined, { bootID: "b" }, false],
    ];
    for (const [before, fields, expected] of cases) assert.equal(isNewBootOf(before, asked, node(fields)), expected, JSON.stringify([before, fields]));
  });
});

describe("when a BMC is asked", () => {
  const asked = (outcome: "accepted" | "refused" | "unknown"): PowerView => withAsk(newMemory("intent", true), "off", 100, outcome).power;

  it("is not asked to power off again once it accepted, or once Off was read", () => {
    assert.equal(offIsDue(asked("accepted"), 100, false, 1_000_000), false);
    assert.equal(offIsDue(withReading(newMemory("intent"), reading(200, "off")).power, 100, false, 1_000_000), false);
    assert.equal(offIsDue(asked("unknown"), 100, true, 1_000_000), false);
  });

  it("is asked again with backoff after a refusal or a lost answer", () => {
    assert.deepEqual(
      [offIsDue(asked("refused"), 100, false, 1_099), offIsDue(asked("refused"), 100, false, 1_100), offIsDue(asked("unknown"), 100, false, 1_100)],
      [false, true, true],
    );
    assert.deepEqual([1, 2, 3, 5, 6, 100].map(backoffMs), [1_000, 2_000, 4_000, 16_000, 30_000, 30_000]);
  });

  it("is first looked at by a process that did not write the intent", () => {
    assert.equal(offIsDue(newMemory("intent").power, 100, false, 1_000), false);
    assert.equal(offIsDue(withReading(newMemory("intent"), reading(200, "on")).power, 100, false, 1_000), true);
    assert.equal(onIsDue(withReading(newMemory("intent"), reading(200, "on")).power, 100, 1_000), false);
  });

  it("forgets what belonged to an earlier intent", () => {
    const memory = withReading(newMemory("first", true), reading(1, "off"));
    assert.deepEqual(forIntent(memory, "second").power, { readings: [], complete: false });
    assert.equal(forIntent(memory, "first"), memory);
    assert.equal(forIntent({ ...memory, nodeWriteForbidden: true }, "second").nodeWriteForbidden, false);
  });
});

describe("offering a Machine", () => {
  const machine = (status: object): LiveObject => ({
    apiVersion: "cluster.x-k8s.io/v1beta2",
    kind: "Machine",
    metadata: { name: "m", uid: "u", resourceVersion: "1" },
    status,
  });
  const condition = { type: "OwnerRemediated", status: "False", reason: "RemediationDeferred" };

  it("leaves alone what its owner wrote", () => {
    assert.equal(offerPatch(machine({ conditions: [condition], deprecated: { v1beta1: { conditions: [condition] } } }), "why", "now"), undefined);
    const patch = offerPatch(machine({ conditions: [condition] }), "why", "now");
    assert.deepEqual(patch, {
      deprecated: {
        v1beta1: {
          conditions: [
            { type: "OwnerRemediated", status: "False", reason: "WaitingForRemediation", message: "why", lastTransitionTime: "now", severity: "Warning" },
          ],
        },
      },
    });
  });

  it("keeps the other conditions", () => {
    const other = { type: "HealthCheckSucceeded", status: "False", reason: "UnhealthyNode", extra: "kept" };
    const patch = offerPatch(machine({ conditions: [other, { ...condition, status: "True" }] }), "why", "now");
    assert.deepEqual(Reflect.get(Object(patch), "conditions"), [
      other,
      { type: "OwnerRemediated", status: "False", reason: "WaitingForRemediation", message: "why", lastTransitionTime: "now" },
    ]);
  });
});

describe("what a host remembers", () => {
  it("stays below 4 KiB, the latest last", () => {
    let text: string | undefined;
    for (let attempt = 1; attempt <= 100; attempt++)
      text = withRecord(text, { at: "2026-01-01T00:00:00.000Z", machine: "a/m", attempt, outcome: "OnTimeout", offAskedAt: "2026-01-01T00:00:00.000Z" });
    const records: unknown[] = [JSON.parse(text ?? "[]")].flat();
    assert.ok(Buffer.byteLength(text ?? "") <= 4096 && records.length > 10);
    assert.equal(Reflect.get(Object(records.at(-1)), "attempt"), 100);
  });

  it("begins anew where it holds something else", () => {
    assert.equal([JSON.parse(withRecord("not ours", { at: "t", machine: "m", attempt: 1, outcome: "o", offAskedAt: "t" }))].flat().length, 1);
  });
});

describe("the remediation CRDs", () => {
  it("are ours by label, and serve both versions from one storage", () => {
    assert.deepEqual(
      remediationCrds.map(({ metadata }) => [metadata.name, metadata.labels?.["app.kubernetes.io/managed-by"]]),
      [
        ["metal3remediations.infrastructure.cluster.x-k8s.io", "pulumi-baremetal"],
        ["metal3remediationtemplates.infrastructure.cluster.x-k8s.io", "pulumi-baremetal"],
        ["hostremediations.infrastructure.cluster.x-k8s.io", "pulumi-baremetal"],
        ["hostremediationtemplates.infrastructure.cluster.x-k8s.io", "pulumi-baremetal"],
      ],
    );
  });
});
