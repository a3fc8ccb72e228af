/** A cluster in memory with a pool of hosts, and the inventory controller running on it. */
import { createHash } from "node:crypto";

import { clusters, machines } from "../../../provider/capi/kinds.ts";
import { secrets } from "../../../provider/cluster/kinds.ts";
import type { LiveObject } from "../../../provider/cluster/objects.ts";
import { parseInventory } from "../../../provider/hosts/inventory.ts";
import type { Inventory } from "../../../provider/hosts/inventory.ts";
import { baremetalMachines, machineInventories, machineInventoryPools } from "../../../provider/hosts/kinds.ts";
import { bmcAnnotations } from "../../../provider/hosts/names.ts";
import { type BaremetalMachine, parseMachine } from "../../../provider/controller/inventory/machine.ts";
import { type PlanReading, readPlan } from "../../../provider/controller/inventory/plans.ts";
import { PoolReconciler } from "../../../provider/controller/inventory/pool-reconciler.ts";
import { BaremetalMachineReconciler } from "../../../provider/controller/inventory/reconciler.ts";
import { ReleaseReconciler } from "../../../provider/controller/inventory/release-reconciler.ts";
import { Controller, reconcileMetrics } from "../../../provider/controller/runtime/controller.ts";
import { Metrics } from "../../../provider/controller/runtime/metrics.ts";
import { settingsOf } from "../../../provider/controller/runtime/settings.ts";
import { InformerStores } from "../../../provider/controller/runtime/stores.ts";
import { FakeBmcs } from "../fakes/fake-bmcs.ts";
import { FakeCluster } from "../fakes/fake-cluster.ts";
import { ManualClock } from "../fakes/manual-clock.ts";
import { QuietLog } from "../fakes/quiet-log.ts";
import { joinV1beta4 } from "./bootstrap-data.ts";

export const namespace = "cpaas-system";
export const poolName = "edge-workers-pool";

function base64(text: string): string {
  return Buffer.from(text, "utf8").toString("base64");
}

interface RunningController {
  end(): Promise<void>;
}

export class World {
  readonly clock: ManualClock;
  readonly cluster: FakeCluster;
  readonly bmcs: FakeBmcs;
  readonly log = new QuietLog();
  readonly recorded: { name: string; reason: string }[] = [];
  settings: Record<string, string> = {};
  #controller: RunningController | undefined;

  /** `beside`: the world in which this one's controller runs as a second one. */
  constructor(beside?: World) {
    const clock = (this.clock = beside?.clock ?? new ManualClock());
    this.cluster = beside?.cluster ?? new FakeCluster({ now: () => clock.now() });
    this.bmcs = beside?.bmcs ?? new FakeBmcs(clock);
    if (beside !== undefined) return;
    this.cluster.seed(clusters, { metadata: { name: "edge", namespace }, spec: {} });
    for (const kind of [machines, baremetalMachines, machineInventories, machineInventoryPools]) this.cluster.serve(kind);
  }

  /** Registered hosts `inv-1` … `inv-<count>`, each with a BMC unless told otherwise, in one pool in that order. */
  hosts(count: number, options: { bmc?: boolean } = {}): void {
    const names = Array.from({ length: count }, (_, index) => `inv-${index + 1}`);
    for (const name of names) {
      const annotations = options.bmc === false ? {} : { [bmcAnnotations.address]: `https://${name}.bmc`, [bmcAnnotations.secret]: `${name}-bmc` };
      this.cluster.seed(machineInventories, {
        metadata: { name, namespace, annotations },
        spec: {},
        status: { conditions: [{ type: "Ready", status: "True" }], plan: { secretRef: { name, namespace } } },
      });
      this.cluster.seed(secrets, { metadata: { name, namespace }, data: { plan: base64("{}") } });
      this.cluster.seed(secrets, { metadata: { name: `${name}-bmc`, namespace }, data: { username: base64("admin"), password: base64("secret") } });
    }
    this.cluster.seed(machineInventoryPools, {
      metadata: { name: poolName, namespace },
      spec: { machineInventories: names.map((name, index) => ({ name, hostname: `edge-w${index + 1}` })) },
    });
  }

