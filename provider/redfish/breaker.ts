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

export class AuthenticationBreaker {
  readonly #address: string;
  readonly #clock: Clock;
  /** By digest of the credentials, so that no password is kept longer than its user keeps it. */
  readonly #refusals = new Map<string, { count: number; at: number }>();

  constructor(address: string, clock: Clock) {
    this.#address = address;
    this.#clock = clock;
  }

  isOpen(credentials: Credentials): boolean {
    const refused = this.#refusals.get(digest(credentials));
    return refused !== undefined && refused.count >= REFUSALS_UNTIL_OPEN && this.#clock.now() - refused.at < OPEN_MS;
  }

  check(credentials: Credentials): void {
    if (this.isOpen(credentials)) throw this.error();
  }

  error(): BmcError {
    return new BmcError(
      "unauthorized",
      this.#address,
      `BMC ${this.#address}: the credentials were refused; after ${REFUSALS_UNTIL_OPEN} refusals they are not tried again for ${OPEN_MS / 60_000} minutes or until they change, so that the account is not locked`,
    );
  }

  refused(credentials: Credentials): void {
    const key = digest(credentials);
    this.#refusals.set(key, { count: (this.#refusals.get(key)?.count ?? 0) + 1, at: this.#clock.now() });
  }

  accepted(credentials: Credentials): void {
    this.#refusals.delete(digest(credentials));
  }
}

/** Tells credentials apart without keeping them. */
export function digest(credentials: Credentials): string {
  return createHash("sha256")
    .update(JSON.stringify([credentials.username, credentials.password]))
    .digest("hex");
}
