/** etcd, kube-apiserver and kube-controller-manager as child processes on loopback ports. */
import { mkdirSync, writeFileSync } from "node:fs";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";

import { ClusterClient } from "../../provider/cluster/client.ts";
import type { Connection } from "../../provider/cluster/connection.ts";
import { auditPolicy } from "./audit-policy.ts";
import { issueCertificate } from "./certificates.ts";
import type { KeyPair } from "./certificates.ts";
import type { ClusterKeys } from "./keys.ts";
import { kubeconfigOf } from "./kubeconfig.ts";
import { freePort, releasePorts } from "./ports.ts";
import { startProcess, untilReady } from "./processes.ts";
import type { RunningProcess } from "./processes.ts";
import { binary } from "./toolchain.ts";

const READY_TIMEOUT_MS = 60_000;
const PROBE_TIMEOUT_MS = 2000;
/** Lumberjack would begin a second file at 100 MB. */
const AUDIT_LOG_MAX_MB = 10_000;

export const ADMINISTRATORS = "system:masters";
/** The user and user agent of the bed's own requests. */
export const BED_USER = "test-bed";

const MANAGEMENT_CONTROLLERS = [
  "garbage-collector-controller",
  "namespace-controller",
  "deployment-controller",
  "replicaset-controller",
  "serviceaccount-controller",
];
const WORKLOAD_CONTROLLERS = [
  "garbage-collector-controller",
  "namespace-controller",
  "node-lifecycle-controller",
  "taint-eviction-controller",
  "pod-garbage-collector-controller",
  "bootstrap-signer-controller",
  "token-cleaner-controller",
  "certificatesigningrequest-signing-controller",
  "certificatesigningrequest-approving-controller",
  "disruption-controller",
];

export interface Etcd {
  endpoint: string;
  process: RunningProcess;
}

export interface ApiServer {
  name: ClusterName;
  /** `https://127.0.0.1:<port>` */
  server: string;
  port: number;
  process: RunningProcess;
  auditLogPath: string;
  keys: ClusterKeys;
  /** Holds the cluster's files. */
  directory: string;
}

export type ClusterName = "management" | "workload";

export interface ClientIdentity {
  user: string;
  groups?: readonly string[];
}

/** Answers whether the URL answers with 200. */
export async function answersOk(url: string, tls: { ca: string; cert: string; key: string }): Promise<boolean> {
  return new Promise((resolve) => {
    const request = httpsRequest(url, { ...tls, agent: false, timeout: PROBE_TIMEOUT_MS }, (answer) => {
      answer.resume();
      resolve(answer.statusCode === 200);
    });
    request.on("timeout", () => request.destroy());
    request.on("error", () => resolve(false));
    request.end();
  });
}

/** Told of a process as soon as it runs, so that it can be stopped even when it never gets ready. */
export type Started = (process: RunningProcess) => void;

/** `dataDirectory` may hold the data of an earlier etcd. */
export async function startEtcd(directory: string, dataDirectory: string, started: Started): Promise<Etcd> {
  const port = await freePort();
  const endpoint = `http://127.0.0.1:${port}`;
  // No other member will ever ask for the peer address.
  const peer = "http://127.0.0.1:2380";
  const process = startProcess({
    name: "etcd",
    command: binary("etcd"),
    args: [
      `--data-dir=${dataDirectory}`,
      `--listen-client-urls=${endpoint}`,
      `--advertise-client-urls=${endpoint}`,
      "--listen-peer-urls=http://127.0.0.1:0",
      `--initial-advertise-peer-urls=${peer}`,
      `--initial-cluster=default=${peer}`,
      "--unsafe-no-fsync",
      "--log-level=warn",
    ],
    logPath: join(directory, "etcd.log"),
  });
  started(process);
  await untilReady(process, async () => (await fetch(`${endpoint}/health`, { signal: AbortSignal.timeout(PROBE_TIMEOUT_MS) })).ok, {
    timeoutMs: READY_TIMEOUT_MS,
    intervalMs: 20,
  });
  void process.exited.then(() => releasePorts([port]));
  return { endpoint, process };
}

export interface CertifiedConnection extends Connection {
  certificateAuthority: string;
  clientCertificate: string;
  clientKey: string;
}

/** A client certificate and the address and trust that go with it. */
export async function issueConnection(api: { server: string; authority: KeyPair }, identity: ClientIdentity): Promise<CertifiedConnection> {
  const pair = await issueCertificate(api.authority, { commonName: identity.user, organizations: identity.groups ?? [] });
  return { server: api.server, certificateAuthority: api.authority.certificate, clientCertificate: pair.certificate, clientKey: pair.key };
}

export function kubeconfigOfConnection(connection: CertifiedConnection): string {
  const { server, certificateAuthority, clientCertificate, clientKey } = connection;
  return kubeconfigOf({ server, certificateAuthority, user: { clientCertificate, clientKey } });
}

/** Writes a kubeconfig with an administrator's rights under a name of its own, so that the audit log tells who asked. */
export async function writeAdministratorKubeconfig(api: ApiServer, user: string, path: string): Promise<void> {
  const connection = await issueConnection({ server: api.server, authority: api.keys.authority }, { user, groups: [ADMINISTRATORS] });
  writeFileSync(path, kubeconfigOfConnection(connection), { mode: 0o600 });
}

export async function administratorOf(api: ApiServer): Promise<ClusterClient> {
  return new ClusterClient(await issueConnection({ server: api.server, authority: api.keys.authority }, { user: BED_USER, groups: [ADMINISTRATORS] }), {
    userAgent: BED_USER,
  });
}

