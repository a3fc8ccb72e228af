import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { providerText } from "../../sdk/nodejs/src/shell.ts";
import type { DynamicKind } from "../../sdk/nodejs/src/shell.ts";

const kinds: DynamicKind[] = ["MachineInventoryPool", "WorkerGroup", "RemediationPolicy", "ControllerDefinitions", "ControllerRemoval"];

// A change of this text shows as an update of every resource in every user's stack.
describe("the provider that Pulumi stores with each resource", () => {
  const golden = readFileSync(join(import.meta.dirname, "shell.golden.txt"), "utf8");

  for (const kind of kinds) {
    it(`of ${kind} is the frozen text`, () => {
      assert.equal(providerText(kind), golden.replace("<kind>", kind));
    });
  }

  it("is at most 1.5 KB and requires nothing but the dynamic host", () => {
    const text = providerText("MachineInventoryPool");
    assert.ok(Buffer.byteLength(text) <= 1536, `${Buffer.byteLength(text)} bytes`);
    assert.deepEqual(text.match(/require\([^)]*\)|import\b/g), ['require("pulumi-baremetal/dynamic-host")']);
  });
});
