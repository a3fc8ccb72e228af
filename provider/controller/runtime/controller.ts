/** Runs one reconciler: what its stores see becomes keys, keys become reconciles, and only while this process leads. */
import type { Clock } from "../../clock.ts";
import { isClusterError, isTransient } from "../../cluster/errors.ts";
import { describeError, stackOf } from "./log.ts";
import type { Counter, Histogram, Metrics } from "./metrics.ts";
import { WorkQueue } from "./queue.ts";
import type { Log, Reconciler } from "./reconciler.ts";
import type { InformerStores } from "./stores.ts";

const SWEEP_INTERVAL_MS = 60_000;

export interface ReconcileMetrics {
  reconciles: Counter;
  seconds: Histogram;
}

/** What all controllers of a process count together. */
export function reconcileMetrics(metrics: Metrics): ReconcileMetrics {
  return {
    reconciles: metrics.counter("pulumi_baremetal_reconciles_total", "Reconciles by controller and result."),
    seconds: metrics.histogram("pulumi_baremetal_reconcile_seconds", "How long a reconcile took."),
  };
}

export interface ControllerOptions {
  reconciler: Reconciler;
  stores: InformerStores;
  clock: Clock;
  log: Log;
  metrics: ReconcileMetrics;
  /** Keys worked on at once; 8 by default. */
  workers?: number;
}

export class Controller {
  readonly name: string;
  readonly #options: ControllerOptions;
  readonly #running = new Map<string, number>();
  #queue: WorkQueue | undefined;

  constructor(options: ControllerOptions) {
    this.name = options.reconciler.name;
    this.#options = options;
    for (const watched of options.reconciler.watches) {
      options.stores.watch(watched.kind).subscribe((object) => {
        for (const key of watched.keys(object)) this.#queue?.add(key);
      });
    }
  }

  get waiting(): number {
    return this.#queue?.length ?? 0;
  }

  /** Milliseconds that the longest reconcile under way has taken so far. */
  longestMs(): number {
    const now = this.#options.clock.now();
    return Math.max(0, ...[...this.#running.values()].map((since) => now - since));
  }

  /** Looks at every key again, as after a change of the settings. */
  wake(): void {
    if (this.#queue !== undefined) this.#addAll(this.#queue);
  }

  /**
   * Works until either signal is aborted. Reconciles under way see only `lost`: on `stop` they come to their own end.
   */
  async run(lost: AbortSignal, stop: AbortSignal): Promise<void> {
    const { stores, clock, workers = 8 } = this.#options;
    const end = AbortSignal.any([lost, stop]);
    await Promise.race([stores.settled(), aborted(end)]);
    if (end.aborted) return;
    const queue = new WorkQueue({ clock });
    this.#queue = queue;
    end.addEventListener("abort", () => queue.stop(), { once: true });
    this.#addAll(queue);
    const sweeping = this.#sweep(queue, end);
    await Promise.all(Array.from({ length: workers }, async () => this.#work(queue, lost)));
    await sweeping;
    this.#queue = undefined;
  }

  #addAll(queue: WorkQueue): void {
    const { reconciler, stores } = this.#options;
    for (const watched of reconciler.watches) {
      for (const object of stores.of(watched.kind).list()) for (const key of watched.keys(object)) queue.add(key);
    }
    for (const key of reconciler.sweep?.() ?? []) queue.add(key);
  }

  async #sweep(queue: WorkQueue, signal: AbortSignal): Promise<void> {
    const { reconciler, clock } = this.#options;
    if (reconciler.sweep === undefined) return;
    // A stopped queue takes nothing.
    for (; !signal.aborted; await clock.sleep(SWEEP_INTERVAL_MS, signal).catch(() => undefined)) {
      for (const key of reconciler.sweep()) queue.add(key);
    }
  }

  async #work(queue: WorkQueue, signal: AbortSignal): Promise<void> {
    const { reconciler, clock, log, metrics } = this.#options;
    for (;;) {
      const key = await queue.next();
      if (key === undefined) return;
      const started = clock.now();
      this.#running.set(key, started);
      let result = "done";
      try {
        const { againAfterMs } = await reconciler.reconcile(key, signal);
        queue.done(key);
        if (againAfterMs !== undefined) queue.addAfter(key, againAfterMs);
      } catch (error) {
        result = signal.aborted ? "stopped" : isClusterError(error, "conflict") ? "conflict" : "failed";
        const inMs = queue.failed(key);
        if (result === "failed") {
          const unexpected = !isClusterError(error);
          const line = { controller: this.name, key, inMs, error: describeError(error), ...(unexpected ? { stack: stackOf(error) } : {}) };
          if (isTransient(error)) log.warn("reconcile failed", line);
          else log.error("reconcile failed", line);
        }
      } finally {
        this.#running.delete(key);
        metrics.reconciles.add({ controller: this.name, result });
        metrics.seconds.observe((clock.now() - started) / 1000, { controller: this.name });
      }
    }
  }
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return;
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
}
