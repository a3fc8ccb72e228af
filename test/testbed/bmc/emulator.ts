/** Runs the Redfish emulator and follows the true power of its hosts. */
import { randomBytes, randomUUID } from "node:crypto";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

import { Agent, request } from "undici";
import { z } from "zod";

import { freePort } from "../ports.ts";
import { startProcess, untilReady } from "../processes.ts";
import type { RunningProcess } from "../processes.ts";
import { until } from "../wait.ts";
import { pythonEnvironment } from "./venv.ts";

export type Power = "On" | "Off";

/** How a host follows its BMC's commands. */
export interface PowerSettings {
  /** Milliseconds from an accepted command to the change of the true power; 0 by default. */
  offMs: number;
  onMs: number;
  /** Accepts the command, and nothing happens. */
  neverOff: boolean;
  neverOn: boolean;
}

export interface EmulatedSystem {
  host: string;
  uuid: string;
}

const event = z.object({ host: z.string(), power: z.enum(["On", "Off"]) });
const scriptPath = join(dirname(fileURLToPath(import.meta.url)), "emulator.py");

export class Emulator {
  readonly origin: string;
  /** What the TLS front of each BMC authenticates itself with. */
  readonly authorization: string;
  readonly agent = new Agent({ connections: 32 });
  readonly #process: RunningProcess;
  readonly #power = new Map<string, Power>();
  readonly #listeners: ((host: string, power: Power) => void)[] = [];
  readonly #stopping = new AbortController();
  #following: Promise<void> = Promise.resolve();

  constructor(origin: string, authorization: string, process: RunningProcess) {
    this.origin = origin;
    this.authorization = authorization;
    this.#process = process;
  }

  get pid(): number {
    return this.#process.pid;
  }

  power(host: string): Power {
    const power = this.#power.get(host);
    if (power === undefined) throw new Error(`the Redfish emulator has no host ${host}`);
    return power;
  }

  onPowerChange(listener: (host: string, power: Power) => void): void {
    this.#listeners.push(listener);
  }

  /** Changes how a host follows commands, or its power by hand; `uuid` is its System's. */
  async configure(uuid: string, change: { settings?: Partial<PowerSettings>; power?: Power }): Promise<void> {
    const answer = await request(`${this.origin}/testbed/hosts/${uuid}`, {
      dispatcher: this.agent,
      method: "PUT",
      headers: { authorization: this.authorization, "content-type": "application/json" },
      body: JSON.stringify(change),
    });
    const text = await answer.body.text();
    if (answer.statusCode !== 204) throw new Error(`the Redfish emulator refused ${JSON.stringify(change)}: ${answer.statusCode} ${text}`);
  }

  /** Starts to follow the power of all hosts; resolves once each one's is known. */
  async follow(hosts: readonly string[]): Promise<void> {
    const answer = await request(`${this.origin}/testbed/events`, {
      dispatcher: this.agent,
      headers: { authorization: this.authorization },
      headersTimeout: 0,
      bodyTimeout: 0,
      signal: this.#stopping.signal,
    });
    this.#following = this.#read(answer.body).catch((error: unknown) => {
      if (!this.#stopping.signal.aborted) throw error;
    });
    await until("the power of each host", () => hosts.every((host) => this.#power.has(host)));
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#following;
    await this.#process.stop();
    await this.agent.destroy();
  }

  async #read(body: NodeJS.ReadableStream): Promise<void> {
    for await (const line of createInterface({ input: body })) {
      if (line === "") continue;
      const { host, power } = event.parse(JSON.parse(line));
      const before = this.#power.get(host);
      this.#power.set(host, power);
      if (before !== undefined && before !== power) for (const listener of this.#listeners) listener(host, power);
    }
  }
}

export interface EmulatorOptions {
  /** Configuration, journal and log go here. */
  directory: string;
  journalPath: string;
  systems: readonly EmulatedSystem[];
  /** Power of all hosts at the start. */
  power: Power;
}

export async function startEmulator(options: EmulatorOptions): Promise<Emulator> {
  const interpreter = await pythonEnvironment();
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const credentials = { username: "front", password: randomBytes(18).toString("base64url") };
  const configPath = join(options.directory, "emulator.json");
  const systems = options.systems.map(({ host, uuid }, index) => ({
    uuid,
    name: host,
    power_state: options.power,
    external_notifier: false,
    nics: [{ mac: `52:54:00:00:${hexByte(index >> 8)}:${hexByte(index & 255)}`, ip: `10.9.${index >> 8}.${index & 255}` }],
  }));
  writeFileSync(configPath, JSON.stringify({ ...credentials, directory: options.directory, journal: options.journalPath, port, systems }), { mode: 0o600 });
  const process = startProcess({
    name: "Redfish emulator",
    command: interpreter,
    args: [scriptPath, configPath],
    logPath: join(options.directory, "emulator.log"),
  });
  const authorization = `Basic ${Buffer.from(`${credentials.username}:${credentials.password}`).toString("base64")}`;
  const emulator = new Emulator(origin, authorization, process);
  try {
    await untilReady(process, async () => {
      const answer = await request(`${origin}/redfish/v1/`, { dispatcher: emulator.agent });
      await answer.body.dump();
      return answer.statusCode === 200;
    });
    await emulator.follow(options.systems.map(({ host }) => host));
    return emulator;
  } catch (error) {
    await emulator.stop();
    throw error;
  }
}

export function newSystem(host: string): EmulatedSystem {
  return { host, uuid: randomUUID() };
}

function hexByte(value: number): string {
  return value.toString(16).padStart(2, "0");
}
