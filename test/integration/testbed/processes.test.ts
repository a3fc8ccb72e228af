import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { z } from "zod";

import { startProcess, untilReady } from "../../testbed/processes.ts";
import { until } from "../../testbed/wait.ts";

/** A zombie that nobody has waited for yet does not run any more. */
function runs(pid: number): boolean {
  try {
    return !/\) [ZX] /.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

describe("processes of the bed", function () {
  this.timeout(20_000);
  let directory: string;

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), "pulumi-baremetal-processes-"));
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  it("leave nothing running when the process that started them is killed with SIGKILL", async () => {
    const parent = spawn(process.execPath, [fileURLToPath(new URL("fixtures/parent.ts", import.meta.url)), directory], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = z.tuple([z.instanceof(Buffer)]).parse(await once(parent.stdout, "data"));
    const children = z.array(z.number()).parse(JSON.parse(line.toString()));
    const grandchild = await until("the grandchild", () => {
      const pid = Number(readFileSync(join(directory, "stubborn.log"), "utf8"));
      return pid > 0 && runs(pid) ? pid : undefined;
    });
    assert.deepEqual([...children, grandchild].map(runs), [true, true, true]);
    parent.kill("SIGKILL");
    await once(parent, "exit");
    await until("all of them to be gone", () => ![...children, grandchild].some(runs), { timeoutMs: 5000 });
  });

  it("end with what they had started themselves when they exit", async () => {
    const logPath = join(directory, "log");
    const child = startProcess({ name: "short", command: "/bin/sh", args: ["-c", "sleep 1000 & echo $!"], logPath });
    assert.deepEqual(await child.exited, { code: 0, signal: undefined });
    const grandchild = Number(readFileSync(logPath, "utf8"));
    await until("the grandchild to be gone", () => !runs(grandchild), { timeoutMs: 5000 });
  });

  it("end with what they had started in process groups of their own, as the Pulumi CLI does with plugins", async () => {
    const logPath = join(directory, "log");
    const start = "import os, subprocess; print(subprocess.Popen(['sleep', '1000'], preexec_fn=os.setpgrp).pid)";
    const child = startProcess({ name: "grouping", command: "python3", args: ["-c", start], logPath });
    await child.exited;
    const grandchild = Number(readFileSync(logPath, "utf8"));
    assert.ok(grandchild > 0);
    await until("the grandchild to be gone", () => !runs(grandchild), { timeoutMs: 5000 });
  });

  it("are killed when they do not end within the grace period, even when stopped", async () => {
    const child = startProcess({
      name: "deaf",
      command: "/bin/sh",
      args: ["-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done"],
      logPath: join(directory, "log"),
    });
    await untilReady(child, () => readFileSync(child.logPath, "utf8") === "deaf\n");
    child.signal("SIGSTOP");
    assert.deepEqual(await child.stop(200), { code: undefined, signal: "SIGKILL" });
    assert.equal(runs(child.pid), false);
  });

  it("fail at once, with the end of the log, when they end before they are ready", async () => {
    const child = startProcess({ name: "broken", command: "/bin/sh", args: ["-c", "echo the reason; exit 3"], logPath: join(directory, "log") });
    await assert.rejects(
      untilReady(child, () => false),
      { message: "broken ended before it was ready (exit code 3):\nthe reason" },
    );
  });
});
