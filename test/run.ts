/**
 * Runs the checks in order of what they need, while what is missing of the toolchain builds beside the first ones.
 *
 *   node test/run.ts                    every kind of check once, and a sample of the rest
 *   node test/run.ts --all              every case
 *   node test/run.ts --only unit,e2e    these stages alone
 *
 * Files named `*.full.test.ts` run only with --all. The last line is `N passed, N failed`.
 */
import { spawn } from "node:child_process";
import { globSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const all = process.argv.includes("--all");
const onlyAt = process.argv.indexOf("--only");
const only = onlyAt < 0 ? undefined : (process.argv[onlyAt + 1] ?? "").split(",");

interface Counts {
  passed: number;
  failed: number;
}

/** Runs a command with its output shown; resolves with its exit code, or the signal's name. */
async function run(command: string, args: string[], environment: Record<string, string> = {}): Promise<number> {
  const child = spawn(command, args, { cwd: root, stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, ...environment } });
  return new Promise((settle, reject) => child.on("error", reject).on("exit", (code) => settle(code ?? 1)));
}

/** A check that passes or fails as a whole. */
async function check(command: string, args: string[]): Promise<Counts> {
  return (await run(command, args)) === 0 ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 };
}

/** The test files of some folders, in one mocha process. A process that dies before it reports counts as one failure. */
async function mocha(name: string, folders: string[], timeoutSeconds: number): Promise<Counts> {
  const files = folders
    .flatMap((folder) => globSync(`test/${folder}/**/*.test.ts`, { cwd: root }))
    .filter((file) => all || !file.endsWith(".full.test.ts"))
    .sort();
  if (files.length === 0) return { passed: 0, failed: 0 };
  const report = join(tmpdir(), `pulumi-baremetal-${process.pid}-${name}.json`);
  const code = await run(
    process.execPath,
    [
      "node_modules/mocha/bin/mocha.js",
      "--reporter",
      "test/counting-reporter.ts",
      "--reporter-option",
      `counts=${report}`,
      "--timeout",
      String(timeoutSeconds * 1000),
      ...files,
    ],
    all ? { TEST_ALL: "1" } : {},
  );
  try {
    const counts = JSON.parse(readFileSync(report, "utf8")) as Counts;
    rmSync(report);
    return code !== 0 && counts.failed === 0 ? { ...counts, failed: 1 } : counts;
  } catch {
    console.error(`${name}: mocha ended with ${code} and without a report`);
    return { passed: 0, failed: 1 };
  }
}

const toolchain = run(process.execPath, ["test/toolchain/build.mjs"]);

async function withToolchain(stage: () => Promise<Counts>): Promise<Counts> {
  if ((await toolchain) !== 0) {
    console.error("the toolchain could not be built, see above");
    return { passed: 0, failed: 1 };
  }
  return stage();
}

const stages: [name: string, stage: () => Promise<Counts>][] = [
  // The example is typed against the built package.
  ["build", () => check("npm", ["run", "--silent", "build"])],
  ["types", () => check("npm", ["run", "--silent", "typecheck"])],
  ["lint", () => check("npm", ["run", "--silent", "lint"])],
  ["schema", () => check(process.execPath, ["provider/schema/write.ts", "--check"])],
  ["unit", () => mocha("unit", ["unit", "golden"], 10)],
  ["property", () => mocha("property", ["property"], all ? 3600 : 300)],
  ["integration", () => withToolchain(() => mocha("integration", ["integration"], 300))],
  ["e2e", () => withToolchain(() => mocha("e2e", ["e2e"], 900))],
];

const total: Counts = { passed: 0, failed: 0 };
const failedStages: string[] = [];
for (const [name, stage] of stages) {
  if (only !== undefined && !only.includes(name)) continue;
  const began = Date.now();
  console.log(`\n== ${name}`);
  const counts = await stage();
  total.passed += counts.passed;
  total.failed += counts.failed;
  if (counts.failed > 0) failedStages.push(name);
  console.log(`== ${name}: ${counts.passed} passed, ${counts.failed} failed (${Math.round((Date.now() - began) / 1000)} s)`);
}
if (failedStages.length > 0) console.log(`\nfailed in: ${failedStages.join(", ")}`);
console.log(`\n${total.passed} passed, ${total.failed} failed`);
process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0;
