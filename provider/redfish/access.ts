/** `BmcAccess` over Redfish: one lane, one breaker and one session a BMC, whoever uses it. */
import { systemClock } from "../clock.ts";
import type { Clock } from "../clock.ts";
import { parseBmcAddress } from "./address.ts";
import type { BmcAddress } from "./address.ts";
import { AuthenticatedConnection } from "./authentication.ts";
import { BmcError } from "./bmc.ts";
import type { Bmc, BmcAccess, BmcTarget, PowerReading } from "./bmc.ts";
import { AuthenticationBreaker, digest } from "./breaker.ts";
import { BmcConnection } from "./connection.ts";
import { describeSystem } from "./describe.ts";
import type { BmcDescription } from "./describe.ts";
import { Lane } from "./lane.ts";
import type { ComputerSystem } from "./models.ts";
import { sendReset } from "./reset.ts";
import type { FencingReset } from "./reset.ts";
import { isOtherSystem, readSystem, readingOf, resetTypesOf } from "./system.ts";
import type { SystemState } from "./system.ts";

export interface RedfishOptions {
  clock?: Clock;
  /** Milliseconds for the TCP and TLS handshake; 5,000 by default. */
  connectTimeoutMs?: number;
  /** Milliseconds for one request and its whole answer; 10,000 by default. */
  requestTimeoutMs?: number;
  /** Milliseconds between an answer of a BMC and the next request to it; 100 by default. */
  spacingMs?: number;
}

const DEFAULTS = { clock: systemClock, connectTimeoutMs: 5_000, requestTimeoutMs: 10_000, spacingMs: 100 } as const;
const LOGOUT_TIMEOUT_MS = 2_000;

interface Login {
  username: string;
  connection: BmcConnection;
  authenticated: AuthenticatedConnection;
}

/** What all users of one BMC share. */
interface Endpoint {
  lane: Lane;
  breaker: AuthenticationBreaker;
  /** By trust and credentials. */
  logins: Map<string, Login>;
  /** By path: what was there when it was first read. */
  identities: Map<string, ComputerSystem>;
}

export class RedfishAccess implements BmcAccess {
  readonly #options: Required<RedfishOptions>;
  readonly #endpoints = new Map<string, Endpoint>();
  #closed = false;

  constructor(options: RedfishOptions = {}) {
    this.#options = { ...DEFAULTS, ...options };
  }

  /** An address that cannot be used shows when the BMC is first asked, as `BmcError` of kind `invalid`. */
  bmc(target: BmcTarget): RedfishBmc {
    return new RedfishBmc(() => this.#reach(target), this.#options.clock);
  }

  async close(): Promise<void> {
    this.#closed = true;
    const endpoints = [...this.#endpoints.values()];
    this.#endpoints.clear();
    await Promise.all(endpoints.map((endpoint) => Promise.all([...endpoint.logins.values()].map((login) => endLogin(endpoint, login)))));
  }

  #reach(target: BmcTarget): Reached {
    const address = parseBmcAddress(target.address, target);
    if (this.#closed) throw new BmcError("unreachable", address.shown, `BMC ${address.shown}: the access to it has been closed`);
    if (target.username === "" || target.password === "")
      throw new BmcError("invalid", address.shown, `BMC ${address.shown}: username and password must not be empty`);
    const endpoint = this.#endpointOf(address);
    return { address, endpoint, connection: this.#loginOf(endpoint, address, target).authenticated };
  }

  #endpointOf(address: BmcAddress): Endpoint {
    const known = this.#endpoints.get(address.origin);
    if (known !== undefined) return known;
    const { clock, spacingMs } = this.#options;
    const endpoint: Endpoint = {
      lane: new Lane(clock, spacingMs),
      breaker: new AuthenticationBreaker(address.origin, clock),
      logins: new Map(),
      identities: new Map(),
    };
    this.#endpoints.set(address.origin, endpoint);
    return endpoint;
  }

  #loginOf(endpoint: Endpoint, address: BmcAddress, target: BmcTarget): Login {
    const key = JSON.stringify([target.insecure === true, target.certificateAuthority ?? null, digest(target)]);
    const known = endpoint.logins.get(key);
    if (known !== undefined) return known;
    // A password that was changed leaves a session of the old one behind.
    for (const [otherKey, other] of endpoint.logins) {
      if (other.username !== target.username) continue;
      endpoint.logins.delete(otherKey);
      void endLogin(endpoint, other);
    }
    const connection = new BmcConnection(address, target, endpoint.lane, this.#options);
    const credentials = { username: target.username, password: target.password };
    const login: Login = {
      username: target.username,
      connection,
      authenticated: new AuthenticatedConnection(connection, credentials, endpoint.breaker, this.#options.clock),
    };
    endpoint.logins.set(key, login);
    return login;
  }
}

/** After whatever is under way, and never failing: what is left of a session ends by itself. */
async function endLogin(endpoint: Endpoint, login: Login): Promise<void> {
  const signal = AbortSignal.timeout(LOGOUT_TIMEOUT_MS);
  await endpoint.lane.run(login.authenticated.address, () => login.authenticated.logout(signal), signal).catch(() => undefined);
  await login.connection.close();
}

interface Reached {
  address: BmcAddress;
  endpoint: Endpoint;
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

  async resetTypes(signal?: AbortSignal): Promise<readonly string[]> {
    return this.#turn(async (reached) => resetTypesOf(reached.connection, await this.#read(reached, signal), signal), signal);
  }

  /** What the BMC and its System are. */
  async describe(signal?: AbortSignal): Promise<BmcDescription> {
    return this.#turn(async (reached) => describeSystem(reached.connection, await this.#read(reached, signal), this.#clock.now(), signal), signal);
  }

  async #reset(type: FencingReset, signal: AbortSignal | undefined): Promise<void> {
    await this.#turn(async (reached) => {
      const { connection, address } = reached;
      // Read in the same turn, so that nothing of ours comes between the check and the action.
      const state = await this.#read(reached, signal);
      const offered = await resetTypesOf(connection, state, signal);
      if (!offered.includes(type)) {
        throw new BmcError(
          "unsupported",
          address.shown,
          `BMC ${address.shown}: System ${state.path} does not offer ${type}, only ${offered.join(", ") || "nothing"}`,
        );
      }
      await sendReset(connection, state, type, () => this.#clock.now(), signal);
    }, signal);
  }

  async #turn<T>(work: (reached: Reached) => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const reached = this.#reach();
    return reached.endpoint.lane.run(reached.address.shown, () => work(reached), signal);
  }

  async #read({ address, endpoint, connection }: Reached, signal: AbortSignal | undefined): Promise<SystemState> {
    let state: SystemState;
    try {
      state = await readSystem(connection, address.systemPath, signal);
    } catch (error) {
      // Its links may have moved: a restart or another firmware.
      connection.forgetRoot();
      throw error;
    }
    const before = endpoint.identities.get(state.path);
    if (before === undefined) endpoint.identities.set(state.path, state.resource);
    else if (isOtherSystem(before, state.resource)) {
      throw new BmcError(
        "ambiguous",
        address.shown,
        `BMC ${address.shown}: ${state.path} is another System than before (UUID ${before.UUID ?? "unknown"}, now ${state.resource.UUID ?? "unknown"}); check the address, and restart this process where the hardware was replaced`,
      );
    }
    return state;
  }
}
