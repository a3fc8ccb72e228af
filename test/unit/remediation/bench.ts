/** One Machine on one host, both clusters in memory, and the reconciler called whenever it wants to be. */
import { clusters, hostRemediations, machines } from "../../../provider/capi/kinds.ts";
import { nodes, secrets } from "../../../provider/cluster/kinds.ts";
import type { LiveObject, ResourceKind } from "../../../provider/cluster/objects.ts";
import { RemediationReconciler } from "../../../provider/controller/remediation/reconciler.ts";
import { parseStatus, REMEDIATION_FINALIZER, taintsOf } from "../../../provider/controller/remediation/views.ts";
import type { RemediationStatus } from "../../../provider/controller/remediation/status.ts";
import { settingsOf } from "../../../provider/controller/runtime/settings.ts";
import { baremetalMachines, machineInventories } from "../../../provider/hosts/kinds.ts";
import { allocationAnnotations, bmcAnnotations } from "../../../provider/hosts/names.ts";
import { type HoldReading, readHold } from "../../../provider/hosts/power-hold.ts";
import { type FakeBmc, FakeBmcs } from "../fakes/fake-bmcs.ts";
import { FakeCluster, type FakeRequest } from "../fakes/fake-cluster.ts";
import { ManualClock } from "../fakes/manual-clock.ts";
import { QuietLog } from "../fakes/quiet-log.ts";

export const namespace = "cpaas-system";
export const machineName = "edge-workers-abcde";
export const key = `${namespace}/${machineName}`;
export const hostKey = `${namespace}/rack1-07`;
export const nodeName = "edge-w1";
export const PASSWORD = "correct horse battery staple";

const base64 = (text: string): string => Buffer.from(text, "utf8").toString("base64");

export const strategy = {
  type: "Reboot",
  retryLimit: 1,
  timeoutSeconds: 100,
  powerOffTimeoutSeconds: 20,
  drainTimeoutSeconds: 20,
  powerOnTimeoutSeconds: 20,
  offConfirmationSeconds: 2,
  drainConfirmationSeconds: 3,
};

export class Bench {
  readonly clock = new ManualClock();
  readonly management = new FakeCluster({ now: () => this.clock.now() });
  readonly workload = new FakeCluster({ now: () => this.clock.now() });
  readonly bmcs = new FakeBmcs(this.clock);
  readonly log = new QuietLog();
  readonly events: string[] = [];
  settings: Record<string, string> = {};
  fresh = true;
  /** Objects that the watch has not brought yet. */
  unseen: (object: LiveObject) => boolean = () => false;
  controllerNode: string | undefined = "another-node";
  /** Every write and power action in order: `patch nodes edge-w1`, `ForceOff`. */
  readonly deeds: string[] = [];
  /** Called after each reconcile, to let the world go on. */
  after: () => void = () => undefined;
  reconciler: RemediationReconciler;

  constructor() {
    const { management, workload } = this;
    management.seed(clusters, { metadata: { name: "edge", namespace }, spec: {} });
    management.seed(secrets, { metadata: { name: "edge-kubeconfig", namespace }, data: { value: base64("the kubeconfig") } });
    management.seed(secrets, { metadata: { name: "rack1-07-bmc", namespace }, data: { username: base64("admin"), password: base64(PASSWORD) } });
    const machine = management.seed(machines, {
      metadata: { name: machineName, namespace },
      spec: {
        clusterName: "edge",
        providerID: "baremetal:///rack1-07",
        infrastructureRef: { apiGroup: "infrastructure.cluster.x-k8s.io", kind: "BaremetalMachine", name: machineName },
      },
      status: {
        nodeRef: { name: nodeName },
        conditions: [{ type: "HealthCheckSucceeded", status: "False", reason: "UnhealthyNode", message: "", lastTransitionTime: "2026-01-01T00:00:00Z" }],
      },
    });
    const host = management.seed(machineInventories, {
      metadata: { name: "rack1-07", namespace },
      spec: {},
      status: { conditions: [{ type: "Ready", status: "True" }] },
    });
    const infrastructure = management.seed(baremetalMachines, {
      metadata: {
        name: machineName,
        namespace,
        ownerReferences: [{ apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", name: machineName, uid: machine.metadata.uid }],
      },
      spec: {},
      status: { phase: "Running", machineInventoryRef: { name: "rack1-07", uid: host.metadata.uid } },
    });
    management.edit(machineInventories, hostKey, (object) => {
      object.metadata.annotations = {
        [bmcAnnotations.address]: "https://rack1-07.bmc",
        [bmcAnnotations.secret]: "rack1-07-bmc",
        [allocationAnnotations.ownerKind]: "BaremetalMachine",
        [allocationAnnotations.ownerNamespace]: namespace,
        [allocationAnnotations.ownerName]: machineName,
        [allocationAnnotations.ownerUid]: infrastructure.metadata.uid,
      };
    });
    workload.seed(nodes, {
      metadata: { name: nodeName, labels: { rack: "1", zone: "a" }, annotations: { note: "kept" } },
      spec: { providerID: "baremetal:///rack1-07", taints: [{ key: "node.kubernetes.io/unreachable", effect: "NoExecute" }] },
      status: nodeStatus("boot-1", "Unknown", this.clock.now()),
    });
    management.before = (request) => this.#note("", request);
    workload.before = (request) => this.#note("workload ", request);
    this.reconciler = this.#start();
  }

  get bmc(): FakeBmc {
    return this.bmcs.at("https://rack1-07.bmc");
  }

  #note(prefix: string, request: FakeRequest): void {
    if (request.write)
      this.deeds.push(`${prefix}${request.verb} ${request.resource.split(".")[0] ?? ""}${request.subresource === undefined ? "" : `/${request.subresource}`}`);
  }

  #start(): RemediationReconciler {
    const { management, bmcs, clock, log } = this;
    const reconciler = new RemediationReconciler({
      kind: hostRemediations,
      cluster: management,
      stores: {
        of: (kind: ResourceKind) => ({
          get: (name: string) => {
            const object = management.peek(kind, name);
            return object === undefined || this.unseen(object) ? undefined : object;
          },
          list: () => management.all(kind).filter((object) => !this.unseen(object)),
          fresh: () => this.fresh,
        }),
      },
      bmcs,
      clock,
      log,
      events: { record: (object, { reason }) => void this.events.push(`${object.kind} ${reason}`) },
      settings: {
        stopped: () => settingsOf(this.settings).stopped(),
        value: (name) => settingsOf(this.settings).value(name),
        number: (name, fallback) => settingsOf(this.settings).number(name, fallback),
      },
      nodeName: this.controllerNode,
      openKubeconfig: () => Promise.resolve(this.workload),
    });
    // What the informers tell at the start.
    for (const watched of reconciler.watches) for (const object of management.all(watched.kind)) watched.keys(object);
    return reconciler;
  }

