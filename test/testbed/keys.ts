/** The long-lived secrets of a bed: what its certificates and tokens are signed with. */
import { createCertificateAuthority, createSigningKey } from "./certificates.ts";
import type { KeyPair, SigningKey } from "./certificates.ts";

export interface ClusterKeys {
  /** Signs the API server's certificate and its clients'. */
  authority: KeyPair;
  /** Signs the certificate with which a proxy may speak for an authenticated client. */
  frontProxyAuthority: KeyPair;
  /** Signs ServiceAccount tokens. */
  serviceAccountKey: SigningKey;
}

export interface BedKeys {
  management: ClusterKeys;
  workload: ClusterKeys;
  /** Signs the serving certificates of Cluster API's webhooks. */
  webhookAuthority: KeyPair;
}

async function createClusterKeys(name: string): Promise<ClusterKeys> {
  const [authority, frontProxyAuthority, serviceAccountKey] = await Promise.all([
    createCertificateAuthority(`${name}-ca`),
    createCertificateAuthority(`${name}-front-proxy-ca`),
    createSigningKey(),
  ]);
  return { authority, frontProxyAuthority, serviceAccountKey };
}

export async function createBedKeys(): Promise<BedKeys> {
  const [management, workload, webhookAuthority] = await Promise.all([
    createClusterKeys("management"),
    createClusterKeys("workload"),
    createCertificateAuthority("webhook-ca"),
  ]);
  return { management, workload, webhookAuthority };
}
