/** Keys and certificates of a throw-away control plane: EC P-256, made in the process, no openssl. */
import "reflect-metadata";
import { randomBytes, webcrypto } from "node:crypto";

import * as x509 from "@peculiar/x509";

x509.cryptoProvider.set(webcrypto);

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 24 * 60 * 60 * 1000;
const LIFETIME_DAYS = 3650;

export interface KeyPair {
  /** PEM. */
  certificate: string;
  /** PEM, PKCS #8. */
  key: string;
}

export interface CertificateRequest {
  /** The user's name for a client, any name for a server. */
  commonName: string;
  /** A client's groups. */
  organizations?: readonly string[];
  /** A server's names; a certificate without any name or address is for clients only. */
  dnsNames?: readonly string[];
  ipAddresses?: readonly string[];
}

function pem(label: string, der: ArrayBuffer): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}

async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
}

async function privatePem(keys: webcrypto.CryptoKeyPair): Promise<string> {
  return pem("PRIVATE KEY", await webcrypto.subtle.exportKey("pkcs8", keys.privateKey));
}

/** Dated back by a day, so that a process whose clock is off still accepts it. */
function validity(): { serialNumber: string; notBefore: Date; notAfter: Date } {
  return {
    serialNumber: `01${randomBytes(15).toString("hex")}`,
    notBefore: new Date(Date.now() - DAY_MS),
    notAfter: new Date(Date.now() + LIFETIME_DAYS * DAY_MS),
  };
}

export async function createCertificateAuthority(name: string): Promise<KeyPair> {
  const keys = await generateKeys();
  const certificate = await x509.X509CertificateGenerator.createSelfSigned({
    ...validity(),
    name: [{ CN: [name] }],
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(true, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
      await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificate: `${certificate.toString("pem")}\n`, key: await privatePem(keys) };
}

function derOf(text: string): Buffer {
  return Buffer.from(text.replace(/-----[^-]+-----/g, "").replace(/\s+/g, ""), "base64");
}

/** A certificate for a server (with names or addresses), a client, or both. */
export async function issueCertificate(authority: KeyPair, request: CertificateRequest): Promise<KeyPair> {
  const issuer = new x509.X509Certificate(authority.certificate);
  const signingKey = await webcrypto.subtle.importKey("pkcs8", derOf(authority.key), algorithm, false, ["sign"]);
  const keys = await generateKeys();
  const names = [
    ...(request.dnsNames ?? []).map((value) => ({ type: "dns" as const, value })),
    ...(request.ipAddresses ?? []).map((value) => ({ type: "ip" as const, value })),
  ];
  const usages = [x509.ExtendedKeyUsage.clientAuth, ...(names.length > 0 ? [x509.ExtendedKeyUsage.serverAuth] : [])];
  const certificate = await x509.X509CertificateGenerator.create({
    ...validity(),
    issuer: issuer.subjectName,
    subject: [...(request.organizations ?? []).map((organization) => ({ O: [organization] })), { CN: [request.commonName] }],
    publicKey: keys.publicKey,
    signingKey,
    signingAlgorithm: algorithm,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature | x509.KeyUsageFlags.keyEncipherment, true),
      new x509.ExtendedKeyUsageExtension(usages),
      ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
      await x509.AuthorityKeyIdentifierExtension.create(issuer),
    ],
  });
  return { certificate: `${certificate.toString("pem")}\n`, key: await privatePem(keys) };
}

export interface SigningKey {
  /** PEM, PKCS #8. */
  privateKey: string;
  /** PEM. */
  publicKey: string;
}

/** The key with which an API server signs ServiceAccount tokens. */
export async function createSigningKey(): Promise<SigningKey> {
  const keys = await generateKeys();
  return { privateKey: await privatePem(keys), publicKey: pem("PUBLIC KEY", await webcrypto.subtle.exportKey("spki", keys.publicKey)) };
}
