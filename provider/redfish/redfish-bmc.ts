/** One System behind one BMC: what is read and asked of it, a turn of its lane at a time. */
import type { Clock } from "../clock.ts";
import type { BmcAddress } from "./address.ts";
import type { AuthenticatedConnection } from "./authentication.ts";
import { BmcError, isBmcError } from "./bmc.ts";
import type { Bmc, HardwareIdentity, PowerReading } from "./bmc.ts";
import { describeSystem } from "./describe.ts";
import type { BmcDescription } from "./describe.ts";
import type { Endpoint } from "./endpoints.ts";
import { differs, identityOf, shownIdentity } from "./identity.ts";
import { givenUp } from "./lane.ts";
import { sendReset } from "./reset.ts";
import type { ResetType } from "./reset.ts";
import { offeredResets, readSystem, readingOf } from "./system.ts";
import type { SystemState } from "./system.ts";

/** A BMC that cannot do it just yet is asked again after that long, */
const NOT_READY_PAUSE_MS = 2_000;
/** until so much has passed since it was first asked. */
const NOT_READY_BUDGET_MS = 10_000;

export interface Reached {
  address: BmcAddress;
  endpoint: Endpoint;
  expected: HardwareIdentity | undefined;
  connection: AuthenticatedConnection;
}

export class RedfishBmc implements Bmc {
  readonly #reach: () => Reached;
  readonly #clock: Clock;

  constructor(reach: () => Reached, clock: Clock) {
    this.#reach = reach;
    this.#clock = clock;
  }

  async readPower(signal?: AbortSignal): Promise<PowerReading> {
    return this.#turn(async (reached) => readingOf(await this.#read(reached, signal), this.#clock.now()), signal);
  }

  async forceOff(signal?: AbortSignal): Promise<void> {
    await this.#reset("ForceOff", signal);
  }

  async on(signal?: AbortSignal): Promise<void> {
    await this.#reset("On", signal);
  }

  async powerCycle(signal?: AbortSignal): Promise<void> {
    await this.#reset("PowerCycle", signal);
  }

  async resetTypes(signal?: AbortSignal): Promise<readonly string[]> {
    return this.#turn(async (reached) => {
      const state = await this.#read(reached, signal);
      return (await offeredResets(reached.connection, state, reached.endpoint.actionInfos, signal)).types;
    }, signal);
  }

  /** What the BMC and its System are and can do. */
  async describe(signal?: AbortSignal): Promise<BmcDescription> {
    return this.#turn(async (reached) => {
      const state = await this.#read(reached, signal);
      const at = this.#clock.now();
      const resets = await offeredResets(reached.connection, state, reached.endpoint.actionInfos, signal);
      return describeSystem(reached.connection, state, resets, at, signal);
    }, signal);
  }

  async #reset(type: ResetType, signal: AbortSignal | undefined): Promise<void> {
    const askedAt = this.#clock.now();
    for (;;) {
      const notReady = await this.#turn((reached) => this.#ask(reached, type, signal), signal);
      if (notReady === undefined) return;
      if (this.#clock.now() + NOT_READY_PAUSE_MS > askedAt + NOT_READY_BUDGET_MS) throw notReady;
      // Between turns, so that nobody who only wants to read waits for it.
      await this.#clock.sleep(NOT_READY_PAUSE_MS, signal).catch(() => Promise.reject(givenUp(notReady.address)));
    }
  }

  /** `undefined` once accepted; the refusal of a BMC that is not ready yet. */
  async #ask(reached: Reached, type: ResetType, signal: AbortSignal | undefined): Promise<BmcError | undefined> {
    const { connection, address, endpoint } = reached;
    // Read in the same turn, so that nothing of ours comes between the check and the action.
    const state = await this.#read(reached, signal);
    const { types } = await offeredResets(connection, state, endpoint.actionInfos, signal);
    const refuse = (reason: string): BmcError => new BmcError("unsupported", address.shown, `BMC ${address.shown}: System ${state.path} ${reason}`);
    if (!types.includes(type)) throw refuse(`does not offer ${type}, only ${types.join(", ") || "nothing"}`);
    if (type === "PowerCycle" && types.includes("ForceOff")) throw refuse("offers ForceOff, so it is turned off and on and not cycled blindly");
    try {
      return await sendReset(connection, state, type, () => this.#clock.now(), signal);
    } catch (error) {
      // What it said it understands may have changed with its firmware.
      endpoint.actionInfos.clear();
      throw error;
    }
  }

  async #turn<T>(work: (reached: Reached) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const reached = this.#reach();
    return reached.endpoint.lane.run(reached.address.shown, () => work(reached), signal);
  }

  async #read(reached: Reached, signal: AbortSignal | undefined): Promise<SystemState> {
    const { address, connection, expected } = reached;
    try {
      const state = await readSystem(connection, address.systemPath, expected, signal);
      this.#checkIdentity(reached, state);
      return state;
    } catch (error) {
      // Its links may have moved: a restart or another firmware.
      if (!isBmcError(error, "busy", "unauthorized", "forbidden")) connection.forgetRoot();
      throw error;
    }
  }

  #checkIdentity({ address, endpoint, expected }: Reached, state: SystemState): void {
    const now = identityOf(state.resource);
    const refuse = (reason: string): BmcError => new BmcError("ambiguous", address.shown, `BMC ${address.shown}: ${state.path} ${reason}`);
    if (expected !== undefined && differs(expected, now))
      throw refuse(`is not the expected hardware (${shownIdentity(expected)}, found ${shownIdentity(now)}); check the address`);
    const before = endpoint.identities.get(state.path);
    if (before !== undefined && differs(before, now)) {
      throw refuse(
        `is another System than before (${shownIdentity(before)}, now ${shownIdentity(now)}); check the address, and restart this process where the hardware was replaced`,
      );
    }
    endpoint.identities.set(state.path, { ...before, ...now });
  }
}
