import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, readdirSync, rmSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { z } from "zod";

import { until } from "../../testbed/wait.ts";

/** Names of the programs that run with the text in their arguments. */
function programsWith(text: string): string[] {
  return readdirSync("/proc")
    .filter((entry) => /^\d+$/.test(entry))
    .flatMap((pid) => {
      try {
        const [program = "", ...args] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        return args.some((argument) => argument.includes(text)) ? [program.replace(/^.*\//, "")] : [];
      } catch {
        return [];
      }
    })
    .sort();
}

describe("a test bed whose process is killed with SIGKILL", function () {
  this.timeout(120_000);

  it("leaves no process behind", async () => {
    const parent = spawn(process.execPath, [fileURLToPath(new URL("fixtures/bed-parent.ts", import.meta.url))], { stdio: ["ignore", "pipe", "inherit"] });
    const [output] = z.tuple([z.instanceof(Buffer)]).parse(await once(parent.stdout, "data"));
    const directory = output.toString().trim();
    try {
      const programs = programsWith(directory).filter((name) => name !== "sh");
      assert.deepEqual(programs, [
        "cluster-api-bootstrap-kubeadm",
        "cluster-api-core",
        "etcd",
        "kube-apiserver",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-controller-manager",
      ]);
      parent.kill("SIGKILL");
      await once(parent, "exit");
      await until("everything to be gone", () => programsWith(directory).length === 0, { timeoutMs: 5000, describe: () => programsWith(directory).join() });
    } finally {
      parent.kill("SIGKILL");
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
