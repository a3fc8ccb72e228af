/**
 * Mock BMCs as a process of their own.
 *
 *   node test/testbed/bmc/serve-mock.ts --profile=dell-idrac9            one BMC
 *   node test/testbed/bmc/serve-mock.ts --profile=clean --count=1000     many, on ports of their own
 *
 * Prints one JSON line with the addresses, the credentials and the certificate authority, and serves until its standard input ends.
 */
import { parseArgs } from "node:util";

import { createCertificateAuthority, issueCertificate } from "../certificates.ts";
import { MockBmc } from "./mock-bmc.ts";
import { profileNamed } from "./profiles.ts";

export interface ServedMocks {
  origins: string[];
  username: string;
  password: string;
  certificateAuthority: string;
}

const { values } = parseArgs({ options: { profile: { type: "string", default: "clean" }, count: { type: "string", default: "1" } } });
const count = Number(values.count);
if (!Number.isInteger(count) || count < 1) throw new Error(`--count=${values.count} is no number of BMCs; give 1 or more`);
const profile = profileNamed(values.profile);

const ca = await createCertificateAuthority("bmc-ca");
const certificate = await issueCertificate(ca, { commonName: "bmc", ipAddresses: ["127.0.0.1"] });
const credentials = { username: "operator", password: "mock-pass-phrase" };
const mocks = Array.from({ length: count }, () => new MockBmc({ certificate, ...credentials, profile, keepsLog: count === 1 }));
for (const mock of mocks) await mock.start();
const served: ServedMocks = { origins: mocks.map(({ origin }) => origin), ...credentials, certificateAuthority: ca.certificate };
console.log(JSON.stringify(served));
process.stdin.resume().once("end", () => process.exit(0));
