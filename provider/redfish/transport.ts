/** The connection to a BMC below HTTP: whom it trusts, which TLS and which HTTP it speaks. One at a time, and never two requests on it at once. */
import { createSecureContext } from "node:tls";
import type { SecureContext } from "node:tls";

import { Client, buildConnector } from "undici";

import type { BmcAddress } from "./address.ts";
import { BmcError } from "./bmc.ts";
import type { BmcTarget } from "./bmc.ts";

const MAXIMUM_ANSWER_BYTES = 1024 * 1024;
const IDLE_MS = 60_000;
const MAXIMUM_CONTEXTS = 64;

/** How Node names what is wrong with a certificate. */
const certificateCodes =
  /^(CERT_|CRL_|ERR_TLS_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT$|SELF_SIGNED_CERT_IN_CHAIN$|UNABLE_TO_|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_EXCEEDED$|HOSTNAME_MISMATCH$)/;
/** How OpenSSL names the other side's want of a version or cipher that we speak. */
const oldTlsCodes = /^(ERR_SSL_UNSUPPORTED_PROTOCOL|ERR_SSL_\w*(PROTOCOL_VERSION|HANDSHAKE_FAILURE|WRONG_SIGNATURE_TYPE|DH_KEY_TOO_SMALL|NO_CIPHERS\w*))$/;
const WRONG_FINGERPRINT = "CERT_FINGERPRINT_MISMATCH";
const NO_COMMON_HTTP = "ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL";

export type Trust = Pick<BmcTarget, "certificateAuthority" | "certificateFingerprint" | "insecure" | "legacyTls">;

/** What is known of a BMC's ways below Redfish. */
export interface TransportFacts {
  http: "1.1" | "2";
  /** What its certificate was held against. */
  verified: "authority" | "system" | "fingerprint" | "not at all";
  legacyTls: boolean;
  /** SHA-256 of the certificate that it showed last. */
  fingerprint: string | undefined;
}

class WrongFingerprint extends Error {
  readonly code = WRONG_FINGERPRINT;
}

export function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return "unknown";
  return "code" in error && typeof error.code === "string" ? error.code : error.name;
}

function normalized(fingerprint: string): string {
  return fingerprint
    .replace(/^sha-?256:/i, "")
    .replaceAll(/[:\s]/g, "")
    .toUpperCase();
}

/** Refuses an authority and a fingerprint that are none. */
export function checkTrust(shown: string, trust: Trust): void {
  const { certificateAuthority, certificateFingerprint } = trust;
  if (certificateAuthority !== undefined && !certificateAuthority.includes("-----BEGIN CERTIFICATE-----"))
    throw new BmcError("invalid", shown, `BMC ${shown}: the certificate authority is not PEM; give a file that has -----BEGIN CERTIFICATE----- in it`);
  if (certificateFingerprint !== undefined && !/^[0-9A-F]{64}$/.test(normalized(certificateFingerprint))) {
    throw new BmcError(
      "invalid",
      shown,
      `BMC ${shown}: the certificate fingerprint is not a SHA-256; give 64 hexadecimal digits, as openssl x509 -fingerprint -sha256 prints them`,
    );
  }
}

const secureContexts = new Map<string, SecureContext>();

/** The same for all BMCs that are trusted alike: reading an authority costs more than a handshake. */
function secureContextOf({ certificateAuthority, legacyTls }: Trust): SecureContext {
  const key = JSON.stringify([certificateAuthority ?? null, legacyTls === true]);
  let context = secureContexts.get(key);
  if (context === undefined) {
    context = createSecureContext({
      ...(certificateAuthority === undefined ? {} : { ca: certificateAuthority }),
      ...(legacyTls === true ? { minVersion: "TLSv1" as const, ciphers: "DEFAULT:@SECLEVEL=0" } : {}),
    });
    if (secureContexts.size >= MAXIMUM_CONTEXTS) secureContexts.clear();
    secureContexts.set(key, context);
  }
  return context;
}

export class Transport {
  readonly #address: BmcAddress;
  readonly #trust: Trust;
  readonly #connectTimeoutMs: number;
  #client: Client;
  #http2 = false;
  #fingerprint: string | undefined;