function writePair(directory: string, name: string, pair: KeyPair): { certificate: string; key: string } {
  const paths = { certificate: join(directory, `${name}.crt`), key: join(directory, `${name}.key`) };
  writeFileSync(paths.certificate, pair.certificate);
  writeFileSync(paths.key, pair.key, { mode: 0o600 });
  return paths;
}

export async function startApiServer(name: ClusterName, directory: string, etcd: Etcd, keys: ClusterKeys, started: Started): Promise<ApiServer> {
  mkdirSync(directory, { recursive: true });
  const port = await freePort();
  const server = `https://127.0.0.1:${port}`;
  const serving = await issueCertificate(keys.authority, {
    commonName: "kube-apiserver",
    dnsNames: ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"],
    ipAddresses: ["127.0.0.1", "10.0.0.1"],
  });
  const servingFiles = writePair(directory, "kube-apiserver", serving);
  const authorityFiles = writePair(directory, "ca", keys.authority);
  const frontProxyFiles = writePair(directory, "front-proxy-ca", keys.frontProxyAuthority);
  const tokenKeyPath = join(directory, "service-account.key");
  const tokenPublicKeyPath = join(directory, "service-account.pub");
  writeFileSync(tokenKeyPath, keys.serviceAccountKey.privateKey, { mode: 0o600 });
  writeFileSync(tokenPublicKeyPath, keys.serviceAccountKey.publicKey);
  const policyPath = join(directory, "audit-policy.json");
  writeFileSync(policyPath, JSON.stringify(auditPolicy));
  const auditLogPath = join(directory, "audit.log");
  const process = startProcess({
    name: `${name} kube-apiserver`,
    command: binary("kube-apiserver"),
    args: [
      `--etcd-servers=${etcd.endpoint}`,
      `--etcd-prefix=/${name}`,
      `--secure-port=${port}`,
      "--bind-address=127.0.0.1",
      `--tls-cert-file=${servingFiles.certificate}`,
      `--tls-private-key-file=${servingFiles.key}`,
      `--client-ca-file=${authorityFiles.certificate}`,
      `--requestheader-client-ca-file=${frontProxyFiles.certificate}`,
      "--requestheader-username-headers=X-Remote-User",
      "--requestheader-group-headers=X-Remote-Group",
      "--requestheader-extra-headers-prefix=X-Remote-Extra-",
      `--service-account-key-file=${tokenPublicKeyPath}`,
      `--service-account-signing-key-file=${tokenKeyPath}`,
      "--service-account-issuer=https://kubernetes.default.svc",
      "--service-cluster-ip-range=10.0.0.0/24",
      "--authorization-mode=Node,RBAC",
      "--allow-privileged",
      "--endpoint-reconciler-type=none",
      // In the workload cluster tests create bare Pods, and no controller makes default ServiceAccounts there.
      ...(name === "workload" ? ["--disable-admission-plugins=ServiceAccount", "--enable-bootstrap-token-auth"] : []),
      `--audit-policy-file=${policyPath}`,
      `--audit-log-path=${auditLogPath}`,
      `--audit-log-maxsize=${AUDIT_LOG_MAX_MB}`,
    ],
    logPath: join(directory, "kube-apiserver.log"),
  });
  started(process);
  void process.exited.then(() => releasePorts([port]));
  const probe = await issueCertificate(keys.authority, { commonName: BED_USER, organizations: [ADMINISTRATORS] });
  const tls = { ca: keys.authority.certificate, cert: probe.certificate, key: probe.key };
  await untilReady(process, async () => answersOk(`${server}/readyz`, tls), { timeoutMs: READY_TIMEOUT_MS });
  return { name, server, port, process, auditLogPath, keys, directory };
}

export interface ControllerManagerOptions {
  /** Seconds without a heartbeat after which a Node of the workload cluster is Unknown. */
  nodeMonitorGraceSeconds: number;
}

/** Serves nothing, so there is nothing to wait for: what it does shows in the cluster. */
export async function startControllerManager(api: ApiServer, options: ControllerManagerOptions): Promise<RunningProcess> {
  const kubeconfigPath = join(api.directory, "kube-controller-manager.kubeconfig");
  await writeAdministratorKubeconfig(api, "kube-controller-manager", kubeconfigPath);
  const controllers = api.name === "management" ? MANAGEMENT_CONTROLLERS : WORKLOAD_CONTROLLERS;
  return startProcess({
    name: `${api.name} kube-controller-manager`,
    command: binary("kube-controller-manager"),
    args: [
      `--kubeconfig=${kubeconfigPath}`,
      "--leader-elect=false",
      "--secure-port=0",
      "--use-service-account-credentials=false",
      `--service-account-private-key-file=${join(api.directory, "service-account.key")}`,
      `--root-ca-file=${join(api.directory, "ca.crt")}`,
      `--controllers=${controllers.join(",")}`,
      ...(api.name === "workload"
        ? [
            `--cluster-signing-cert-file=${join(api.directory, "ca.crt")}`,
            `--cluster-signing-key-file=${join(api.directory, "ca.key")}`,
            "--node-monitor-period=1s",
            `--node-monitor-grace-period=${options.nodeMonitorGraceSeconds}s`,
            "--node-startup-grace-period=20s",
          ]
        : []),
    ],
    logPath: join(api.directory, "kube-controller-manager.log"),
  });
}
