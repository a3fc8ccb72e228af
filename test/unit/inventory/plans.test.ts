import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";

import type { LiveObject } from "../../../provider/cluster/objects.ts";
import { cleanPlan, planPatch, readPlan, reprovisionPlan } from "../../../provider/controller/inventory/plans.ts";

function secretOf(data: Record<string, string | Buffer>): LiveObject {
  const encoded = Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")]));
  return { apiVersion: "v1", kind: "Secret", metadata: { name: "inv-1", namespace: "edge", uid: "u", resourceVersion: "7" }, data: encoded };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

describe("plans", () => {
  const plan = reprovisionPlan("machine-uid", "edge-w1", "#cloud-config\n");

  it("are applied or failed only by the checksum of their exact bytes", () => {
    const state = (data: Record<string, string>): string => readPlan(secretOf({ plan: plan.text, ...data })).state;
    assert.equal(state({}), "pending");
    assert.equal(state({ "applied-checksum": sha256(plan.text) }), "applied");
    assert.equal(state({ "applied-checksum": sha256(`${plan.text}\n`) }), "pending");
    assert.equal(state({ "failed-checksum": sha256(plan.text) }), "failed");
    assert.equal(state({ "failed-checksum": sha256(plan.text), "applied-checksum": sha256(plan.text) }), "applied");
    assert.equal(state({ "applied-checksum": "" }), "pending");
  });

  it("tell what they are, for whom, and the host's name", () => {
    assert.deepEqual(readPlan(secretOf({ plan: plan.text })), {
      type: "reprovision",
      id: "machine-uid",
      state: "pending",
      failedOutput: "",
      resourceVersion: "7",
      hostname: "edge-w1",
    });
    const { type, id } = readPlan(secretOf({ plan: cleanPlan("a/b:c").text }));
    assert.deepEqual([type, id], ["clean", "a/b:c"]);
    for (const text of ["", "{}", "not json", '{"instructions":[{"name":"clean"}]}', '{"instructions":"x"}'])
      assert.equal(readPlan(secretOf({ plan: text })).type, "none");
  });

  it("differ for two machines", () => {
    assert.notEqual(cleanPlan("a").text, cleanPlan("b").text);
  });

  it("are written for one version of the Secret, and take the word on the plan before away", () => {
    const patch = planPatch("7", plan);
    assert.deepEqual(patch, {
      metadata: { resourceVersion: "7", annotations: { "baremetal.alauda.io/plan.type": "reprovision" } },
      data: { plan: Buffer.from(plan.text).toString("base64"), "applied-checksum": null, "failed-checksum": null, "failed-output": null },
    });
  });

  it("give the end of a failed output, unpacked where it is packed", () => {
    const failed = { plan: plan.text, "failed-checksum": sha256(plan.text) };
    assert.equal(readPlan(secretOf({ ...failed, "failed-output": " disk is full\n" })).failedOutput, "disk is full");
    assert.equal(readPlan(secretOf({ ...failed, "failed-output": gzipSync("disk is full") })).failedOutput, "disk is full");
    const long = readPlan(secretOf({ ...failed, "failed-output": `${"x".repeat(100_000)}end` })).failedOutput;
    assert.deepEqual([long.length, long.startsWith("…"), long.endsWith("xend")], [400, true, true]);
    assert.equal(readPlan(secretOf({ ...failed, "failed-output": Buffer.from([0x1f, 0x8b, 1, 2]) })).failedOutput, "(output that cannot be unpacked)");
  });
});
