/** Server certificates as BMCs really have them: of nobody, out of date, or of another name. */
import { webcrypto } from "node:crypto";

import * as x509 from "@peculiar/x509";

import type { KeyPair } from "../certificates.ts";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 24 * 60 * 60 * 1000;

async function privatePem(key: webcrypto.CryptoKey): Promise<string> {
  const der = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", key)).toString("base64");
  return `-----BEGIN PRIVATE KEY-----\n${(der.match(/.{1,64}/g) ?? []).join("\n")}\n-----END PRIVATE KEY-----\n`;
}

/** For 127.0.0.1, signed with its own key. */
export async function selfSigned(): Promise<KeyPair> {
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    serialNumber: "01",
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + DAY_MS),
    name: [{ CN: ["bmc"] }],
    keys,
    signingAlgorithm: algorithm,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: "ip", value: "127.0.0.1" }])],
  });
  return { certificate: `${certificate.toString("pem")}\n`, key: await privatePem(keys.privateKey) };
}

/** For 127.0.0.1, of that authority, ended yesterday. */
export async function expired(authority: KeyPair): Promise<KeyPair> {
  const issuer = new x509.X509Certificate(authority.certificate);
  const der = Buffer.from(authority.key.replace(/-----[^-]+-----/g, "").replace(/\s+/g, ""), "base64");
  const signingKey = await webcrypto.subtle.importKey("pkcs8", der, algorithm, false, ["sign"]);
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const certificate = await x509.X509CertificateGenerator.create({
    serialNumber: "02",
    notBefore: new Date(Date.now() - 30 * DAY_MS),
    notAfter: new Date(Date.now() - DAY_MS),
    issuer: issuer.subjectName,
    subject: [{ CN: ["bmc"] }],
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: algorithm,
    extensions: [new x509.SubjectAlternativeNameExtension([{ type: "ip", value: "127.0.0.1" }])],
  });
  return { certificate: `${certificate.toString("pem")}\n`, key: await privatePem(keys.privateKey) };
}
