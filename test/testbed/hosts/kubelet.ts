/** The kubelet of a simulated host: its Node, its heartbeat and the end of its Pods. */
import { setTimeout as pause } from "node:timers/promises";

import { z } from "zod";

import { ClusterClient } from "../../../provider/cluster/client.ts";
import type { Connection } from "../../../provider/cluster/connection.ts";
import { isClusterError } from "../../../provider/cluster/errors.ts";
import { leases, nodes, pods } from "../../../provider/cluster/kinds.ts";
import type { LiveObject } from "../../../provider/cluster/objects.ts";
import type { Taint } from "./cloud-init.ts";

const HEARTBEAT_MS = 1_000;
const STATUS_EVERY = 5;
const LEASE_NAMESPACE = "kube-node-lease";
const LEASE_SECONDS = 40;
const REQUEST_TIMEOUT_MS = 5_000;

/** What of the kubelet stays on the host's disk. */
export interface KubeletState {
  connection: Connection;
  nodeName: string;
  providerId: string | undefined;
  labels: Record<string, string>;
  taints: readonly Taint[];
}

export interface Boot {
  bootId: string;
  /** Stands for the hardware; the same at each boot. */
  systemUuid: string;
  kubeletVersion: string;
}

const condition = z.object({ type: z.string(), status: z.string(), lastTransitionTime: z.string().optional() });
const nodeStatus = z.object({ status: z.object({ conditions: z.array(condition).default([]) }).default({ conditions: [] }) });
const podStatus = z.object({ status: z.object({ phase: z.string().optional() }).default({}) });

const healthy = [
  { type: "Ready", status: "True", reason: "KubeletReady", message: "kubelet is posting ready status" },
  { type: "MemoryPressure", status: "False", reason: "KubeletHasSufficientMemory", message: "" },
  { type: "DiskPressure", status: "False", reason: "KubeletHasNoDiskPressure", message: "" },
  { type: "PIDPressure", status: "False", reason: "KubeletHasSufficientPID", message: "" },
] as const;

class Kubelet {
  readonly #client: ClusterClient;
  readonly #state: KubeletState;
  readonly #boot: Boot;
  readonly #signal: AbortSignal;

  constructor(client: ClusterClient, state: KubeletState, boot: Boot, signal: AbortSignal) {
    this.#client = client;
    this.#state = state;
    this.#boot = boot;
    this.#signal = signal;
  }

  get #request(): { signal: AbortSignal; timeoutMs: number } {
    return { signal: this.#signal, timeoutMs: REQUEST_TIMEOUT_MS };
  }

  /** Only at its start does a kubelet make its Node; one that is deleted later stays away until the next boot. */
  async register(): Promise<void> {
    const { nodeName, providerId, labels, taints } = this.#state;
    try {
      await this.#client.create(
        nodes,
        {
          apiVersion: "v1",
          kind: "Node",
          metadata: { name: nodeName, labels: { "kubernetes.io/hostname": nodeName, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", ...labels } },
          spec: { ...(providerId === undefined ? {} : { providerID: providerId }), taints },
        },
        this.#request,
      );
    } catch (error) {
      if (!isClusterError(error, "alreadyExists")) throw error;
    }
    await this.#reportStatus();
  }

  async beat(nth: number): Promise<void> {
    await this.#renewLease();
    if (nth % STATUS_EVERY === 0) await this.#reportStatus();
    await this.#tendPods();
  }

  async #reportStatus(): Promise<void> {
    const { nodeName } = this.#state;
    const { conditions } = nodeStatus.parse(await this.#client.get(nodes, { name: nodeName }, this.#request)).status;
    const now = new Date().toISOString();
    const { bootId, systemUuid, kubeletVersion } = this.#boot;
    await this.#client.patch(
      nodes,
      { name: nodeName },
      "strategic",
      {
        status: {
          conditions: healthy.map((wanted) => {
            const before = conditions.find(({ type, status }) => type === wanted.type && status === wanted.status);
            return { ...wanted, lastHeartbeatTime: now, lastTransitionTime: before?.lastTransitionTime ?? now };
          }),
          addresses: [{ type: "Hostname", address: nodeName }],
          capacity: { cpu: "8", memory: "32Gi", pods: "110" },
          allocatable: { cpu: "8", memory: "32Gi", pods: "110" },
          nodeInfo: {
            machineID: systemUuid,
            systemUUID: systemUuid,
            bootID: bootId,
            kernelVersion: "6.12.0",
            osImage: "Simulated Linux",
            containerRuntimeVersion: "containerd://2.1.0",
            kubeletVersion,
            kubeProxyVersion: "",
            operatingSystem: "linux",
            architecture: "amd64",
          },
        },
      },
      { ...this.#request, subresource: "status" },
    );
  }

  async #renewLease(): Promise<void> {
    const { nodeName } = this.#state;
    const key = { namespace: LEASE_NAMESPACE, name: nodeName };
    // Leases have microseconds.
    const spec = { holderIdentity: nodeName, leaseDurationSeconds: LEASE_SECONDS, renewTime: new Date().toISOString().replace("Z", "000Z") };
    try {
      await this.#client.patch(leases, key, "merge", { spec }, this.#request);
    } catch (error) {
      if (!isClusterError(error, "notFound")) throw error;
      await this.#client.create(leases, { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: key, spec }, this.#request);
    }
  }

  async #tendPods(): Promise<void> {
    const { items } = await this.#client.list(pods, { ...this.#request, fieldSelector: `spec.nodeName=${this.#state.nodeName}` });
    for (const pod of items) await this.#tend(pod);
  }

  async #tend(pod: LiveObject): Promise<void> {
    const { namespace, name, uid, deletionTimestamp } = pod.metadata;
    const key = namespace === undefined ? { name } : { namespace, name };
    if (deletionTimestamp !== undefined) {
      await ignoring("notFound", this.#client.delete(pods, key, { ...this.#request, uid, gracePeriodSeconds: 0 }));
    } else if (podStatus.parse(pod).status.phase !== "Running") {
      const ready = { type: "Ready", status: "True", lastTransitionTime: new Date().toISOString() };
      await ignoring(
        "notFound",
        this.#client.patch(pods, key, "strategic", { status: { phase: "Running", conditions: [ready] } }, { ...this.#request, subresource: "status" }),
      );
    }
  }
}

async function ignoring(kind: "notFound", call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!isClusterError(error, kind, "conflict")) throw error;
  }
}

/** Runs until the signal; whatever the API server refuses is tried again with the next heartbeat. */
export async function runKubelet(state: KubeletState, boot: Boot, signal: AbortSignal, log: (line: string) => void): Promise<void> {
  const client = new ClusterClient(state.connection, { userAgent: "kubelet" });
  const kubelet = new Kubelet(client, state, boot, signal);
  const ended = (): boolean => signal.aborted;
  let registered = false;
  try {
    for (let nth = 1; !ended(); nth += 1) {
      try {
        if (!registered) {
          await kubelet.register();
          registered = true;
          log(`kubelet runs Node ${state.nodeName}, boot ${boot.bootId}`);
        }
        await kubelet.beat(nth);
      } catch (error) {
        if (!ended()) log(`kubelet: ${error instanceof Error ? error.message : String(error)}`);
      }
      await pause(HEARTBEAT_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    await client.close();
  }
}
