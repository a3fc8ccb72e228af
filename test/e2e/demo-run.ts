/** The demo as `make demo` runs it, in a temporary folder of its own. */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const repository = resolve(import.meta.dirname, "../..");

export interface DemoRun {
  exitCode: number | null;
  output: string;
  lastLine: string;
  /** Command lines of processes that the demo left behind. */
  leftRunning: string[];
}

/** Command lines of all processes that name the folder. */
function processesIn(folder: string): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(join("/proc", pid, "cmdline"), "utf8").replaceAll("\0", " ");
        return command.includes(folder) ? [command] : [];
      } catch {
        // It ended in between.
        return [];
      }
    });
}

export async function runDemo(...args: string[]): Promise<DemoRun> {
  const folder = mkdtempSync(join(tmpdir(), "pulumi-baremetal-demo-"));
  try {
    const child = spawn(process.execPath, ["test/demo/demo.ts", ...args], {
      cwd: repository,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, TMPDIR: folder },
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (output += text));
    const exitCode = await new Promise<number | null>((done, fail) => child.on("error", fail).on("close", done));
    return { exitCode, output, lastLine: output.trimEnd().split("\n").at(-1) ?? "", leftRunning: processesIn(folder) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
