/** One controller process put together: views, election, controllers, health. */
import { hostRemediations, metal3Remediations } from "../capi/kinds.ts";
import type { Clock } from "../clock.ts";
import type { Cluster } from "../cluster/cluster.ts";
import type { ResourceKind } from "../cluster/objects.ts";
import type { BmcAccess } from "../redfish/bmc.ts";
import type { Arguments } from "./arguments.ts";
import { PoolReconciler } from "./inventory/pool-reconciler.ts";
import { BaremetalMachineReconciler } from "./inventory/reconciler.ts";
import { ReleaseReconciler } from "./inventory/release-reconciler.ts";
import { KindOwnership } from "./kind-ownership.ts";
import { RemediationReconciler } from "./remediation/reconciler.ts";
import { Controller, reconcileMetrics } from "./runtime/controller.ts";
import { ClusterEvents } from "./runtime/events.ts";
import { type HealthReport, HealthServer } from "./runtime/health.ts";
import { LeaderElection } from "./runtime/lease.ts";
import type { JsonLog } from "./runtime/log.ts";
import { Metrics } from "./runtime/metrics.ts";
import type { Reconciler } from "./runtime/reconciler.ts";
import { PolledSettings } from "./runtime/settings.ts";
import { InformerStores } from "./runtime/stores.ts";

const LEASE_NAME = "pulumi-baremetal-controller";
const COMPONENT = "pulumi-baremetal-controller";
/** After the order to stop, what is under way may go on for that long; Kubernetes ends the process after 30 s. */
const GRACE_MS = 10_000;
const ELECTION_STALLED_MS = 60_000;
const RECONCILE_STALLED_MS = 15 * 60_000;

export interface ProcessParts {
  cluster: Cluster;
  bmcs: BmcAccess;
  clock: Clock;
  log: JsonLog;
  arguments: Arguments;
  /** Where health and metrics are served; any free port for 0. */
  healthPort: number;
}

interface SharedReconciler {
  kind: ResourceKind;
  reconciler: RemediationReconciler;
}

export class ControllerProcess {
  readonly #parts: ProcessParts;
  readonly #metrics = new Metrics();
  readonly #stores: InformerStores;
  readonly #settings: PolledSettings;
  readonly #events: ClusterEvents;
  readonly #election: LeaderElection;
  readonly #controllers: readonly Controller[];
  /** Controllers of kinds that another installation may have brought. */
  readonly #shared = new Map<Controller, SharedReconciler>();
  readonly #ownership: KindOwnership;
  readonly #remediations: readonly SharedReconciler[];
  readonly #health: HealthServer;

