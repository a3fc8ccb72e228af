/** DMTF's own Redfish-Service-Validator, run against a BMC: so that our mock is not our own idea of Redfish. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

import { request } from "undici";

import { cacheDirectory } from "../../toolchain/build.mjs";
import { pythonEnvironment } from "./venv.ts";

const run = promisify(execFile);

/** The bundle of Redfish's schemas that BMCs are held against. */
const SCHEMAS = "DSP8010_2025.4";
const SCHEMAS_URL = `https://www.dmtf.org/sites/default/files/standards/documents/${SCHEMAS}.zip`;
const DOWNLOAD_TIMEOUT_MS = 120_000;
const RUN_TIMEOUT_MS = 240_000;
/** Not its script, which holds the path at which the environment was made before it was moved into place. */
const MAIN = "from redfish_service_validator.console_scripts import main; main()";
const UNPACK = `
import sys, zipfile, os
with zipfile.ZipFile(sys.argv[1]) as bundle:
    for name in bundle.namelist():
        if name.endswith(".xml"):
            with open(os.path.join(sys.argv[2], os.path.basename(name)), "wb") as file:
                file.write(bundle.read(name))
`;

export interface Verdict {
  passed: number;
  warned: number;
  failed: number;
  /** Its lines about what failed or was warned of. */
  complaints: string[];
}

/** Folder of DMTF's CSDL files: the one named by REDFISH_SCHEMAS, or the bundle downloaded once from dmtf.org. */
async function schemas(interpreter: string): Promise<string> {
  const given = process.env["REDFISH_SCHEMAS"];
  if (given !== undefined && given !== "") return given;
  const folder = join(cacheDirectory, "redfish-schemas", SCHEMAS);
  if (existsSync(folder)) return folder;
  mkdirSync(dirname(folder), { recursive: true });
  const staging = `${folder}.${process.pid}.partial`;
  rmSync(staging, { recursive: true, force: true });
  mkdirSync(staging);
  try {
    const bundle = join(staging, "bundle.zip");
    writeFileSync(bundle, await download());
    await run(interpreter, ["-c", UNPACK, bundle, staging]);
    rmSync(bundle);
    if (!existsSync(join(staging, "ComputerSystem_v1.xml"))) throw new Error(`${SCHEMAS_URL} is no bundle of Redfish schemas`);
    renameSync(staging, folder);
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
  return folder;
}

async function download(): Promise<Buffer> {
  try {
    const answer = await request(SCHEMAS_URL, { signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS) });
    if (answer.statusCode !== 200) throw new Error(`it was answered ${answer.statusCode}`);
    return Buffer.from(await answer.body.arrayBuffer());
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(
      `DMTF's schemas cannot be had from ${SCHEMAS_URL} (${reason}); set REDFISH_SCHEMAS to a folder with the CSDL files of that bundle, which is the folder csdl of DMTF's repository Redfish-Publications too`,
      { cause: error },
    );
  }
}

export async function validate(bmc: { origin: string; username: string; password: string }): Promise<Verdict> {
  const interpreter = await pythonEnvironment(console.log, "redfish-validator");
  const schemaFolder = await schemas(interpreter);
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