  /** A Machine with bootstrap data, and the BaremetalMachine that Cluster API makes for it. */
  machine(name: string, options: { bootstrap?: string | false } = {}): void {
    const dataSecretName = `${name}-bootstrap`;
    if (options.bootstrap !== false)
      this.cluster.seed(secrets, { metadata: { name: dataSecretName, namespace }, data: { value: base64(options.bootstrap ?? joinV1beta4) } });
    const machine = this.cluster.seed(machines, {
      metadata: { name, namespace, labels: { "cluster.x-k8s.io/cluster-name": "edge" } },
      spec: {
        clusterName: "edge",
        bootstrap: options.bootstrap === false ? {} : { dataSecretName },
        infrastructureRef: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "BaremetalMachine", name },
      },
    });
    this.cluster.seed(baremetalMachines, {
      metadata: {
        name,
        namespace,
        labels: { "cluster.x-k8s.io/cluster-name": "edge" },
        ownerReferences: [{ apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", name, uid: machine.metadata.uid, controller: true }],
      },
      spec: { machineInventoryPoolRef: { name: poolName } },
    });
  }

  uidOfMachine(name: string): string {
    return this.cluster.peek(machines, `${namespace}/${name}`)?.metadata.uid ?? "";
  }

  async deleteMachine(name: string): Promise<void> {
    await this.cluster.delete(baremetalMachines, { namespace, name });
  }

  get(name: string): BaremetalMachine | undefined {
    const object = this.cluster.peek(baremetalMachines, `${namespace}/${name}`);
    return object === undefined ? undefined : parseMachine(object);
  }

  live(name: string): LiveObject {
    const object = this.cluster.peek(baremetalMachines, `${namespace}/${name}`);
    if (object === undefined) throw new Error(`${name} does not exist`);
    return object;
  }

  /** `phase/reason`, or `gone`. */
  at(name: string): string {
    const machine = this.get(name);
    return machine === undefined ? "gone" : `${machine.phase ?? ""}/${machine.conditions.find(({ type }) => type === "Ready")?.reason ?? ""}`;
  }

  message(name: string): string {
    return this.get(name)?.conditions.find(({ type }) => type === "Ready")?.message ?? "";
  }

  inventory(name: string): Inventory {
    const object = this.cluster.peek(machineInventories, `${namespace}/${name}`);
    if (object === undefined) throw new Error(`${name} does not exist`);
    return parseInventory(object);
  }

  annotate(name: string, annotations: Record<string, string | undefined>): void {
    this.cluster.edit(machineInventories, `${namespace}/${name}`, ({ metadata }) => {
      const merged: Record<string, string> = { ...metadata.annotations };
      for (const [key, value] of Object.entries(annotations)) {
        if (value === undefined) Reflect.deleteProperty(merged, key);
        else merged[key] = value;
      }
      metadata.annotations = merged;
    });
  }

  plan(inventory: string): PlanReading {
    return readPlan(this.#secret(inventory));
  }

  data(secret: string): Record<string, string> {
    const data = this.#secret(secret)["data"];
    return typeof data === "object" && data !== null
      ? Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(String(value), "base64").toString("utf8")]))
      : {};
  }

  /** What the agent on the host does when it has carried the present plan out. */
  applyPlan(inventory: string): void {
    this.#report(inventory, "applied-checksum");
  }

  failPlan(inventory: string, output: string): void {
    this.#report(inventory, "failed-checksum", { "failed-output": base64(output) });
  }

  #report(inventory: string, key: string, more: Record<string, string> = {}): void {
    const checksum = createHash("sha256")
      .update(this.data(inventory)["plan"] ?? "")
      .digest("hex");
    this.cluster.edit(secrets, `${namespace}/${inventory}`, (secret) => {
      const data = secret["data"];
      secret["data"] = { ...(typeof data === "object" ? data : {}), [key]: base64(checksum), ...more };
    });
  }

  #secret(name: string): LiveObject {
    const secret = this.cluster.peek(secrets, `${namespace}/${name}`);
    if (secret === undefined) throw new Error(`Secret ${name} does not exist`);
    return secret;
  }

  async start(): Promise<void> {
    const { cluster, clock, bmcs, log } = this;
    const stores = new InformerStores({ cluster, namespaces: [namespace], clock, log });
    const parts = {
      cluster,
      stores,
      bmcs,
      clock,
      log,
      events: { record: (object: LiveObject, { reason }: { reason: string }) => void this.recorded.push({ name: object.metadata.name, reason }) },
      settings: {
        stopped: () => settingsOf(this.settings).stopped(),
        value: (key: string) => this.settings[key],
        number: (key: string, fallback: number, least?: number) => settingsOf(this.settings).number(key, fallback, least),
      },
      random: () => 0,
    };
    const metrics = reconcileMetrics(new Metrics());
    const controllers = [new BaremetalMachineReconciler(parts), new PoolReconciler(parts), new ReleaseReconciler(parts)].map(
      (reconciler) => new Controller({ reconciler, stores, clock, log, metrics }),
    );
    const lost = new AbortController();
    const views = new AbortController();
    const running = Promise.all([stores.run(views.signal), ...controllers.map(async (controller) => controller.run(lost.signal, lost.signal))]);
    this.#controller = {
      end: async () => {
        lost.abort();
        views.abort();
        await running;
      },
    };
    await clock.advance(0);
  }

  /** Ends the controller as a crash does: what it remembers is lost. */
  async end(): Promise<void> {
    await this.#controller?.end();
    this.#controller = undefined;
  }

  async advance(milliseconds: number): Promise<void> {
    // An API server is never silent for longer than that.
    for (let left = milliseconds; left > 0; left -= 60_000) {
      await this.clock.advance(Math.min(left, 60_000));
      this.cluster.bookmark();
    }
    await this.clock.advance(0);
  }

  /** Brings a machine to Running on the first free host. */
  async running(name: string, inventory: string): Promise<void> {
    this.machine(name);
    await this.advance(3_000);
    this.applyPlan(inventory);
    await this.advance(3_000);
  }
}
