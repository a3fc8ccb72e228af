/** DMTF's own Redfish-Service-Validator, run against a BMC: so that our mock is not our own idea of Redfish. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

import { cacheDirectory } from "../../toolchain/build.mjs";
import { pythonEnvironment } from "./venv.ts";

const run = promisify(execFile);

/** The bundle of Redfish's schemas that BMCs are held against. */
const SCHEMAS = "DSP8010_2025.4";
const RUN_TIMEOUT_MS = 240_000;
/** Not its script, which holds the path at which the environment was made before it was moved into place. */
const MAIN = "from redfish_service_validator.console_scripts import main; main()";
export interface Verdict {
  passed: number;
  warned: number;
  failed: number;
  /** Its lines about what failed or was warned of. */
  complaints: string[];
}

/** Folder of DMTF's CSDL files. No package registry has them, and nothing is fetched from elsewhere: a person puts them there once. */
function schemas(): string {
  const folder = process.env["REDFISH_SCHEMAS"] ?? join(cacheDirectory, "redfish-schemas", SCHEMAS);
  if (!existsSync(join(folder, "ComputerSystem_v1.xml"))) {
    throw new Error(
      `DMTF's schemas are not in ${folder}; put the CSDL files of its bundle ${SCHEMAS} there (they are also in the folder csdl of its repository Redfish-Publications), or set REDFISH_SCHEMAS to a folder that has them`,
    );
  }
  return folder;
}

export async function validate(bmc: { origin: string; username: string; password: string }): Promise<Verdict> {
  const interpreter = await pythonEnvironment(console.log, "redfish-validator");
  const schemaFolder = schemas();
  const reports = mkdtempSync(join(tmpdir(), "redfish-validator-"));
  try {
    const { origin, username, password } = bmc;
    const args = [
      "-r",
      origin,
      "-u",
      username,
      "-p",
      password,
      "--authtype",
      "Session",
      "--skipschema",
      "--schema_directory",
      schemaFolder,
      "--logdir",
      reports,
    ];
    // It ends with 1 where anything failed; what that was stands in its report.
    const { stdout } = await run(interpreter, ["-c", MAIN, ...args], { timeout: RUN_TIMEOUT_MS, maxBuffer: 64 * 1024 * 1024 }).catch((error: unknown) => {
      if (error instanceof Error && "stdout" in error && typeof error.stdout === "string" && error.stdout.includes("HTML Report"))
        return { stdout: error.stdout };
      throw error;
    });
    return verdictOf(stdout, reports);
  } finally {
    rmSync(reports, { recursive: true, force: true });
  }
}

function verdictOf(stdout: string, reports: string): Verdict {
  const count = (kind: string): number => [...stdout.matchAll(new RegExp(`${kind}: (\\d+)`, "g"))].reduce((total, [, number]) => total + Number(number), 0);
  const [run = ""] = readdirSync(reports);
  const log = readdirSync(join(reports, run)).find((name) => name.endsWith(".log"));
  const lines = log === undefined ? [] : readFileSync(join(reports, run, log), "utf8").split("\n");
  const complaints = lines
    .filter((line) => / - (ERROR|WARNING|CRITICAL) - /.test(line))
    .map((line) => line.replace(/^.* - (?=(ERROR|WARNING|CRITICAL) - )/, ""));
  return { passed: count("Pass"), warned: count("Warn"), failed: count("Fail"), complaints };
}
