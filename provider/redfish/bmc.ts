/** What the rest of the code may ask of a BMC. */

export interface BmcTarget {
  /** Service root or one System: `https://host[:port][/redfish/v1[/Systems/<id>]]`. */
  address: string;
  username: string;
  password: string;
  /** PEM bundle that the BMC's certificate must chain to; the system's when absent. */
  certificateAuthority?: string;
  /** SHA-256 of the BMC's own certificate, hexadecimal with or without colons; takes the place of any authority. */
  certificateFingerprint?: string;
  /** Turns certificate verification off; an explicit and visible choice. */
  insecure?: boolean;
  /** Also speaks TLS 1.0 and 1.1 and their ciphers; an explicit choice for BMCs that know nothing newer. Off by default. */
  legacyTls?: boolean;
  /** `auto` (default): a session, and Basic where there is none to be had. */
  authentication?: AuthenticationMode;
  /** Hardware that the System has to be: picks one of several, and is checked before each action. */
  expected?: HardwareIdentity;
}

export type AuthenticationMode = "auto" | "session" | "basic";

export interface HardwareIdentity {
  /** In either byte order. */
  uuid?: string;
  serialNumber?: string;
}

/** One reading of `PowerState`. Only the literal `Off` is off: transitional, empty and unknown values are `other`. */
export interface PowerReading {
  power: "on" | "off" | "other";
  /** What the BMC said, shortened. */
  literal: string;
  /** When the answer arrived, milliseconds since the epoch. */
  at: number;
  /** URL path of the System that was read. */
  system: string;
}

/**
 * - `unreachable`, `timeout`: no answer; an action may or may not have happened
 * - `untrusted`: certificate or TLS version was refused before any credential was sent
 * - `unauthorized`: credentials refused, or not tried again after two refusals until they change or an hour has passed
 * - `forbidden`: account lacks the right, must change its password, or a licence is missing
 * - `conflict`: refused in the present state; read the state and decide again
 * - `notFound`, `ambiguous`: no such System, or several and none was named
 * - `unsupported`: the System does not offer the reset type
 * - `busy`: asked to come back later
 * - `invalid`: an answer that is not Redfish, or an address that cannot be used
 * - `server`: the BMC failed
 */
export type BmcErrorKind =
  | "unreachable"
  | "timeout"
  | "untrusted"
  | "unauthorized"
  | "forbidden"
  | "conflict"
  | "notFound"
  | "ambiguous"
  | "unsupported"
  | "busy"
  | "invalid"
  | "server";

export class BmcError extends Error {
  override readonly name = "BmcError";
  readonly kind: BmcErrorKind;
  /** Address without user information. */
  readonly address: string;
  readonly retryAfterMs: number | undefined;

  constructor(kind: BmcErrorKind, address: string, message: string, details: { retryAfterMs?: number; cause?: unknown } = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.kind = kind;
    this.address = address;
    this.retryAfterMs = details.retryAfterMs;
  }
}

export function isBmcError(error: unknown, ...kinds: BmcErrorKind[]): error is BmcError {
  return error instanceof BmcError && (kinds.length === 0 || kinds.includes(error.kind));
}

/** One System behind one BMC. Every method throws `BmcError`, and nothing else. Success of an action is observed state, never the status code. */
export interface Bmc {
  readPower(signal?: AbortSignal): Promise<PowerReading>;
  /** Asks for ForceOff and returns once the BMC accepted it. Refused as already off counts as accepted only if `Off` is then read. */
  forceOff(signal?: AbortSignal): Promise<void>;
  /** Asks for On and returns once the BMC accepted it. */
  on(signal?: AbortSignal): Promise<void>;
  /** Whether ForceOff and On are offered; `PowerCycle` only matters where ForceOff is not. */
  resetTypes(signal?: AbortSignal): Promise<readonly string[]>;
  /** Asks for a reboot where ForceOff is not offered, and is `unsupported` where it is. Never a fence: off is not seen. */
  powerCycle?(signal?: AbortSignal): Promise<void>;
}

/** Hands out BMCs; those of one address share session, spacing and breaker, whoever uses them. */
export interface BmcAccess {
  bmc(target: BmcTarget): Bmc;
  /** Ends sessions and connections. */
  close(): Promise<void>;
}
