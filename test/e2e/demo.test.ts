/** The demo can fail, and then says where. */
import assert from "node:assert/strict";

import { runDemo } from "./demo-run.ts";

describe("the demo without a controller", function () {
  this.timeout(240_000);

  it("fails at its first pulumi up, and says that no controller is running", async () => {
    const { exitCode, output, lastLine, leftRunning } = await runDemo("--controller-replicas", "0");
    assert.match(
      lastLine,
      /^demo: failed at step 2 \(pulumi up: controller, pool, a group of three, remediation policy\): pulumi up failed, see its output above/,
      output,
    );
    assert.equal(exitCode, 1);
    assert.match(output, /not finished after 30s: 0 of 3 machines ready; .*\. no inventory controller is running: nothing has taken up /);
    assert.deepEqual(leftRunning, []);
  });
});
