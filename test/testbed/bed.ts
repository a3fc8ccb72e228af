/** One test bed: a management and a workload control plane with Cluster API and one Cluster, all on loopback, in one folder. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { ClusterClient } from "../../provider/cluster/client.ts";
import type { KubernetesObject } from "../../provider/cluster/objects.ts";
import type { KeyPair } from "./certificates.ts";
import { startClusterApi } from "./cluster-api.ts";
import { ADMINISTRATORS, BED_USER, issueConnection, kubeconfigOfConnection, startApiServer, startControllerManager, startEtcd } from "./control-plane.ts";
import type { ApiServer, CertifiedConnection, ClientIdentity } from "./control-plane.ts";
import { applyCrds } from "./crds.ts";
import { startFaultProxy } from "./fault-proxy.ts";
import type { FaultProxy } from "./fault-proxy.ts";
import { layFoundation } from "./foundation.ts";
import type { RunningProcess } from "./processes.ts";
import { createCluster, leaveKubeadmObjects } from "./workload-cluster.ts";

/**
 * Milliseconds between SIGTERM and SIGKILL. Nothing of what the managers do on their way out is of use to a bed that ends, and they can take
 * half a minute over it.
 */
const GRACE_MS = { managers: 1000, apiServers: 5000, etcd: 5000 } as const;

export interface BedOptions {
  /** Name of the Cluster; `edge` by default. */
  clusterName?: string;
  /** Namespace of the Cluster; `cpaas-system` by default. */
  namespace?: string;
  /** Version that the control plane of the Cluster claims; that of the workload API server, `v1.37.2`, by default. */
  version?: string;
  /** CRDs to be there from the start, for tests that do not deploy the component that brings them. */
  crds?: readonly KubernetesObject[];
  /** Cluster API's own limit of one reconcile an object and second; off by default, which makes each step of a chain 1–2 s quicker. */
  rateLimiting?: boolean;
  /** Seconds without a heartbeat after which a Node is Unknown; 10 by default. */
  nodeMonitorGraceSeconds?: number;
  /** Further arguments of Cluster API's core manager, such as `--remote-connection-grace-period=10s`. */
  coreArguments?: readonly string[];
  /** Further arguments of Cluster API's kubeadm bootstrap manager. */
  bootstrapArguments?: readonly string[];
  /** Let everyone but the bed itself reach the workload API through its fault proxy: Cluster API, controllers and hosts. Off by default. */
  workloadThroughProxy?: boolean;
  /** Told what has been reached, with the milliseconds since the beginning. */
  progress?: (what: string, elapsedMs: number) => void;
}

export interface BedCluster {
  /** The administrator's client; its requests carry the user and user agent `test-bed`. */
  cluster: ClusterClient;
  connection: CertifiedConnection;
  kubeconfig: string;
  kubeconfigPath: string;
  /** Address of the API server itself. */
  server: string;
  auditLogPath: string;
  /** Signs the API server's certificate and those of clients. */
  certificateAuthority: KeyPair;
  /** An API server's double in front of it, with faults to order; the same trust and credentials hold for both. */
  proxy: FaultProxy;
  /** The process of the API server, to stop and continue it. */
  apiServer: RunningProcess;
}

export interface Bed {
  /** Holds every log, audit log and kubeconfig. */
  directory: string;
  clusterName: string;
  namespace: string;
  management: BedCluster;
  workload: BedCluster;
  /** Keeps the folder (without etcd's data) after `stop`, for looking at the logs. `KEEP_BED=1` in the environment does the same. */
  keep(): void;
  /** Has this run before the control planes are stopped, last added first. */
  beforeStop(end: () => Promise<void>): void;
  /** Ends everything in the right order. */
  stop(): Promise<void>;
}

/** A certificate for a user of one of the bed's clusters, a host or a person. */
export async function issueClientCertificate(cluster: BedCluster, identity: ClientIdentity): Promise<CertifiedConnection> {
  return issueConnection({ server: cluster.server, authority: cluster.certificateAuthority }, identity);
}

async function openCluster(api: ApiServer, directory: string): Promise<BedCluster> {
  const connection = await issueConnection({ server: api.server, authority: api.keys.authority }, { user: BED_USER, groups: [ADMINISTRATORS] });
  const kubeconfig = kubeconfigOfConnection(connection);
  const kubeconfigPath = join(directory, `${api.name}.kubeconfig`);
  writeFileSync(kubeconfigPath, kubeconfig, { mode: 0o600 });
  return {
    cluster: new ClusterClient(connection, { userAgent: BED_USER }),
    connection,
    kubeconfig,
    kubeconfigPath,
    server: api.server,
    auditLogPath: api.auditLogPath,
    certificateAuthority: api.keys.authority,
    proxy: await startFaultProxy({ upstream: api.server, authority: api.keys.authority, frontProxyAuthority: api.keys.frontProxyAuthority }),
    apiServer: api.process,
  };
}

