/** The part that elemental-operator plays: inventories of registered hosts, their credentials, and the state of their plans. */
import { setTimeout as pause } from "node:timers/promises";

import { z } from "zod";

import type { ClusterClient } from "../../../provider/cluster/client.ts";
import type { Connection } from "../../../provider/cluster/connection.ts";
import { isClusterError } from "../../../provider/cluster/errors.ts";
import { secrets } from "../../../provider/cluster/kinds.ts";
import { apiVersionOf } from "../../../provider/cluster/objects.ts";
import type { KubernetesObject, LiveObject, ResourceKind } from "../../../provider/cluster/objects.ts";
import { machineInventories } from "../../../provider/hosts/kinds.ts";
import { checksumOf } from "./plan.ts";

const AGAIN_MS = 1_000;
export const PLAN_SECRET_TYPE = "elemental.cattle.io/plan";

const rbac = (plural: string, kind: string): ResourceKind => ({ group: "rbac.authorization.k8s.io", version: "v1", plural, kind, namespaced: true });
const roles = rbac("roles", "Role");
const roleBindings = rbac("rolebindings", "RoleBinding");

/** Managed data volumes of a host, as the inventory shows them. */
export interface HostStorage {
  volumes: readonly Record<string, unknown>[];
  /** `Prepared`, or whatever keeps the host from being used. */
  phase: string;
}

export interface RegistrationOptions {
  /** A client that may write inventories, their Secrets and RBAC. */
  cluster: ClusterClient;
  namespace: string;
  /** Credentials of a user of that cluster. */
  issueClientCertificate: (user: string, groups: readonly string[]) => Promise<Connection>;
}

const planSecret = z.object({ data: z.record(z.string(), z.string()).default({}) });

export function decodedData(secret: unknown): ReadonlyMap<string, Buffer> {
  const { data } = planSecret.parse(secret);
  return new Map(Object.entries(data).map(([key, value]) => [key, Buffer.from(value, "base64")]));
}

/** What became of the plan that a Secret holds. */
export function planStateOf(secret: unknown): "Applied" | "Failed" | "" {
  const data = decodedData(secret);
  const checksum = checksumOf(data.get("plan") ?? Buffer.alloc(0));
  if (data.get("applied-checksum")?.toString() === checksum) return "Applied";
  return data.get("failed-checksum")?.toString() === checksum ? "Failed" : "";
}

function ready(): Record<string, string> {
  return { type: "Ready", status: "True", reason: "PlanSuccessfullyApplied", message: "", lastTransitionTime: new Date().toISOString() };
}

export class Registration {
  readonly #options: RegistrationOptions;
  readonly #shown = new Map<string, string>();

  constructor(options: RegistrationOptions) {
    this.#options = options;
  }

  /** Makes the inventory of a host with its plan Secret, and returns the credentials that the host uses from then on. */
  async register(host: string, storage: HostStorage | undefined): Promise<Connection> {
    const { namespace, issueClientCertificate } = this.#options;
    const inventory = await this.#ensure(machineInventories, host, { spec: storage === undefined ? {} : { storage: { volumes: storage.volumes } } });
    const ownerReferences = [
      { apiVersion: apiVersionOf(machineInventories), kind: machineInventories.kind, name: host, uid: inventory.metadata.uid, controller: true },
    ];
    await this.#ensure(secrets, host, { type: PLAN_SECRET_TYPE, data: { plan: Buffer.from("{}").toString("base64") } }, { ownerReferences });
    await this.#ensure(
      roles,
      `host-${host}`,
      {
        rules: [
          { apiGroups: [""], resources: ["secrets"], resourceNames: [host], verbs: ["get", "patch"] },
          { apiGroups: [machineInventories.group], resources: [machineInventories.plural], resourceNames: [host], verbs: ["get"] },
        ],
      },
      { ownerReferences },
    );
    await this.#ensure(
      roleBindings,
      `host-${host}`,
      {
        roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: `host-${host}` },
        subjects: [{ apiGroup: "rbac.authorization.k8s.io", kind: "User", name: `host:${host}` }],
      },
      { ownerReferences },
    );
    await this.#status(host, {
      conditions: [ready()],
      plan: { secretRef: { name: host, namespace } },
      ...(storage === undefined ? {} : { storage: { phase: storage.phase } }),
    });
    return issueClientCertificate(`host:${host}`, []);
  }

  async setStorage(host: string, phase: string): Promise<void> {
    await this.#status(host, { storage: { phase } });
  }

  /** Shows in the inventories what became of their plans, until the signal. */
  async followPlans(signal: AbortSignal, log: (line: string) => void): Promise<void> {
    const { cluster, namespace } = this.#options;
    const scope = { namespace, fieldSelector: `type=${PLAN_SECRET_TYPE}`, signal };
    const ended = (): boolean => signal.aborted;
    while (!ended()) {
      try {
        const { items, resourceVersion } = await cluster.list(secrets, scope);
        for (const secret of items) await this.#mirror(secret);
        for await (const event of cluster.watch(secrets, { ...scope, resourceVersion })) {
          if (event.type === "ADDED" || event.type === "MODIFIED") await this.#mirror(event.object);
        }
      } catch (error) {
        if (ended()) return;
        log(`registration: ${error instanceof Error ? error.message : String(error)}`);
        await pause(AGAIN_MS, undefined, { signal }).catch(() => undefined);
      }
    }
  }

  async #mirror(secret: LiveObject): Promise<void> {
    const { name } = secret.metadata;
    const state = planStateOf(secret);
    if (this.#shown.get(name) === state) return;
    try {
      await this.#status(name, { plan: { state } });
      this.#shown.set(name, state);
    } catch (error) {
      // The inventory comes before its Secret and may go before it.
      if (!isClusterError(error, "notFound")) throw error;
    }
  }

  async #status(host: string, status: object): Promise<void> {
    const { cluster, namespace } = this.#options;
    await cluster.patch(machineInventories, { namespace, name: host }, "merge", { status }, { subresource: "status" });
  }

  async #ensure(kind: ResourceKind, name: string, content: object, metadata: Partial<KubernetesObject["metadata"]> = {}): Promise<LiveObject> {
    const { cluster, namespace } = this.#options;
    try {
      return await cluster.create(kind, { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata: { name, namespace, ...metadata }, ...content });
    } catch (error) {
      if (!isClusterError(error, "alreadyExists")) throw error;
      return cluster.get(kind, { namespace, name });
    }
  }
}
