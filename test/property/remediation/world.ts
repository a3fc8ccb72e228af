/** The true world that decisions are checked against: one host with its BMC, its Node, both APIs, and the people around them. */
import { type HoldReading, type PowerHold, readHold } from "../../../provider/hosts/power-hold.ts";
import { POWER_HOLD_ANNOTATION } from "../../../provider/hosts/names.ts";
import type { PowerReading } from "../../../provider/redfish/bmc.ts";
import type { RemediationStatus } from "../../../provider/controller/remediation/status.ts";

export const PASSWORD = "canary-password-of-the-bmc";
export const RETRY_LIMIT = 1;
export const OFF_CONFIRMATION_MS = 2_000;

export interface RemediationObject {
  version: number;
  uid: string;
  machineUid: string;
  deleting: boolean;
  paused: boolean;
  finalizer: boolean;
  status: RemediationStatus;
}

export interface MachineObject {
  version: number;
  uid: string;
  deleting: boolean;
  paused: boolean;
  skipsRemediation: boolean;
  nodeName: string | undefined;
  offered: boolean;
}

export interface HostObject {
  version: number;
  uid: string;
  deleting: boolean;
  paused: boolean;
  hold: string | undefined;
  unhealthy: boolean;
  confirmedOff: string | undefined;
  /** Uid of the Machine whose host it is, all along the chain; undefined while it is nobody's. */
  machineUid: string | undefined;
  bmc: boolean;
}

export interface NodeObject {
  version: number;
  uid: string;
  bootID: string;
  /** When the boot that the Node reports began. */
  bootedAt: number;
  ready: boolean;
  heartbeatAt: number;
  taint: "none" | "ours" | "foreign";
  labels: Record<string, string>;
}

export type BmcMode = "ok" | "dead" | "refuses" | "empty" | "malformed";

interface Command {
  on: boolean;
  effectAt: number;
  by: { uid: string; attempt: number; purpose: string } | undefined;
}

export interface Violation {
  rule: number;
  what: string;
  at: number;
}

export const policySpec = {
  strategy: {
    retryLimit: RETRY_LIMIT,
    timeoutSeconds: 120,
    powerOffTimeoutSeconds: 20,
    drainTimeoutSeconds: 20,
    powerOnTimeoutSeconds: 20,
    offConfirmationSeconds: OFF_CONFIRMATION_MS / 1000,
    drainConfirmationSeconds: 3,
  },
};

/** How long a command may take at the most; shorter than the power deadlines, as the documentation asks of them. */
const LONGEST_LAG_MS = 11_000;

export class World {
  now = 1_800_000_000_000;
  remediation: RemediationObject | undefined;
  machine: MachineObject | undefined;
  host: HostObject | undefined;
  node: NodeObject | null;
  clusterPaused = false;
  stop: "on" | "off" = "off";
  fresh = true;
  workload: "reachable" | "unreachable" | "forbidden" = "reachable";
  version: string | undefined = "v1.37.2";
  terminatingPods = 0;
  attachments = 0;
  /** The host answers nothing although it is on. */
  hung = false;
  bmcMode: BmcMode = "ok";
  offLagMs = 1_500;
  onLagMs = 1_500;
  /** The BMC accepts and does nothing. */
  stuckOff = false;
  stuckOn = false;
  /** The BMC does as it is asked, and its answers get lost. */
  losesAnswers = false;
  /** The BMC says Off that long before it is. Less than the confirmation: the one assumption. */
  earlyOffMs = 0;
  /** The BMC answers from a cache of that age. Less than the confirmation, too. */
  cacheMs = 0;
  power = true;
  offBecause: "us" | "other" | undefined;
  lastOffAt = 0;
  /** Of those that we asked for. */
  lastOffByUsAt = 0;
  /** A person removed the hold: from then on what is off is theirs. */
  personTookOver = false;
  /** What the removed hold owed to the Node is theirs for good. */
  debtsForgotten = false;
  deletedNodeLabels: Record<string, string> | undefined;
  readonly violations: Violation[] = [];
  /** Power-offs that took effect, by remediation and attempt. */
  readonly effects = new Map<string, number>();
  #queue: Command[] = [];
  #readyAt: number | undefined;
  #cached: { literal: string; at: number } | undefined;
  #serial = 0;
  #version = 0;

  constructor() {
    this.machine = { version: this.next(), uid: "machine-1", deleting: false, paused: false, skipsRemediation: false, nodeName: "node-a", offered: false };
    this.host = {
      version: this.next(),
      uid: "host-1",
      deleting: false,
      paused: false,
      hold: undefined,
      unhealthy: false,
      confirmedOff: undefined,
      machineUid: "machine-1",
      bmc: true,
    };
    this.node = {
      version: this.next(),
      uid: "node-uid-1",
      bootID: "boot-1",
      bootedAt: this.now - 1_000_000,
      ready: true,
      heartbeatAt: this.now,
      taint: "none",
      labels: { keep: "me" },
    };
  }

  next(): number {
    return ++this.#version;
  }

  serial(prefix: string): string {
    return `${prefix}-${++this.#serial}`;
  }

  violate(rule: number, what: string): void {
    this.violations.push({ rule, what, at: this.now });
  }

