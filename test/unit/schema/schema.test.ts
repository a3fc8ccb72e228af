import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { packageSpec } from "../../../provider/schema/schema.ts";
import { typescriptTypes } from "../../../provider/schema/typescript.ts";
import { generated } from "../../../provider/schema/write.ts";

const schema = packageSpec("1.2.3");

function inputs(
  resource: string,
): Record<string, { default?: unknown; description?: string; secret?: boolean; willReplaceOnChanges?: boolean; $ref?: string; oneOf?: unknown[] }> {
  const found = schema.resources[`baremetal:index:${resource}`];
  assert.ok(found);
  return found.inputProperties;
}

describe("the package schema", () => {
  it("is what is checked in", async () => {
    for (const [name, text] of Object.entries(await generated())) {
      assert.equal(readFileSync(new URL(`../../../${name}`, import.meta.url), "utf8"), text, `${name} is out of date; run: node provider/schema/write.ts`);
    }
  });

  it("has the three resources", () => {
    assert.deepEqual(Object.keys(schema.resources), [
      "baremetal:index:MachineInventoryPool",
      "baremetal:index:RemediationPolicy",
      "baremetal:index:WorkerGroup",
    ]);
  });

  it("describes every input and every field of every type", () => {
    const bare: string[] = [];
    for (const [token, resource] of Object.entries(schema.resources)) {
      for (const [key, spec] of Object.entries({ ...resource.properties, ...resource.inputProperties }))
        if ((spec.description ?? "").length < 8) bare.push(`${token}.${key}`);
    }
    for (const [token, type] of Object.entries(schema.types)) {
      if (type.type !== "object") continue;
      for (const [key, spec] of Object.entries(type.properties)) if ((spec.description ?? "").length < 8) bare.push(`${token}.${key}`);
    }
    assert.deepEqual(bare, []);
  });

  it("says defaults, secrets and what replaces", () => {
    assert.equal(inputs("WorkerGroup")["waitTimeout"]?.default, "60m");
    assert.equal(inputs("MachineInventoryPool")["waitTimeout"]?.default, "2m");
    assert.equal(inputs("MachineInventoryPool")["bmcCredentials"]?.secret, true);
    for (const resource of ["WorkerGroup", "MachineInventoryPool"]) {
      const replacing = Object.entries(inputs(resource)).flatMap(([key, spec]) => (spec.willReplaceOnChanges === true ? [key] : []));
      assert.deepEqual(replacing, ["clusterName", "name", "namespace"]);
    }
  });

  it("requires exactly what has no default", () => {
    assert.deepEqual(schema.resources["baremetal:index:WorkerGroup"]?.requiredInputs, ["bootstrap", "clusterName", "infrastructure", "replicas", "version"]);
    assert.deepEqual(schema.resources["baremetal:index:MachineInventoryPool"]?.requiredInputs, ["clusterName", "machineInventories"]);
    assert.deepEqual(schema.resources["baremetal:index:RemediationPolicy"]?.requiredInputs, ["workerGroup"]);
  });

  it("holds no input that only the SDK fills", () => {
    for (const resource of Object.values(schema.resources))
      for (const key of ["owner", "resourceName"]) assert.ok(!(key in resource.inputProperties) && !(key in resource.properties));
  });

  it("refers only to types that it has", () => {
    const text = JSON.stringify(schema);
    const missing = [...text.matchAll(/#\/types\/([\w:]+)/g)].map(([, token]) => token ?? "").filter((token) => !(token in schema.types));
    assert.deepEqual(missing, []);
  });

  it("gives the SDK inputs of which every part may be an output", () => {
    const types = typescriptTypes(schema);
    assert.match(types, /export interface WorkerGroupArgs \{/);
    assert.match(types, / {2}replicas: pulumi\.Input<number>;/);
    assert.match(types, / {2}machineInventories: pulumi\.Input<pulumi\.Input<PoolMemberArgs>\[\]>;/);
    assert.match(types, / {2}pool: pulumi\.Input<string \| PoolReferenceArgs>;/);
    assert.match(types, /export type RemediationPolicyEngine = "bundled" \| "capm3";/);
  });
});
