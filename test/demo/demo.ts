/**
 * `make demo`: the whole story on a real control plane, each step asserted on the real thing.
 *
 *   node test/demo/demo.ts                          ends with "demo: ok"
 *   node test/demo/demo.ts --controller-replicas 0  shows that it can fail: nobody allocates, the first `pulumi up` times out
 *   node test/demo/demo.ts --leave-fault            likewise: the first repair meets a host that never powers on again
 */
import { spawnSync } from "node:child_process";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

import { Story, StepFailure } from "./story.ts";
import { tell } from "./steps.ts";

const repository = resolve(import.meta.dirname, "../..");
const { values } = parseArgs({
  options: { "controller-replicas": { type: "string", default: "1" }, "leave-fault": { type: "boolean", default: false } },
});

for (const [command, ...args] of [
  ["npm", "run", "--silent", "build"],
  [process.execPath, "test/toolchain/build.mjs"],
] as const) {
  const done = spawnSync(command, args, { cwd: repository, stdio: "inherit" });
  if (done.status !== 0) {
    console.log(`demo: failed before it began, in ${command} ${args.join(" ")}`);
    process.exit(1);
  }
}

const story = new Story((text) => process.stdout.write(text));
try {
  await tell(story, { controllerReplicas: Number(values["controller-replicas"]), leaveFault: values["leave-fault"] });
  story.end();
  console.log("demo: ok");
} catch (error) {
  story.end();
  console.log(
    error instanceof StepFailure
      ? `demo: failed at ${error.message}`
      : `demo: failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
  );
  process.exitCode = 1;
}
