/** The power of one host behind a mock BMC, worked out from the time alone, so that it runs on any clock. */
import type { Power } from "./profile.ts";

export type PowerState = "On" | "Off";

export interface Refusal {
  status: number;
  messageId: string;
}

const effects: Record<string, readonly PowerState[]> = {
  On: ["On"],
  ForceOn: ["On"],
  ForceOff: ["Off"],
  GracefulShutdown: ["Off"],
  PushPowerButton: ["Off"],
  ForceRestart: ["Off", "On"],
  GracefulRestart: ["Off", "On"],
  PowerCycle: ["Off", "On"],
};

export class HostPower {
  readonly #profile: Power;
  /** In the order of time; those in the future have yet to happen. */
  #changes: { at: number; power: PowerState }[];
  #ignoresOff: number;
  #ignoresOn: number;
  /** What the BMC shows in place of the truth, while set. */
  shownInstead: { value: unknown } | undefined;

  constructor(profile: Power, power: PowerState = "On") {
    this.#profile = profile;
    this.#changes = [{ at: Number.NEGATIVE_INFINITY, power }];
    this.#ignoresOff = profile.ignoresOff;
    this.#ignoresOn = profile.ignoresOn;
  }

  truth(now: number): PowerState {
    return this.#changes.findLast(({ at }) => at <= now)?.power ?? "On";
  }

  /** Each change that has happened. */
  changes(now: number): { at: number; power: PowerState }[] {
    return this.#changes.filter(({ at }) => at <= now && at !== Number.NEGATIVE_INFINITY);
  }

  /** What the BMC says at that time. */
  shown(now: number): unknown {
    if (this.shownInstead !== undefined) return this.shownInstead.value;
    const next = this.#changes.find(({ at }) => at > now);
    if (this.#profile.transitional && next !== undefined && next.power !== this.truth(now)) return next.power === "On" ? "PoweringOn" : "PoweringOff";
    return this.truth(now - this.#profile.lagMs);
  }

  /** By hand, at once. */
  press(power: PowerState, now: number): void {
    this.#changes = this.changes(now).length === 0 ? this.#changes.slice(0, 1) : this.#changes.filter(({ at }) => at <= now);
    if (this.truth(now) !== power) this.#changes.push({ at: now, power });
  }

  /** Why a command is refused now. */
  refusal(type: string, now: number): Refusal | undefined {
    const { alreadyThere, notReady, onRefused } = this.#profile;
    const last = this.changes(now).at(-1);
    const since = last === undefined ? Number.POSITIVE_INFINITY : now - last.at;
    const [first, second] = effects[type] ?? [];
    if (alreadyThere !== undefined && second === undefined && first === this.truth(now)) return alreadyThere;
    if (notReady !== undefined && since < notReady.forMs) return notReady;
    if (onRefused !== undefined && first === "On" && last?.power === "Off" && since < onRefused.forMs) return onRefused;
    return undefined;
  }

  /** Carries a command out; what was under way is forgotten. */
  command(type: string, now: number): void {
    const powers = effects[type];
    if (powers === undefined) return;
    if (powers[0] === "Off" && this.#ignoresOff > 0) {
      this.#ignoresOff -= 1;
      return;
    }
    if (powers[0] === "On" && this.#ignoresOn > 0) {
      this.#ignoresOn -= 1;
      return;
    }
    this.#changes = this.#changes.filter(({ at }) => at <= now);
    let at = now;
    let power = this.truth(now);
    for (const next of powers) {
      if (next === power) continue;
      at += next === "Off" ? this.#profile.offMs : this.#profile.onMs;
      this.#changes.push({ at, power: next });
      power = next;
    }
  }
}