  /** Another process takes over, without the memory of the one before. */
  restart(): void {
    this.reconciler = this.#start();
  }

  remediate(spec: object = { strategy }): LiveObject {
    const machine = this.object(machines, key);
    return this.management.seed(hostRemediations, {
      metadata: {
        name: machineName,
        namespace,
        generation: 1,
        labels: { "cluster.x-k8s.io/cluster-name": "edge" },
        ownerReferences: [{ apiVersion: "cluster.x-k8s.io/v1beta2", kind: "Machine", name: machineName, uid: machine.metadata.uid }],
      },
      spec,
    });
  }

  object(kind: ResourceKind, name: string): LiveObject {
    const found = this.management.peek(kind, name);
    if (found === undefined) throw new Error(`${kind.kind} ${name} does not exist`);
    return found;
  }

  get status(): RemediationStatus {
    return parseStatus(this.object(hostRemediations, key));
  }

  get exists(): boolean {
    return this.management.peek(hostRemediations, key) !== undefined;
  }

  get finalizer(): boolean {
    return this.object(hostRemediations, key).metadata.finalizers?.includes(REMEDIATION_FINALIZER) ?? false;
  }

  get reason(): string {
    return this.status.conditions?.find(({ type }) => type === "Progressing")?.reason ?? "";
  }

  condition(type: string): string | undefined {
    const found = this.status.conditions?.find((candidate) => candidate.type === type);
    return found === undefined ? undefined : `${found.status}/${found.reason}`;
  }

  get hold(): HoldReading {
    return readHold(this.object(machineInventories, hostKey).metadata.annotations);
  }

  get node(): LiveObject | undefined {
    return this.workload.peek(nodes, nodeName);
  }

  get taints(): string[] {
    const { node } = this;
    return node === undefined ? [] : taintsOf(node).map(({ key: name, value }) => (value === undefined ? name : `${name}=${value}`));
  }

  boots(bootID: string, ready = "True"): void {
    this.workload.edit(nodes, nodeName, (object) => {
      object["status"] = nodeStatus(bootID, ready, this.clock.now());
    });
  }

  /** One reconcile; the time until it wants another. */
  async once(): Promise<number> {
    const actions = this.bmc.actions.length;
    const { againAfterMs = 30_000 } = await this.reconciler.reconcile(key, new AbortController().signal);
    for (const { action } of this.bmc.actions.slice(actions)) this.deeds.push(action);
    return againAfterMs;
  }

  /** Reconciles as it asks to be until `done`, for at most so many milliseconds. */
  async until(done: () => boolean, withinMs = 300_000): Promise<void> {
    const end = this.clock.now() + withinMs;
    while (!done()) {
      if (this.clock.now() > end)
        throw new Error(`not within ${withinMs} ms; phase ${this.exists ? (this.status.phase ?? "none") : "gone"}, ${this.exists ? this.reason : ""}`);
      const again = await this.once();
      this.after();
      this.clock.jump(again);
    }
  }

  async for(milliseconds: number): Promise<void> {
    const end = this.clock.now() + milliseconds;
    while (this.clock.now() < end) {
      const again = await this.once();
      this.after();
      this.clock.jump(Math.min(again, 5_000));
    }
  }
}

/** What lies at a path of an object whose shape nobody declared. */
export function at(value: unknown, ...path: string[]): unknown {
  let found = value;
  for (const part of path) found = typeof found === "object" && found !== null ? Reflect.get(found, part) : undefined;
  return found;
}

/** Sets an annotation, or takes it away. */
export function annotate(object: LiveObject, name: string, value: string | undefined): void {
  const annotations = { ...object.metadata.annotations };
  if (value === undefined) Reflect.deleteProperty(annotations, name);
  else annotations[name] = value;
  object.metadata.annotations = annotations;
}

export function nodeStatus(bootID: string, ready: string, at: number): object {
  return { nodeInfo: { bootID, kubeletVersion: "v1.37.2" }, conditions: [{ type: "Ready", status: ready, lastHeartbeatTime: new Date(at).toISOString() }] };
}
