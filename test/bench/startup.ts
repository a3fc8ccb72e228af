/** What our pieces cost to start and to keep: the controller, the dynamic host, the SDK in a program. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { CONTROLLER_COMMAND } from "../../sdk/nodejs/src/controllerObjects.ts";
import { until } from "../testbed/wait.ts";
import { startQuietApiServer } from "./quiet-api-server.ts";
import type { Figure } from "./report.ts";

const root = resolve(import.meta.dirname, "../..");
const dist = join(root, "sdk/nodejs/dist");
const ROUNDS = 9;
const SETTLE_MS = 10_000;

function median(values: number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Median wall time of Node running each script, the scripts taking turns so that a busy machine hits all alike. */
function timesOf(scripts: Record<string, string>): Record<string, number> {
  const taken: Record<string, number[]> = {};
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, script] of Object.entries(scripts)) {
      const began = performance.now();
      const done = spawnSync(process.execPath, ["-e", script], { cwd: root, encoding: "utf8" });
      if (done.status !== 0) throw new Error(`${name}: ${done.stderr}`);
      (taken[name] ??= []).push(performance.now() - began);
    }
  }
  return Object.fromEntries(Object.entries(taken).map(([name, values]) => [name, median(values)]));
}

function residentMegabytes(pid: number): number {
  const line = /VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
  return Number(line?.[1]) / 1024;
}

async function controller(): Promise<{ startMs: number; restMegabytes: number }> {
  const api = await startQuietApiServer();
  const folder = mkdtempSync(join(tmpdir(), "pulumi-baremetal-bench-"));
  const kubeconfig = join(folder, "kubeconfig");
  writeFileSync(kubeconfig, api.kubeconfig, { mode: 0o600 });
  const starts: number[] = [];
  const address = "127.97.0.1";
  let restMegabytes = Number.NaN;
  try {
    for (let round = 0; round < ROUNDS; round++) {
      const began = performance.now();
      const child = spawn(
        process.execPath,
        [...CONTROLLER_COMMAND.slice(1, -1), join(dist, "controller.cjs"), "--controllers=remediation,inventory", "--namespaces=default"],
        {
          stdio: "ignore",
          env: { ...process.env, KUBECONFIG: kubeconfig, POD_NAME: "bench", POD_NAMESPACE: "default", POD_IP: address },
        },
      );
      const exited = new Promise((settle) => child.on("exit", settle));
      await until("the controller to answer /healthz", async () => (await fetch(`http://${address}:8080/healthz`)).ok, { intervalMs: 5, timeoutMs: 20_000 });
      starts.push(performance.now() - began);
      if (round === ROUNDS - 1 && child.pid !== undefined) {
        // At rest means after its lists and its first minute of nothing to do have settled.
        await pause(SETTLE_MS);
        restMegabytes = residentMegabytes(child.pid);
      }
      child.kill("SIGTERM");
      await exited;
    }
  } finally {
    api.close();
    rmSync(folder, { recursive: true });
  }
  return { startMs: median(starts), restMegabytes };
}

export async function startupFigures(): Promise<Figure[]> {
  const times = timesOf({
    floor: "0",
    pulumi: 'require("@pulumi/pulumi")',
    sdk: 'require("@pulumi/pulumi"); require("pulumi-baremetal")',
    host: `require(${JSON.stringify(join(dist, "dynamic-host.cjs"))})`,
  });
  const { floor = Number.NaN, pulumi = Number.NaN, sdk = Number.NaN, host = Number.NaN } = times;
  const running = await controller();
  return [
    { name: "node alone", value: floor, unit: "ms" },
    { name: "dynamic host, start", value: host, unit: "ms", limit: 400, ratio: { to: "node alone", value: host / floor } },
    { name: "controller, start to healthy", value: running.startMs, unit: "ms", limit: 400, ratio: { to: "node alone", value: running.startMs / floor } },
    { name: "controller, resident at rest", value: running.restMegabytes, unit: "MB", limit: 90 },
    { name: "program with @pulumi/pulumi alone", value: pulumi, unit: "ms" },
    { name: "added by the SDK", value: sdk - pulumi, unit: "ms", limit: 150, ratio: { to: "@pulumi/pulumi alone", value: sdk / pulumi } },
  ];
}
