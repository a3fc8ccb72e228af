/** The BMCs of a test bed: one a host, each with an address, a port, a password and faults of its own. */
import { randomBytes, randomInt } from "node:crypto";
import { mkdirSync } from "node:fs";
import { join } from "node:path";

import { issueCertificate } from "../certificates.ts";
import type { KeyPair } from "../certificates.ts";
import { freePort, releasePorts } from "../ports.ts";
import { newSystem, startEmulator } from "./emulator.ts";
import type { Emulator, Power, PowerSettings } from "./emulator.ts";
import { BmcFront } from "./front.ts";
import type { BmcFault } from "./front.ts";
import { readJournal } from "./journal.ts";
import type { JournalEntry } from "./journal.ts";

export type { BmcFault, JournalEntry, Power, PowerSettings };

export interface EmulatedBmc {
  readonly host: string;
  /** `https://127.x.y.z:port/redfish/v1/Systems/<uuid>`. */
  readonly address: string;
  readonly uuid: string;
  readonly username: string;
  readonly password: string;
  /** True power of the host, whatever the BMC says of it. */
  power(): Power;
  /** Calls back at each change of the true power; the returned function ends that. */
  onPowerChange(listener: (power: Power) => void): () => void;
  /** Replaces the BMC's faults; `{}` heals it. */
  setFault(fault: BmcFault): Promise<void>;
  /** Changes how the host follows commands; what is not named stays. */
  setPower(settings: Partial<PowerSettings>): Promise<void>;
  /** Switches the host by hand, at once. */
  pressPower(power: Power): Promise<void>;
  /** What was asked of this BMC and what became of the power. */
  journal(): JournalEntry[];
}

export interface Bmcs {
  readonly journalPath: string;
  /** PEM that all certificates of the BMCs chain to. */
  readonly certificateAuthority: string;
  readonly all: readonly EmulatedBmc[];
  bmc(host: string): EmulatedBmc;
  journal(): JournalEntry[];
  stop(): Promise<void>;
}

export interface BmcsOptions {
  /** Journal, log and configuration go into its folder `bmc`. */
  directory: string;
  certificateAuthority: KeyPair;
  hosts: readonly string[];
  /** Power of all hosts at the start; On by default. */
  power?: Power;
}

const USERNAME = "admin";

class Member implements EmulatedBmc {
  readonly host: string;
  readonly address: string;
  readonly uuid: string;
  readonly username = USERNAME;
  readonly password: string;
  readonly #emulator: Emulator;
  readonly #front: BmcFront;
  readonly #journalPath: string;
  readonly #listeners = new Set<(power: Power) => void>();

  constructor(identity: { host: string; uuid: string; address: string; password: string }, emulator: Emulator, front: BmcFront, journalPath: string) {
    this.host = identity.host;
    this.uuid = identity.uuid;
    this.address = identity.address;
    this.password = identity.password;
    this.#emulator = emulator;
    this.#front = front;
    this.#journalPath = journalPath;
    emulator.onPowerChange((host, power) => {
      if (host === this.host) for (const listener of this.#listeners) listener(power);
    });
  }

  power(): Power {
    return this.#emulator.power(this.host);
  }

  onPowerChange(listener: (power: Power) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async setFault(fault: BmcFault): Promise<void> {
    this.#front.fault = fault;
    await (fault.dead === true ? this.#front.close() : this.#front.listen());
  }

  async setPower(settings: Partial<PowerSettings>): Promise<void> {
    await this.#emulator.configure(this.uuid, { settings });
  }

  async pressPower(power: Power): Promise<void> {
    await this.#emulator.configure(this.uuid, { power });
  }

  journal(): JournalEntry[] {
    return readJournal(this.#journalPath, this.host);
  }

  async close(): Promise<void> {
    await this.#front.close();
  }
}

function loopbackAddress(): string {
  return `127.${randomInt(64, 128)}.${randomInt(0, 256)}.${randomInt(1, 255)}`;
}

export async function startBmcs(options: BmcsOptions): Promise<Bmcs> {
  const directory = join(options.directory, "bmc");
  mkdirSync(directory, { recursive: true });
  const journalPath = join(directory, "journal.jsonl");
  const systems = options.hosts.map(newSystem);
  const emulator = await startEmulator({ directory, journalPath, systems, power: options.power ?? "On" });
  const members: Member[] = [];
  const ports: number[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(members.map((member) => member.close()));
    await emulator.stop();
    releasePorts(ports);
  };
  try {
    for (const { host, uuid } of systems) {
      const ip = loopbackAddress();
      const port = await freePort();
      ports.push(port);
      const password = randomBytes(12).toString("base64url");
      const certificate = await issueCertificate(options.certificateAuthority, { commonName: `${host}-bmc`, ipAddresses: [ip] });
      const front = new BmcFront({ host, uuid, ip, port, certificate, username: USERNAME, password, emulator, journalPath });
      members.push(new Member({ host, uuid, password, address: `https://${ip}:${port}/redfish/v1/Systems/${uuid}` }, emulator, front, journalPath));
      await front.listen();
    }
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    journalPath,
    certificateAuthority: options.certificateAuthority.certificate,
    all: members,
    bmc: (host) => {
      const found = members.find((member) => member.host === host);
      if (found === undefined) throw new Error(`there is no BMC of a host ${host}; there are ${options.hosts.join(", ")}`);
      return found;
    },
    journal: () => readJournal(journalPath),
    stop,
  };
}