class RunningBed {
  readonly directory: string;
  readonly #clusters: BedCluster[] = [];
  readonly #ends: (() => Promise<void>)[] = [];
  /** Stopped one stage after the other: an API server that loses its etcd hangs for a minute in its own shutdown. */
  readonly #stages: Record<"managers" | "apiServers" | "etcd", RunningProcess[]> = { managers: [], apiServers: [], etcd: [] };
  #kept = process.env["KEEP_BED"] === "1";
  #stopping: Promise<void> | undefined;

  constructor() {
    this.directory = mkdtempSync(join(tmpdir(), "pulumi-baremetal-bed-"));
  }

  readonly keep = (): void => {
    this.#kept = true;
  };

  readonly beforeStop = (end: () => Promise<void>): void => {
    this.#ends.unshift(end);
  };

  readonly stop = async (): Promise<void> => {
    this.#stopping ??= this.#stop();
    return this.#stopping;
  };

  async start(options: BedOptions): Promise<Bed> {
    const began = performance.now();
    const progress = (what: string): void => options.progress?.(what, performance.now() - began);
    const clusterName = options.clusterName ?? "edge";
    const namespace = options.namespace ?? "cpaas-system";
    const data = join(this.directory, "etcd");
    const { keys, converted } = await layFoundation(data);
    progress("foundation laid");
    const etcd = await startEtcd(this.directory, data, (process) => this.#stages.etcd.push(process));
    const open = async (name: "management" | "workload"): Promise<{ api: ApiServer; cluster: BedCluster }> => {
      const api = await startApiServer(name, join(this.directory, name), etcd, keys[name], (process) => this.#stages.apiServers.push(process));
      const cluster = await openCluster(api, this.directory);
      this.#clusters.push(cluster);
      progress(`${name} API server ready`);
      this.#stages.managers.push(await startControllerManager(api, { nodeMonitorGraceSeconds: options.nodeMonitorGraceSeconds ?? 10 }));
      return { api, cluster };
    };
    const openManagement = async (): Promise<BedCluster> => {
      const { api, cluster } = await open("management");
      if (options.crds !== undefined) await applyCrds(cluster.cluster, options.crds);
      await startClusterApi(
        { api, client: cluster.cluster, directory: join(this.directory, "cluster-api"), started: (process) => this.#stages.managers.push(process) },
        keys.webhookAuthority,
        converted,
        { rateLimiting: options.rateLimiting ?? false, coreArguments: options.coreArguments ?? [], bootstrapArguments: options.bootstrapArguments ?? [] },
      );
      progress("Cluster API ready");
      return cluster;
    };
    const openWorkload = async (): Promise<{ cluster: BedCluster; server: string }> => {
      const { cluster } = await open("workload");
      const server = options.workloadThroughProxy === true ? cluster.proxy.server : cluster.server;
      await leaveKubeadmObjects(cluster.cluster, { server, authority: keys.workload.authority });
      return { cluster, server };
    };
    // Settled, so that nothing goes on starting behind the back of a failure.
    const [first, second] = await Promise.allSettled([openManagement(), openWorkload()]);
    if (first.status === "rejected") throw first.reason;
    if (second.status === "rejected") throw second.reason;
    const management = first.value;
    const { cluster: workload, server } = second.value;
    const administrator = await issueConnection({ server, authority: keys.workload.authority }, { user: "kubernetes-admin", groups: [ADMINISTRATORS] });
    await createCluster(management.cluster, {
      name: clusterName,
      namespace,
      version: options.version ?? (await workload.cluster.serverVersion()),
      server,
      kubeconfig: kubeconfigOfConnection(administrator),
      authority: keys.workload.authority,
    });
    progress(`Cluster ${clusterName} provisioned`);
    const { directory, keep, beforeStop, stop } = this;
    return { directory, clusterName, namespace, management, workload, keep, beforeStop, stop };
  }

  async #stop(): Promise<void> {
    for (const end of this.#ends) await end();
    for (const stage of ["managers", "apiServers", "etcd"] as const) {
      await Promise.all(this.#stages[stage].map(async (process) => process.stop(GRACE_MS[stage])));
      if (stage === "managers") await Promise.all(this.#clusters.flatMap(({ cluster, proxy }) => [cluster.close(), proxy.close()]));
    }
    rmSync(this.#kept ? join(this.directory, "etcd") : this.directory, { recursive: true, force: true });
    if (this.#kept) console.error(`the bed's logs are kept in ${this.directory}`);
  }
}

/** Starts a bed and returns it once its Cluster is Provisioned; a bed that does not come up is stopped and its logs are kept. */
export async function startBed(options: BedOptions = {}): Promise<Bed> {
  const running = new RunningBed();
  try {
    return await running.start(options);
  } catch (error) {
    running.keep();
    await running.stop();
    throw error;
  }
}
