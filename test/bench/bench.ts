/** `make bench`: prints figures as Markdown tables. Never part of a test: a timed test fails on a busy machine. */
import { spawnSync } from "node:child_process";
import { cpus } from "node:os";
import { resolve } from "node:path";

import { redfishFigures } from "./redfish.ts";
import { table } from "./report.ts";
import { startupFigures } from "./startup.ts";

const built = spawnSync("npm", ["run", "--silent", "build"], { cwd: resolve(import.meta.dirname, "../.."), stdio: "inherit" });
if (built.status !== 0) process.exit(1);

console.log(`${cpus().length} cores, ${cpus()[0]?.model ?? "unknown"}, Node ${process.versions.node}\n`);
console.log(table("Start-up and memory", await startupFigures()));
console.log(table("Redfish client", await redfishFigures()));
