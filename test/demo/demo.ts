/**
 * `make demo`: the whole story on a real control plane, each step asserted on the real thing.
 *
 *   node test/demo/demo.ts                          ends with "demo: ok"
 *   node test/demo/demo.ts --controller-replicas 0  shows that it can fail: nobody allocates, the first `pulumi up` times out
 *   node test/demo/demo.ts --leave-fault            likewise: the first repair meets a host that never powers on again
 */
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import { parseArgs } from "node:util";

import { Story, StepFailure } from "./story.ts";
import { tell } from "./steps.ts";

const repository = resolve(import.meta.dirname, "../..");
const { values } = parseArgs({
  options: { "controller-replicas": { type: "string", default: "1" }, "leave-fault": { type: "boolean", default: false } },
});

/** Runs a command of the set-up with its output shown. */
async function prepare(command: string, ...args: string[]): Promise<void> {
  const child = spawn(command, args, { cwd: repository, stdio: "inherit" });
  const code = await new Promise((settle, fail) => child.on("error", fail).on("exit", settle));
  if (code !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${String(code)}`);
}

const build = (...names: string[]): Promise<void> => prepare(process.execPath, "test/toolchain/build.mjs", ...names);

try {
  await prepare("npm", "run", "--silent", "build");
  await build("etcd", "kube-apiserver", "kube-controller-manager", "cluster-api-core", "cluster-api-bootstrap-kubeadm");
} catch (error) {
  console.log(`demo: failed before it began: ${error instanceof Error ? error.message : String(error)}`);
  process.exit(1);
}
// The bed needs no more than that; what its users need goes on building beside it.
const pulumi = build();
pulumi.catch(() => undefined);

const story = new Story((text) => process.stdout.write(text));
try {
  await tell(story, { controllerReplicas: Number(values["controller-replicas"]), leaveFault: values["leave-fault"], pulumi });
  story.end();
  console.log("demo: ok");
} catch (error) {
  const where = error instanceof StepFailure ? "demo: failed at " : "demo: failed: ";
  const [reason = "", ...details] = (error instanceof Error ? error.message : String(error)).split("\n");
  if (details.length > 0) console.log(details.join("\n").trimEnd());
  if (!(error instanceof StepFailure) && error instanceof Error) console.log(error.stack);
  story.end();
  // Nothing may come after it: the last line says how it ended.
  console.log(`${where}${reason}`);
  process.exitCode = 1;
}
