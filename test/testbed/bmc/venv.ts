/** Python environments of the Redfish emulator and of DMTF's validator: made once per set of pinned packages, outside the checkout. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

import { cacheDirectory } from "../../toolchain/build.mjs";

const run = promisify(execFile);
const here = dirname(fileURLToPath(import.meta.url));
/** What each environment is for, by the name of its folder. */
const environments = {
  "redfish-emulator": { of: "the Redfish emulator", requirements: "requirements.txt" },
  "redfish-validator": { of: "DMTF's Redfish validator", requirements: "requirements-validator.txt" },
} as const;
export type PythonEnvironment = keyof typeof environments;
const MINIMUM_PYTHON = [3, 9] as const;
const INSTALL = "install Python 3 with its venv module (on Debian: python3 and python3-venv), then run this again";

async function python(of: string, ...args: string[]): Promise<string> {
  try {
    return (await run("python3", args, { maxBuffer: 16 * 1024 * 1024 })).stdout.trim();
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`${of} needs Python ${MINIMUM_PYTHON.join(".")} or newer: ${reason.trim()}\n${INSTALL}`, { cause: error });
  }
}

const made = new Map<PythonEnvironment, Promise<string>>();

/** Path of the interpreter; makes the environment where it is missing, and says so through `say`. */
export async function pythonEnvironment(say: (line: string) => void = () => undefined, name: PythonEnvironment = "redfish-emulator"): Promise<string> {
  let making = made.get(name);
  if (making === undefined) made.set(name, (making = make(say, name)));
  return making;
}

async function make(say: (line: string) => void, name: PythonEnvironment): Promise<string> {
  const { of, requirements } = environments[name];
  const requirementsPath = join(here, requirements);
  const version = await python(of, "-c", "import sys; print('.'.join(map(str, sys.version_info[:3])))");
  const [major = 0, minor = 0] = version.split(".").map(Number);
  if (major !== MINIMUM_PYTHON[0] || minor < MINIMUM_PYTHON[1]) {
    throw new Error(`${of} needs Python ${MINIMUM_PYTHON.join(".")} or newer, python3 is ${version}; ${INSTALL}`);
  }
  const key = createHash("sha256").update(readFileSync(requirementsPath)).update(version).digest("hex").slice(0, 10);
  const folder = join(cacheDirectory, "python", `${name}-${key}`);
  const interpreter = join(folder, "bin", "python");
  if (existsSync(interpreter)) return interpreter;

  say(`making the Python environment of ${of} in ${folder}`);
  mkdirSync(dirname(folder), { recursive: true });
  // Made beside its place and moved in as one rename: one that failed half-way is never taken for a finished one.
  const staging = `${folder}.${process.pid}.partial`;
  rmSync(staging, { recursive: true, force: true });
  try {
    await python(of, "-m", "venv", staging);
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
