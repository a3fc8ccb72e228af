import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { providerText } from "../../../sdk/nodejs/src/shell.ts";

interface Provider {
  create(inputs: object): Promise<unknown>;
  read(id: string, props: object): Promise<unknown>;
}

/** Evaluates the stored text as Pulumi does, in some folder. */
function evaluate(folder: string): Provider {
  const file = join(folder, "provider.cjs");
  writeFileSync(file, providerText("WorkerGroup"));
  const loaded = createRequire(file)(file) as { handler(): Provider };
  return loaded.handler();
}

describe("the stored provider", () => {
  let folder: string;
  beforeEach(() => {
    folder = realpathSync(mkdtempSync(join(tmpdir(), "shell-")));
  });
  afterEach(() => {
    rmSync(folder, { recursive: true });
  });

  it("passes kind, verb and arguments to the host that is installed now", async () => {
    const installed = join(folder, "node_modules/pulumi-baremetal");
    mkdirSync(installed, { recursive: true });
    writeFileSync(join(installed, "dynamic-host.js"), "exports.call = async (...args) => args;");
    const provider = evaluate(folder);
    assert.deepEqual(await provider.create({ a: 1 }), ["WorkerGroup", "create", [{ a: 1 }]]);
    assert.deepEqual(await provider.read("ns/w", { a: 1 }), ["WorkerGroup", "read", ["ns/w", { a: 1 }]]);
  });

  it("says what to install, and where, when the package is not there", async () => {
    await assert.rejects(evaluate(folder).create({}), {
      message: `The npm package pulumi-baremetal cannot be loaded from ${process.cwd()} (Cannot find module 'pulumi-baremetal/dynamic-host'). Install it there, where Pulumi.yaml's program lies: npm install pulumi-baremetal. It needs Node 22.19 or newer; this is ${process.version}.`,
    });
  });
});
