/** Joins a cluster with a bootstrap token as `kubeadm join` does: discovery, its checks, and a kubelet certificate by CSR. */
import { X509Certificate, createHash, createHmac, randomBytes, webcrypto } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

import * as x509 from "@peculiar/x509";
import { parse } from "yaml";
import { z } from "zod";

import { ClusterClient } from "../../../provider/cluster/client.ts";
import type { Connection } from "../../../provider/cluster/connection.ts";
import { certificateSigningRequests, configMaps } from "../../../provider/cluster/kinds.ts";
import type { Join } from "./cloud-init.ts";

const LOOK_EVERY_MS = 200;
const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

const clusterInfo = z.object({ data: z.record(z.string(), z.string()) });
const discoveryFile = z.object({ clusters: z.array(z.object({ cluster: z.object({ "certificate-authority-data": z.string() }) })).min(1) });
const csrStatus = z.object({ status: z.object({ certificate: z.string().optional() }).optional() });

/** Verifies the detached signature that the bootstrap signer puts beside the cluster-info. */
function isSigned(content: string, signature: string, secret: string): boolean {
  const [header = "", , mac = ""] = signature.split(".");
  const expected = createHmac("sha256", secret)
    .update(`${header}.${Buffer.from(content).toString("base64url")}`)
    .digest("base64url");
  return mac === expected;
}

function spkiHash(certificate: string): string {
  const spki = new X509Certificate(certificate).publicKey.export({ type: "spki", format: "der" });
  return `sha256:${createHash("sha256").update(spki).digest("hex")}`;
}

/** The cluster's CA from its cluster-info, read without credentials and without trust, then proven by token and hash. */
async function discover(join: Join, signal: AbortSignal): Promise<string> {
  const [id = "", secret = ""] = join.token.split(".");
  const anonymous = new ClusterClient({ server: join.server, insecureSkipTlsVerify: true }, { userAgent: "kubeadm" });
  try {
    for (;;) {
      const { data } = clusterInfo.parse(await anonymous.get(configMaps, { namespace: "kube-public", name: "cluster-info" }, { signal }));
      const kubeconfig = data["kubeconfig"] ?? "";
      const signature = data[`jws-kubeconfig-${id}`];
      // The signer adds it a moment after the token came to be.
      if (signature === undefined) {
        await pause(LOOK_EVERY_MS, undefined, { signal });
        continue;
      }
      if (!isSigned(kubeconfig, signature, secret)) throw new Error("the cluster-info is not signed with the bootstrap token");
      const [first] = discoveryFile.parse(parse(kubeconfig)).clusters;
      const authority = Buffer.from(first?.cluster["certificate-authority-data"] ?? "", "base64").toString("utf8");
      if (!join.caCertHashes.includes(spkiHash(authority))) throw new Error("the cluster's CA is not the one whose hash the bootstrap data has");
      return authority;
    }
  } finally {
    await anonymous.close();
  }
}

/** Returns the kubelet's connection once its certificate has been signed. */
export async function kubeadmJoin(join: Join, signal: AbortSignal): Promise<Connection> {
  const certificateAuthority = await discover(join, signal);
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const request = await x509.Pkcs10CertificateRequestGenerator.create({
    name: [{ O: ["system:nodes"] }, { CN: [`system:node:${join.nodeName}`] }],
    keys,
    signingAlgorithm: algorithm,
  });
  const name = `node-csr-${randomBytes(8).toString("hex")}`;
  const bootstrap = new ClusterClient(
    { server: join.server, certificateAuthority, authorize: () => Promise.resolve({ Authorization: `Bearer ${join.token}` }) },
    { userAgent: "kubelet" },
  );
  try {
    await bootstrap.create(
      certificateSigningRequests,
      {
        apiVersion: "certificates.k8s.io/v1",
        kind: "CertificateSigningRequest",
        metadata: { name },
        spec: {
          request: Buffer.from(request.toString("pem")).toString("base64"),
          signerName: "kubernetes.io/kube-apiserver-client-kubelet",
          usages: ["digital signature", "client auth"],
        },
      },
      { signal },
    );
    for (;;) {
      const certificate = csrStatus.parse(await bootstrap.get(certificateSigningRequests, { name }, { signal })).status?.certificate;
      if (certificate !== undefined) {
        const clientKey = x509.PemConverter.encode(await webcrypto.subtle.exportKey("pkcs8", keys.privateKey), "PRIVATE KEY");
        return { server: join.server, certificateAuthority, clientCertificate: Buffer.from(certificate, "base64").toString("utf8"), clientKey };
      }
      await pause(LOOK_EVERY_MS, undefined, { signal });
    }
  } finally {
    await bootstrap.close();
  }
}
