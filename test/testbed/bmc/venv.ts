/** The Python environment in which the Redfish emulator runs: made once per set of pinned packages, outside the checkout. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { cacheDirectory } from "../../toolchain/build.mjs";

const run = promisify(execFile);
const requirementsPath = join(dirname(fileURLToPath(import.meta.url)), "requirements.txt");
const MINIMUM_PYTHON = [3, 9] as const;
const INSTALL = "install Python 3 with its venv module (on Debian: python3 and python3-venv), then run this again";

async function python(...args: string[]): Promise<string> {
  try {
    return (await run("python3", args, { maxBuffer: 16 * 1024 * 1024 })).stdout.trim();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`the Redfish emulator needs Python ${MINIMUM_PYTHON.join(".")} or newer: ${reason.trim()}\n${INSTALL}`, { cause: error });
  }
}

let made: Promise<string> | undefined;

/** Path of the interpreter; makes the environment where it is missing, and says so through `say`. */
export async function pythonEnvironment(say: (line: string) => void = () => undefined): Promise<string> {
  made ??= make(say);
  return made;
}

async function make(say: (line: string) => void): Promise<string> {
  const version = await python("-c", "import sys; print('.'.join(map(str, sys.version_info[:3])))");
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major !== MINIMUM_PYTHON[0] || minor < MINIMUM_PYTHON[1]) {
    throw new Error(`the Redfish emulator needs Python ${MINIMUM_PYTHON.join(".")} or newer, python3 is ${version}; ${INSTALL}`);
  }
  const key = createHash("sha256").update(readFileSync(requirementsPath)).update(version).digest("hex").slice(0, 10);
  const folder = join(cacheDirectory, "python", `redfish-emulator-${key}`);
  const interpreter = join(folder, "bin", "python");
  if (existsSync(interpreter)) return interpreter;

  say(`making the Python environment of the Redfish emulator in ${folder}`);
  mkdirSync(dirname(folder), { recursive: true });
  // Made beside its place and moved in as one rename: one that failed half-way is never taken for a finished one.
  const staging = `${folder}.${process.pid}.partial`;
  rmSync(staging, { recursive: true, force: true });
  try {
    await python("-m", "venv", staging);
    await run(join(staging, "bin", "python"), ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirementsPath]);
    try {
      renameSync(staging, folder);
    } catch (error) {
      // Another process was quicker.
      if (!existsSync(interpreter)) throw error;
    }
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  return interpreter;
}