  get hold(): HoldReading {
    return readHold(this.host?.hold === undefined ? undefined : { [POWER_HOLD_ANNOTATION]: this.host.hold });
  }

  trueHold(): PowerHold | undefined {
    const reading = this.hold;
    return reading.state === "held" ? reading.hold : undefined;
  }

  pendingOn(): boolean {
    return this.#queue.some(({ on }) => on);
  }

  advance(milliseconds: number): void {
    const until = this.now + milliseconds;
    for (;;) {
      const command = this.#queue[0];
      const readyAt = this.#readyAt;
      const next = Math.min(command?.effectAt ?? Infinity, readyAt ?? Infinity);
      if (next > until) break;
      this.now = Math.max(this.now, next);
      if (command !== undefined && command.effectAt <= this.now) {
        this.#queue.shift();
        this.#takeEffect(command);
      } else {
        this.#readyAt = undefined;
        this.kubeletStarts();
      }
    }
    this.now = until;
    if (this.power && !this.hung && this.#readyAt === undefined && this.node !== null && this.node.bootedAt > this.lastOffAt) this.node.heartbeatAt = this.now;
  }

  #takeEffect({ on, by }: Command): void {
    if (on === this.power) return;
    this.power = on;
    if (on) {
      this.offBecause = undefined;
      this.personTookOver = false;
      this.#readyAt = this.now + 5_000;
      return;
    }
    this.goesDown("us");
    if (by?.purpose !== "reboot") return;
    const key = `${by.uid}/${by.attempt}`;
    const count = (this.effects.get(key) ?? 0) + 1;
    this.effects.set(key, count);
    if (count > 1) this.violate(3, `power-off took effect ${count} times in attempt ${by.attempt}`);
    const cycles = [...this.effects.keys()].filter((other) => other.startsWith(`${by.uid}/`)).length;
    if (cycles > 1 + RETRY_LIMIT) this.violate(5, `${cycles} power cycles with retryLimit ${RETRY_LIMIT}`);
  }

  goesDown(because: "us" | "other"): void {
    this.power = false;
    this.offBecause = because;
    this.lastOffAt = this.now;
    if (because === "us") this.lastOffByUsAt = this.now;
    this.#readyAt = undefined;
    this.unready();
  }

  unready(): void {
    if (this.node !== null && this.node.ready) this.node = { ...this.node, ready: false, version: this.next() };
  }

  /** The kubelet of a host that came on reports; a host that hangs does not get that far. */
  kubeletStarts(): void {
    if (!this.power || this.hung || this.machine?.nodeName === undefined) return;
    const boot = { bootID: this.serial("boot"), bootedAt: this.now, ready: true, heartbeatAt: this.now };
    this.node =
      this.node === null
        ? { version: this.next(), uid: this.serial("node-uid"), taint: "none", labels: {}, ...boot }
        : { ...this.node, version: this.next(), ...boot };
  }

  /** What a person does to a host that hangs, or went off by itself. */
  recover(): void {
    this.hung = false;
    const hold = this.trueHold();
    // Whoever removed a hold has the host to see to, unless another repair holds it by now.
    const theirs = this.personTookOver && (hold === undefined || hold.onSeenAt !== undefined);
    if (!this.power && (this.offBecause === "other" || theirs)) this.#takeEffect({ on: true, by: undefined, effectAt: this.now });
    if (this.power && this.#readyAt === undefined) this.kubeletStarts();
  }

  /** Null: no answer. */
  command(on: boolean, by: Command["by"]): "accepted" | "refused" | null {
    if (this.bmcMode === "dead") return null;
    if (this.bmcMode === "refuses") return "refused";
    if (on ? this.stuckOn : this.stuckOff) return this.losesAnswers ? null : "accepted";
    const earliest = this.#queue.at(-1)?.effectAt ?? 0;
    this.#queue.push({ on, by, effectAt: Math.max(earliest, this.now + Math.min(LONGEST_LAG_MS, on ? this.onLagMs : this.offLagMs)) });
    return this.losesAnswers ? null : "accepted";
  }

  /** Null: no answer. */
  read(): PowerReading | null {
    if (this.bmcMode === "dead") return null;
    if (this.bmcMode === "empty" || this.bmcMode === "malformed")
      return { power: "other", literal: this.bmcMode === "empty" ? "" : "PoweringOff", at: this.now, system: "/redfish/v1/Systems/1" };
    let literal = this.power ? "On" : "Off";
    const coming = this.#queue[0];
    if (this.power && coming !== undefined && !coming.on && coming.effectAt - this.now <= this.earlyOffMs) literal = "Off";
    if (this.#cached !== undefined && this.now - this.#cached.at < this.cacheMs) literal = this.#cached.literal;
    else this.#cached = { literal, at: this.now };
    return { power: literal === "On" ? "on" : "off", literal, at: this.now, system: "/redfish/v1/Systems/1" };
  }

  /** What must hold at every moment, whatever happened. */
  check(): void {
    const { host, remediation } = this;
    if (host === undefined) return;
    const held = host.hold !== undefined;
    const abandoned = !this.power && this.offBecause === "us" && !held && !this.pendingOn() && !host.unhealthy && !this.personTookOver;
    if (abandoned) this.violate(2, `the host is off because of us and nothing holds it${remediation === undefined ? "; the remediation is gone" : ""}`);
  }
}
