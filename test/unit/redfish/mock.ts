/** What the tests of the Redfish client start from. */
import assert from "node:assert/strict";

import type { Clock } from "../../../provider/clock.ts";
import { RedfishAccess } from "../../../provider/redfish/access.ts";
import type { RedfishBmc, RedfishOptions } from "../../../provider/redfish/access.ts";
import { BmcError } from "../../../provider/redfish/bmc.ts";
import type { BmcErrorKind, BmcTarget } from "../../../provider/redfish/bmc.ts";
import { createCertificateAuthority, issueCertificate } from "../../testbed/certificates.ts";
import type { KeyPair } from "../../testbed/certificates.ts";
import { expired, selfSigned } from "../../testbed/bmc/bad-certificates.ts";
import { MockBmc } from "../../testbed/bmc/mock-bmc.ts";
import type { MockBmcOptions } from "../../testbed/bmc/mock-bmc.ts";
import type { BmcProfile } from "../../testbed/bmc/profile.ts";

export const USERNAME = "operator";
export const PASSWORD = "s3cret-pass-phrase";

/** Short pauses pass at once and are added to the time; long ones are deadlines, which pass when the time is advanced. */
export class FastClock implements Clock {
  time = Date.parse("2026-01-01T00:00:00Z");
  readonly slept: number[] = [];
  readonly #deadlines = new Set<{ at: number; pass: () => void }>();

  now(): number {
    return this.time;
  }

  async sleep(milliseconds: number, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    if (milliseconds < 5_000) {
      this.slept.push(milliseconds);
      this.time += milliseconds;
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const deadline = { at: this.time + milliseconds, pass: resolve };
      this.#deadlines.add(deadline);
      const abort = (): void => {
        this.#deadlines.delete(deadline);
        reject(new Error("aborted"));
      };
      signal?.addEventListener("abort", abort, { once: true });
    });
  }

  /** Deadlines that are running. */
  get deadlines(): number {
    return this.#deadlines.size;
  }

  advance(milliseconds: number): void {
    this.time += milliseconds;
    for (const deadline of this.#deadlines) {
      if (deadline.at > this.time) continue;
      this.#deadlines.delete(deadline);
      deadline.pass();
    }
  }
}

let authority: Promise<{ ca: KeyPair; server: KeyPair }> | undefined;

export async function certificates(): Promise<{ ca: KeyPair; server: KeyPair }> {
  authority ??= createCertificateAuthority("bmc-ca").then(async (ca) => ({
    ca,
    server: await issueCertificate(ca, { commonName: "bmc", ipAddresses: ["127.0.0.1"] }),
  }));
  return authority;
}

/** The certificate that a BMC of that profile shows. */
async function certificateOf({ tls }: BmcProfile): Promise<KeyPair> {
  const { ca, server } = await certificates();
  switch (tls.certificate) {
    case "trusted":
      return server;
    case "self-signed":
      return selfSigned();
    case "expired":
      return expired(ca);
    case "wrong name":
      return issueCertificate(ca, { commonName: "bmc", dnsNames: ["another.example"] });
  }
}

export interface Bench {
  mock: MockBmc;
  access: RedfishAccess;
  clock: FastClock;
  bmc: (overrides?: Partial<BmcTarget>) => RedfishBmc;
}

const started: Bench[] = [];

export async function startBench(options: Partial<MockBmcOptions> = {}, redfish: RedfishOptions = {}): Promise<Bench> {
  const { ca, server } = await certificates();
  const clock = new FastClock();
  const mock = new MockBmc({
    certificate: options.profile === undefined ? server : await certificateOf(options.profile),
    username: USERNAME,
    password: PASSWORD,
    now: () => clock.now(),
    ...(options.profile === undefined ? { sessions: false } : {}),
    ...options,
  });
  await mock.start();
  const access = new RedfishAccess({ clock, random: () => 0, ...redfish });
  const target: BmcTarget = { address: mock.origin, username: USERNAME, password: PASSWORD, certificateAuthority: ca.certificate };
  const bench: Bench = { mock, access, clock, bmc: (overrides) => access.bmc({ ...target, ...overrides }) };
  started.push(bench);
  return bench;
}

export async function stopBenches(): Promise<void> {
  for (const bench of started.splice(0)) {
    await bench.access.close();
    await bench.mock.stop();
  }
}

/** The error of a call that must fail with that kind and without any credential in it. */
export async function failure(call: Promise<unknown>, kind: BmcErrorKind): Promise<BmcError> {
  const error: unknown = await call.then(
    (value) => assert.fail(`expected a failure of kind ${kind}, got ${JSON.stringify(value)}`),
    (reason: unknown) => reason,
  );
  assert.ok(error instanceof BmcError, `not a BmcError: ${String(error)}`);
  assert.equal(error.kind, kind, error.message);
  const shown = `${error.message} ${error.stack ?? ""} ${JSON.stringify(error)}`;
  for (const secret of [PASSWORD, Buffer.from(`${USERNAME}:${PASSWORD}`).toString("base64"), "token-"])
    assert.ok(!shown.includes(secret), `a credential is shown: ${shown}`);
  return error;
}
