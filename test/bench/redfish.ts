/** What the Redfish client costs over the bare HTTP that it uses, and whether dead BMCs slow the live ones down. */
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { readdirSync } from "node:fs";
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";

import { Client } from "undici";

import type { Clock } from "../../provider/clock.ts";
import { systemClock } from "../../provider/clock.ts";
import { RedfishAccess } from "../../provider/redfish/access.ts";
import type { RedfishBmc } from "../../provider/redfish/access.ts";
import type { ServedMocks } from "../testbed/bmc/serve-mock.ts";
import type { Figure } from "./report.ts";

const root = resolve(import.meta.dirname, "../..");
const BMCS = 1_000;
const ROUNDS = 30;
const AT_ONCE = 64;
const DEAD_ASKED_EVERY_MS = 10;
const SETTLE_MS = 500;
const SYSTEM = "/redfish/v1/Systems/1";

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

/** Works the list off, so many at once; milliseconds that each took. */
async function workOff<T>(list: readonly T[], work: (item: T) => Promise<unknown>): Promise<number[]> {
  const taken: number[] = [];
  const left = list.values();
  const worker = async (): Promise<void> => {
    for (const item of left) {
      const began = performance.now();
      await work(item);
      taken.push(performance.now() - began);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return taken;
}

async function timed(work: () => Promise<unknown>): Promise<{ wallMs: number; processorMs: number }> {
  const began = performance.now();
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return { wallMs: performance.now() - began, processorMs: (user + system) / 1_000 };
}

async function serveMocks(): Promise<{ process: ChildProcess; served: ServedMocks }> {
  const child = spawn(process.execPath, [join(root, "test/testbed/bmc/serve-mock.ts"), `--count=${BMCS}`], { cwd: root, stdio: ["pipe", "pipe", "inherit"] });
  for await (const line of createInterface({ input: child.stdout })) return { process: child, served: JSON.parse(line) as ServedMocks };
  throw new Error("the mock BMCs ended before they served");
}

/** The floor: a client and a session a BMC too, and each answer parsed. */
async function bareLoop(served: ServedMocks): Promise<{ read: (at: number) => Promise<void>; close: () => Promise<unknown> }> {
  const { origins, username, password, certificateAuthority } = served;
  const clients = origins.map(
    (origin) => new Client(origin, { connect: { ca: certificateAuthority }, allowH2: false, pipelining: 1, keepAliveTimeout: 60_000 }),
  );
  const tokens: string[] = [];
  const read = async (at: number): Promise<void> => {
    const headers = { accept: "application/json", "accept-encoding": "identity", "odata-version": "4.0", "x-auth-token": tokens[at] ?? "" };
    const answer = await clients[at]?.request({ method: "GET", path: SYSTEM, headers });
    const { PowerState } = (await answer?.body.json()) as { PowerState?: unknown };
    if (PowerState !== "On") throw new Error(`read ${String(PowerState)}`);
  };
  await workOff([...origins.keys()], async (at) => {
    const body = JSON.stringify({ UserName: username, Password: password });
    const answer = await clients[at]?.request({
      method: "POST",
      path: "/redfish/v1/SessionService/Sessions",
      headers: { "content-type": "application/json" },
      body,
    });
    await answer?.body.dump();
    tokens[at] = String(answer?.headers["x-auth-token"]);
  });
  return { read, close: () => Promise.all(clients.map((client) => client.destroy())) };
}

function bmcsOf(access: RedfishAccess, { origins, username, password, certificateAuthority }: ServedMocks): RedfishBmc[] {
  return origins.map((origin) => access.bmc({ address: `${origin}${SYSTEM}`, username, password, certificateAuthority }));
}

async function againstFloor(served: ServedMocks): Promise<Figure[]> {
  const access = new RedfishAccess({ spacingMs: 0 });
  const bmcs = bmcsOf(access, served);
  const bare = await bareLoop(served);
  const numbers = [...served.origins.keys()];
  const first = await timed(() => workOff(bmcs, (bmc) => bmc.readPower()));
  const ours: { wallMs: number; processorMs: number }[] = [];
  const floor: { wallMs: number; processorMs: number }[] = [];
  // In turns, so that a busy machine hits both alike.
  for (let round = 0; round < ROUNDS; round += 1) {
    const turns = [
      async (): Promise<unknown> => floor.push(await timed(() => workOff(numbers, bare.read))),
      async (): Promise<unknown> => ours.push(await timed(() => workOff(bmcs, (bmc) => bmc.readPower()))),
    ];
    for (const turn of round % 2 === 0 ? turns : turns.toReversed()) await turn();
  }
  await access.close();
  await bare.close();
  const median = (runs: typeof ours, of: "wallMs" | "processorMs"): number =>
    quantile(
      runs.map((run) => run[of]),
      0.5,
    );
  // Of the two next to each other, as they saw the same machine.
  const ratio = (of: "wallMs" | "processorMs"): number =>
    quantile(
      ours.map((run, round) => run[of] / (floor[round]?.[of] ?? Number.NaN)),
      0.5,
    );
  const wall = ratio("wallMs");
  const processor = ratio("processorMs");
  return [
    { name: `${BMCS} BMCs read for the first time (TLS, root, session, System)`, value: first.wallMs, unit: "ms" },
    { name: `${BMCS} BMCs read by a bare undici loop`, value: median(floor, "wallMs"), unit: "ms" },
    { name: `${BMCS} BMCs read`, value: median(ours, "wallMs"), unit: "ms", ratio: { to: "bare loop", value: wall } },
    { name: "their wall time, of the bare loop's", value: wall * 100, unit: "%", limit: 120 },
    { name: "their processor time, of the bare loop's", value: processor * 100, unit: "%" },
  ];
}

/** Takes connections and never says a word. */
async function silentServer(): Promise<{ origin: string; close: () => void }> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
  });
  await new Promise<void>((settle) => server.listen(0, "127.0.0.1", settle));
  return {
    origin: `https://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

async function amongDead(served: ServedMocks): Promise<Figure[]> {
  const { username, password, certificateAuthority } = served;
  const half = { ...served, origins: served.origins.slice(0, BMCS / 2) };
  const access = new RedfishAccess({ spacingMs: 0 });
  const live = bmcsOf(access, half);
  const silent = await Promise.all(Array.from({ length: BMCS / 4 }, silentServer));
  const refusing = silent.map((_, index) => `https://127.0.0.1:${index + 1}`);
  const dead = [...silent.map(({ origin }) => origin), ...refusing].map((address) => access.bmc({ address, username, password, certificateAuthority }));
  await workOff(live, (bmc) => bmc.readPower());
  const alone: number[] = [];
  const among: number[] = [];
  // Each of the dead is asked every few seconds, as a controller does; those that are silent are waited for all through the reading.
  const stop = new AbortController();
  let asked = 0;
  const ask = (): void => void dead[asked++ % dead.length]?.readPower(stop.signal).then(assertNever, () => undefined);
  for (let round = 0; round < ROUNDS; round += 1) {
    alone.push(...(await workOff(live, (bmc) => bmc.readPower())));
    const asking = setInterval(ask, DEAD_ASKED_EVERY_MS);
    among.push(...(await workOff(live, (bmc) => bmc.readPower())));
    clearInterval(asking);
  }
  stop.abort();
  await access.close();
  for (const { close } of silent) close();
  return [0.5, 0.99].map((share) => {
    const value = quantile(among, share);
    return {
      name: `live BMC read, ${BMCS / 2} dead beside ${BMCS / 2} live, p${share * 100}`,
      value,
      unit: "ms",
      ratio: { to: `none dead (${quantile(alone, share).toFixed(1)} ms)`, value: value / quantile(alone, share) },
    };
  });
}

