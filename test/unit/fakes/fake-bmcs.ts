/** BMCs in memory: one for each address, with true power that only they change. */
import type { Clock } from "../../../provider/clock.ts";
import { type Bmc, type BmcAccess, BmcError, type BmcErrorKind, type BmcTarget, type PowerReading } from "../../../provider/redfish/bmc.ts";

export interface FakeBmc {
  power: "on" | "off";
  /** What readings say where it is not the truth. */
  shown: PowerReading["power"] | undefined;
  /** Every request fails with it. */
  fault: BmcErrorKind | undefined;
  /** Accepts power-off and does nothing. */
  ignoresOff: boolean;
  ignoresOn: boolean;
  /** Actions that it accepted, with their time. */
  readonly actions: { action: "ForceOff" | "On"; at: number }[];
  reads: number;
}

export class FakeBmcs implements BmcAccess {
  readonly #clock: Clock;
  readonly #bmcs = new Map<string, FakeBmc>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  at(address: string): FakeBmc {
    let bmc = this.#bmcs.get(address);
    if (bmc === undefined)
      this.#bmcs.set(address, (bmc = { power: "on", shown: undefined, fault: undefined, ignoresOff: false, ignoresOn: false, actions: [], reads: 0 }));
    return bmc;
  }

  bmc({ address }: BmcTarget): Bmc {
    const bmc = this.at(address);
    const now = (): number => this.#clock.now();
    const answer = async (): Promise<void> => {
      await Promise.resolve();
      if (bmc.fault !== undefined) throw new BmcError(bmc.fault, address, `the BMC at ${address} does not answer`);
    };
    return {
      readPower: async () => {
        await answer();
        bmc.reads++;
        const power = bmc.shown ?? bmc.power;
        return { power, literal: power === "on" ? "On" : power === "off" ? "Off" : "", at: now(), system: "/redfish/v1/Systems/1" };
      },
      forceOff: async () => {
        await answer();
        bmc.actions.push({ action: "ForceOff", at: now() });
        if (!bmc.ignoresOff) bmc.power = "off";
      },
      on: async () => {
        await answer();
        bmc.actions.push({ action: "On", at: now() });
        if (!bmc.ignoresOn) bmc.power = "on";
      },
      resetTypes: async () => {
        await answer();
        return ["On", "ForceOff"];
      },
    };
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}
