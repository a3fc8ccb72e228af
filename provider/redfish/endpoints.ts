/** What all users of one BMC share, for as long as anybody uses it. */
import type { Clock } from "../clock.ts";
import { parseBmcAddress } from "./address.ts";
import type { BmcAddress } from "./address.ts";
import { AuthenticatedConnection } from "./authentication.ts";
import { BmcError } from "./bmc.ts";
import type { BmcTarget, HardwareIdentity } from "./bmc.ts";
import { AuthenticationBreaker, digest } from "./breaker.ts";
import { BmcConnection } from "./connection.ts";
import type { Timing } from "./connection.ts";
import { Lane } from "./lane.ts";
import type { LaneTiming } from "./lane.ts";
import { checkTrust } from "./transport.ts";

const LOGOUT_TIMEOUT_MS = 2_000;
/** After so long without use the session is given back and the connection closed. */
const IDLE_MS = 600_000;
/** After so long without use a BMC is forgotten, unless its credentials are being left alone. */
const FORGOTTEN_AFTER_MS = 7_200_000;
/** How often unused ones are looked for at most. */
const SWEEP_EVERY_MS = 60_000;

interface Login {
  username: string;
  /** Of the credentials. */
  digest: string;
  connection: BmcConnection;
  authenticated: AuthenticatedConnection;
}

export interface Endpoint {
  lane: Lane;
  breaker: AuthenticationBreaker;
  /** By trust and credentials. */
  logins: Map<string, Login>;
  /** By path: what was there when it was first read. */
  identities: Map<string, HardwareIdentity>;
  /** Reset types by path of their ActionInfo. */
  actionInfos: Map<string, readonly string[]>;
  usedAt: number;
}

/** A target whose address and trust have been read; made once, as it is used often. */
export interface ReadTarget {
  address: BmcAddress;
  target: BmcTarget;
  /** Of trust and credentials. */
  key: string;
  credentialsDigest: string;
}

export function readTarget(target: BmcTarget): ReadTarget {
  const address = parseBmcAddress(target.address, target);
  if (target.username === "" || target.password === "")
    throw new BmcError("invalid", address.shown, `BMC ${address.shown}: username and password must not be empty`);
  checkTrust(address.shown, target);
  const { certificateAuthority, certificateFingerprint, insecure, legacyTls, authentication = "auto" } = target;
  const credentialsDigest = digest(target);
  const trust = [insecure === true, legacyTls === true, certificateAuthority ?? null, certificateFingerprint ?? null, authentication];
  return { address, target, key: JSON.stringify([...trust, credentialsDigest]), credentialsDigest };
}

export class Endpoints {
  readonly #clock: Clock;
  readonly #timing: Timing & LaneTiming;
  /** By origin. */
  readonly #endpoints = new Map<string, Endpoint>();
  #sweptAt = Number.NEGATIVE_INFINITY;

  constructor(timing: Timing & LaneTiming) {
    this.#clock = timing.clock;
    this.#timing = timing;
  }

  /** The endpoint of an address, made where there is none. */
  at(address: BmcAddress): Endpoint {
    const now = this.#clock.now();
    this.#sweep(now);
    let endpoint = this.#endpoints.get(address.origin);
    if (endpoint === undefined) {
      endpoint = {
        lane: new Lane(this.#timing),
        breaker: new AuthenticationBreaker(address.origin, this.#clock),
        logins: new Map(),
        identities: new Map(),
        actionInfos: new Map(),
        usedAt: now,
      };
      this.#endpoints.set(address.origin, endpoint);
    }
    endpoint.usedAt = now;
    return endpoint;
  }

  loginAt(endpoint: Endpoint, { address, target, key, credentialsDigest }: ReadTarget): AuthenticatedConnection {
    const known = endpoint.logins.get(key);
    if (known !== undefined) return known.authenticated;
    // A password that was changed leaves a session of the old one behind.
    for (const [otherKey, other] of endpoint.logins) {
      if (other.username !== target.username || other.digest === credentialsDigest) continue;
      endpoint.logins.delete(otherKey);
      void endLogin(endpoint, other);
    }
    const connection = new BmcConnection(address, target, endpoint.lane, this.#timing);
    const credentials = { username: target.username, password: target.password };
    const authenticated = new AuthenticatedConnection(connection, credentials, endpoint.breaker, this.#clock, target.authentication);
    endpoint.logins.set(key, { username: target.username, digest: credentialsDigest, connection, authenticated });
    return authenticated;
  }

  async close(): Promise<void> {
    const endpoints = [...this.#endpoints.values()];
    this.#endpoints.clear();
    await Promise.all(endpoints.map(endLogins));
  }

  /** Gives back what nobody has used for long. */
  #sweep(now: number): void {
    if (now - this.#sweptAt < SWEEP_EVERY_MS) return;
    this.#sweptAt = now;
    for (const [origin, endpoint] of this.#endpoints) {
      const unusedMs = now - Math.max(endpoint.usedAt, endpoint.lane.lastUsedAt);
      if (unusedMs < IDLE_MS) continue;
      void endLogins(endpoint);
      if (unusedMs >= FORGOTTEN_AFTER_MS && !endpoint.breaker.inUse) this.#endpoints.delete(origin);
    }
  }
}

async function endLogins(endpoint: Endpoint): Promise<void> {
  const logins = [...endpoint.logins.values()];
  endpoint.logins.clear();
  await Promise.all(logins.map((login) => endLogin(endpoint, login)));
}

/** After whatever is under way, and never failing: what is left of a session ends by itself. */
async function endLogin(endpoint: Endpoint, login: Login): Promise<void> {
  const signal = AbortSignal.timeout(LOGOUT_TIMEOUT_MS);
  await endpoint.lane.run(login.authenticated.address, () => login.authenticated.logout(signal), signal).catch(() => undefined);
  await login.connection.close();
}
