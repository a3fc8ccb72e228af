/** The whole demo, and that it notices a host that is left broken. */
import assert from "node:assert/strict";

import { runDemo } from "./demo-run.ts";

describe("the demo", function () {
  this.timeout(15 * 60_000);

  it("ends well", async () => {
    const { exitCode, output, lastLine, leftRunning } = await runDemo();
    assert.equal(lastLine, "demo: ok", output);
    assert.equal(exitCode, 0);
    assert.deepEqual(leftRunning, []);
  });

  it("fails at the first repair where the host never powers on again", async () => {
    const { exitCode, output, lastLine, leftRunning } = await runDemo("--leave-fault");
    assert.match(lastLine, /^demo: failed at step 7 \(A host hangs and is repaired\): waited in vain for edge-w1 to be Ready after a new boot/, output);
    assert.equal(exitCode, 1);
    assert.deepEqual(leftRunning, []);
  });
});