  constructor(address: BmcAddress, trust: Trust, connectTimeoutMs: number) {
    this.#address = address;
    this.#trust = trust;
    this.#connectTimeoutMs = connectTimeoutMs;
    this.#client = this.#newClient();
  }

  get client(): Client {
    return this.#client;
  }

  get facts(): TransportFacts {
    const { certificateAuthority, certificateFingerprint, insecure, legacyTls } = this.#trust;
    return {
      http: this.#http2 ? "2" : "1.1",
      verified:
        certificateFingerprint !== undefined ? "fingerprint" : insecure === true ? "not at all" : certificateAuthority !== undefined ? "authority" : "system",
      legacyTls: legacyTls === true,
      fingerprint: this.#fingerprint,
    };
  }

  /** Whether the request is worth sending anew because the BMC turned out to speak another HTTP. Nothing of it was sent. */
  async adapt(error: unknown): Promise<boolean> {
    // HTTP/1.1 alone is offered first, because some BMCs offer an HTTP/2 that does not work.
    if (this.#http2 || codeOf(error) !== NO_COMMON_HTTP) return false;
    this.#http2 = true;
    const before = this.#client;
    this.#client = this.#newClient();
    await before.destroy();
    return true;
  }

  async close(): Promise<void> {
    await this.#client.destroy();
  }

  /** Why no connection came about, in words of what to do; the cause itself is not ours to vouch for and left out. */
  errorOf(error: unknown): BmcError {
    const { shown } = this.#address;
    const code = codeOf(error);
    if (code === WRONG_FINGERPRINT) {
      return new BmcError(
        "untrusted",
        shown,
        `BMC ${shown}: its certificate is not the one with the given fingerprint but ${this.#fingerprint ?? "another"}, and no credentials were sent; if the BMC got a new certificate, give that one's`,
      );
    }
    if (certificateCodes.test(code)) {
      return new BmcError(
        "untrusted",
        shown,
        `BMC ${shown}: its certificate is refused (${code}) and no credentials were sent; give the CA that signed it or its fingerprint, or set insecure where that is meant`,
      );
    }
    if (oldTlsCodes.test(code)) {
      return new BmcError(
        "untrusted",
        shown,
        `BMC ${shown}: it speaks no TLS that is safe (${code}) and no credentials were sent; set legacyTls where that is meant`,
      );
    }
    return new BmcError("unreachable", shown, `BMC ${shown}: it cannot be reached (${code})`);
  }

  #newClient(): Client {
    const { insecure, certificateFingerprint } = this.#trust;
    const connect = buildConnector({
      rejectUnauthorized: insecure !== true && certificateFingerprint === undefined,
      secureContext: this.#secureContext(),
      timeout: this.#connectTimeoutMs,
      allowH2: this.#http2,
      maxCachedSessions: 1,
    });
    return new Client(this.#address.origin, {
      connect: (options, callback) => connect(options, (...outcome) => this.#verify(outcome, callback)),
      allowH2: this.#http2,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: IDLE_MS,
      maxResponseSize: MAXIMUM_ANSWER_BYTES,
    });
  }

  #secureContext(): SecureContext {
    try {
      return secureContextOf(this.#trust);
    } catch (error) {
      const { shown } = this.#address;
      throw new BmcError("invalid", shown, `BMC ${shown}: the certificate authority cannot be read (${codeOf(error)}); give PEM as the authority issued it`);
    }
  }

  /** Before the first byte of a request. */
  #verify(outcome: Parameters<buildConnector.Callback>, callback: buildConnector.Callback): void {
    const [error, socket] = outcome;
    if (error !== null) {
      callback(error, null);
      return;
    }
    if ("getPeerCertificate" in socket) this.#fingerprint = socket.getPeerCertificate().fingerprint256;
    const { certificateFingerprint } = this.#trust;
    if (certificateFingerprint === undefined || (this.#fingerprint !== undefined && normalized(this.#fingerprint) === normalized(certificateFingerprint))) {
      callback(null, socket);
      return;
    }
    socket.destroy();
    callback(new WrongFingerprint("wrong certificate"), null);
  }
}