function assertNever(): never {
  throw new Error("a dead BMC answered");
}

/** Pauses pass at once; deadlines are real. */
class ChurnClock implements Clock {
  ahead = 0;

  now(): number {
    return Date.now() + this.ahead;
  }

  async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    if (milliseconds >= 5_000) return systemClock.sleep(milliseconds, signal);
    this.ahead += milliseconds;
  }
}

/** Open descriptors: the process's own list leaves out sockets that wait for nothing. */
function handles(): number {
  return readdirSync("/proc/self/fd").length;
}

/** Handles that are open once those that are closing have closed. */
async function settledHandles(): Promise<number> {
  for (let before = handles(); ;) {
    await new Promise((settle) => setTimeout(settle, SETTLE_MS));
    const now = handles();
    if (now >= before) return now;
    before = now;
  }
}

/** An hour in which each minute brings fifty other BMCs to repair. */
async function churn(served: ServedMocks): Promise<Figure[]> {
  const clock = new ChurnClock();
  const access = new RedfishAccess({ clock });
  const bmcs = bmcsOf(access, served);
  const counted: { handles: number; megabytes: number }[] = [];
  const before = await settledHandles();
  for (let minute = 0; minute < 60; minute += 1) {
    const now = Array.from({ length: 50 }, (_, index) => bmcs[(minute * 50 + index) % bmcs.length]);
    await workOff(now, async (bmc) => {
      await bmc?.forceOff();
      await bmc?.readPower();
      await bmc?.on();
    });
    clock.ahead += 60_000;
    counted.push({ handles: handles() - before, megabytes: process.memoryUsage().heapUsed / 2 ** 20 });
  }
  await access.close();
  const left = (await settledHandles()) - before;
  const [middle, last] = [counted[29], counted[59]];
  return [
    { name: "handles open after 30 min of churn", value: middle?.handles ?? Number.NaN, unit: "handles" },
    {
      name: "handles open after 60 min of churn",
      value: last?.handles ?? Number.NaN,
      unit: "handles",
      ratio: { to: "after 30 min", value: (last?.handles ?? Number.NaN) / (middle?.handles ?? Number.NaN) },
    },
    { name: "handles left once closed", value: left, unit: "handles", limit: 0 },
  ];
}

export async function redfishFigures(): Promise<Figure[]> {
  const { process: child, served } = await serveMocks();
  try {
    return [...(await againstFloor(served)), ...(await amongDead(served)), ...(await churn(served))];
  } finally {
    child.kill();
  }
}