  constructor(parts: ProcessParts) {
    const { cluster, clock, log } = parts;
    const { controllers, namespaces, podName, podNamespace, settings } = parts.arguments;
    this.#parts = parts;
    this.#stores = new InformerStores({ cluster, namespaces, clock, log });
    this.#settings = new PolledSettings({
      cluster,
      key: settings,
      clock,
      log,
      changed: () => {
        for (const controller of this.#controllers) controller.wake();
      },
    });
    this.#events = new ClusterEvents({ cluster, clock, log, component: COMPONENT, instance: podName });
    this.#election = new LeaderElection({ cluster, key: { namespace: podNamespace, name: LEASE_NAME }, identity: podName, clock, log });
    this.#ownership = new KindOwnership({ cluster, clock, log });
    const counted = reconcileMetrics(this.#metrics);
    const controllerOf = (reconciler: Reconciler): Controller => new Controller({ reconciler, stores: this.#stores, clock, log, metrics: counted });
    this.#remediations = controllers.includes("remediation") ? this.#remediationReconcilers() : [];
    for (const shared of this.#remediations) this.#shared.set(controllerOf(shared.reconciler), shared);
    this.#controllers = [...this.#shared.keys(), ...(controllers.includes("inventory") ? this.#inventoryReconcilers().map(controllerOf) : [])];
    this.#registerGauges();
    this.#health = new HealthServer({ live: () => this.#live(), ready: () => this.#ready(), metrics: () => this.#metrics.text() });
  }

  /** Works until `stop`, then brings what is under way to its end and releases the Lease. Changes no host on the way out. */
  async run(stop: AbortSignal): Promise<void> {
    const { log, healthPort, clock } = this.#parts;
    const { listenAddress, controllers, namespaces } = this.#parts.arguments;
    const port = await this.#health.listen(listenAddress, healthPort);
    log.info("started", { controllers, namespaces, health: `${listenAddress}:${port}` });
    const viewing = new AbortController();
    const views = Promise.all([this.#stores.run(viewing.signal), this.#settings.run(viewing.signal)]);
    try {
      await this.#election.run(async (lost) => {
        const grace = new AbortController();
        const ended = new AbortController();
        stop.addEventListener(
          "abort",
          () =>
            void clock.sleep(GRACE_MS, ended.signal).then(
              () => grace.abort(),
              () => undefined,
            ),
          { once: true },
        );
        const cut = AbortSignal.any([lost, grace.signal]);
        await Promise.all(this.#controllers.map(async (controller) => this.#runController(controller, cut, stop)));
        ended.abort();
      }, stop);
    } finally {
      viewing.abort();
      await views;
      await this.#events.flush();
      await Promise.all(this.#remediations.map(async ({ reconciler }) => reconciler.close()));
      await this.#health.close();
    }
  }

  async #runController(controller: Controller, cut: AbortSignal, stop: AbortSignal): Promise<void> {
    const shared = this.#shared.get(controller);
    if (shared === undefined) return controller.run(cut, stop);
    const lead = async (halt: AbortSignal): Promise<void> => {
      // Whoever led, or owned the kind, meanwhile may have powered hosts.
      shared.reconciler.leads();
      await controller.run(cut, halt);
    };
    return this.#ownership.whileOurs(shared.kind, lead, AbortSignal.any([cut, stop]));
  }

  #remediationReconcilers(): SharedReconciler[] {
    const { cluster, bmcs, clock, log } = this.#parts;
    const { nodeName } = this.#parts.arguments;
    const common = {
      cluster,
      bmcs,
      clock,
      log,
      stores: this.#stores,
      events: this.#events,
      settings: this.#settings,
      nodeName: nodeName === "" ? undefined : nodeName,
    };
    return [metal3Remediations, hostRemediations].map((kind) => ({ kind, reconciler: new RemediationReconciler({ ...common, kind }) }));
  }

  #inventoryReconcilers(): Reconciler[] {
    const { cluster, bmcs, clock, log } = this.#parts;
    const parts = { cluster, bmcs, clock, log, stores: this.#stores, events: this.#events, settings: this.#settings };
    return [new BaremetalMachineReconciler(parts), new PoolReconciler(parts), new ReleaseReconciler(parts)];
  }

  #live(): HealthReport {
    const problems: string[] = [];
    if (this.#election.idleMs > ELECTION_STALLED_MS && !this.#election.leading) problems.push("the leader election stands still");
    for (const controller of this.#controllers) {
      if (controller.longestMs() > RECONCILE_STALLED_MS) problems.push(`a reconcile of ${controller.name} does not end`);
    }
    return { problems };
  }

  #ready(): HealthReport {
    const problems = this.#stores
      .all()
      .filter(({ informers }) => informers.some(({ state }) => state === "starting" || state === "broken"))
      .map(({ kind }) => `${kind.kind} objects cannot be listed and watched`);
    return {
      problems,
      notes: {
        leading: this.#election.leading,
        missingKinds: this.#stores.missing(),
        foreignKinds: this.#ownership.foreign(),
        stopped: this.#settings.stopped(),
      },
    };
  }

  #registerGauges(): void {
    this.#metrics.gauge("pulumi_baremetal_leader", "Whether this process holds the Lease.", () => [[{}, this.#election.leading ? 1 : 0]]);
    this.#metrics.gauge("pulumi_baremetal_kind_missing", "Kinds that are watched and that the API server does not serve.", () =>
      this.#stores.missing().map((kind) => [{ kind }, 1]),
    );
    this.#metrics.gauge("pulumi_baremetal_objects", "Objects in view by kind.", () =>
      this.#stores.all().map((store) => [{ kind: store.kind.kind }, store.list().length]),
    );
    this.#metrics.gauge("pulumi_baremetal_queue_length", "Keys that wait to be reconciled.", () =>
      this.#controllers.map((controller) => [{ controller: controller.name }, controller.waiting]),
    );
    this.#metrics.gauge("pulumi_baremetal_stopped", "Whether the stop switch is on, or the settings are not known.", () => [
      [{}, this.#settings.stopped() ? 1 : 0],
    ]);
    this.#metrics.gauge("process_resident_memory_bytes", "Resident memory.", () => [[{}, process.memoryUsage.rss()]]);
  }
}
