/** Keeps wrong credentials from being tried until the BMC locks the account; shared by all users of one BMC. */
import { createHash } from "node:crypto";

import type { Clock } from "../clock.ts";
import { BmcError } from "./bmc.ts";

/** After so many refusals in a row the credentials are left alone; BMCs lock after three to five. */
export const REFUSALS_UNTIL_OPEN = 2;
/** Some BMCs refuse valid credentials now and then, so they get another try after this long. */
export const OPEN_MS = 3_600_000;

export interface Credentials {
  username: string;
  password: string;
}

interface Refusals {
  count: number;
  at: number;
  /** The account has to change its password: no try will help before that. */
  passwordExpired: boolean;
}

/** All of it takes the digest of the credentials, so that no password is kept longer than its user keeps it. */
export class AuthenticationBreaker {
  readonly #address: string;
  readonly #clock: Clock;
  readonly #refusals = new Map<string, Refusals>();

  constructor(address: string, clock: Clock) {
    this.#address = address;
    this.#clock = clock;
  }

  /** Whether any credentials are being left alone. */
  get inUse(): boolean {
    return [...this.#refusals.values()].some(({ at }) => this.#clock.now() - at < OPEN_MS);
  }

  isOpen(credentials: string): boolean {
    const refused = this.#refusals.get(credentials);
    return refused !== undefined && refused.count >= REFUSALS_UNTIL_OPEN && this.#clock.now() - refused.at < OPEN_MS;
  }

  check(credentials: string): void {
    if (this.isOpen(credentials)) throw this.error(credentials);
  }

  error(credentials: string): BmcError {
    if (this.#refusals.get(credentials)?.passwordExpired === true) {
      return new BmcError(
        "forbidden",
        this.#address,
        `BMC ${this.#address}: the account must change its password first; it is not tried again for ${OPEN_MS / 60_000} minutes or until the credentials change`,
      );
    }
    return new BmcError(
      "unauthorized",
      this.#address,
      `BMC ${this.#address}: the credentials were refused; after ${REFUSALS_UNTIL_OPEN} refusals they are not tried again for ${OPEN_MS / 60_000} minutes or until they change, so that the account is not locked`,
    );
  }

  refused(credentials: string): void {
    this.#refusals.set(credentials, { count: (this.#refusals.get(credentials)?.count ?? 0) + 1, at: this.#clock.now(), passwordExpired: false });
  }

  passwordExpired(credentials: string): void {
    this.#refusals.set(credentials, { count: REFUSALS_UNTIL_OPEN, at: this.#clock.now(), passwordExpired: true });
  }

  accepted(credentials: string): void {
    this.#refusals.delete(credentials);
  }
}

/** Tells credentials apart without keeping them. */
export function digest(credentials: Credentials): string {
  return createHash("sha256")
    .update(JSON.stringify([credentials.username, credentials.password]))
    .digest("hex");
}
