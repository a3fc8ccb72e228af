/** Writes core/v1 Events: one object for what repeats, never in the way of the work that they tell of. */
import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { events } from "../../cluster/kinds.ts";
import type { LiveObject } from "../../cluster/objects.ts";
import type { EventRecorder, Log } from "./reconciler.ts";

const FOLD_MS = 10 * 60_000;
const MOST_FOLDED = 1_000;
const MOST_WAITING = 500;
const MOST_CHARACTERS = 1_000;

interface Folded {
  name: string;
  namespace: string;
  firstAt: number;
  count: number;
  created: boolean;
}

export class ClusterEvents implements EventRecorder {
  readonly #cluster: Cluster;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #component: string;
  readonly #instance: string;
  readonly #folded = new Map<string, Folded>();
  #waiting = 0;
  #tail: Promise<void> = Promise.resolve();
  #sequence = 0;

  constructor(parts: { cluster: Cluster; clock: Clock; log: Log; component: string; instance: string }) {
    this.#cluster = parts.cluster;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#component = parts.component;
    this.#instance = parts.instance;
  }

  record(object: LiveObject, event: { type: "Normal" | "Warning"; reason: string; message: string }): void {
    if (this.#waiting >= MOST_WAITING) return;
    this.#waiting++;
    this.#tail = this.#tail.then(async () => {
      try {
        await this.#write(object, event);
      } catch (error) {
        this.#log.warn("an event could not be written", { reason: event.reason, error });
      } finally {
        this.#waiting--;
      }
    });
  }

  /** Resolves when everything recorded so far is written or given up. */
  async flush(): Promise<void> {
    await this.#tail;
  }

  async #write(object: LiveObject, event: { type: string; reason: string; message: string }): Promise<void> {
    const now = this.#clock.now();
    const stamp = new Date(now).toISOString().replace(/\.\d+Z$/, "Z");
    const message = event.message.length > MOST_CHARACTERS ? `${event.message.slice(0, MOST_CHARACTERS - 1)}…` : event.message;
    const fold = JSON.stringify([object.metadata.uid, event.type, event.reason, message]);
    const found = this.#folded.get(fold);
    if (found?.created === true && now - found.firstAt < FOLD_MS) {
      found.count++;
      try {
        await this.#cluster.patch(events, { namespace: found.namespace, name: found.name }, "merge", { count: found.count, lastTimestamp: stamp });
        return;
      } catch (error) {
        // Events expire; write it anew.
        if (!isClusterError(error, "notFound")) throw error;
      }
    }
    const namespace = object.metadata.namespace ?? "default";
    const name = `${object.metadata.name}.${now.toString(16)}${(this.#sequence++).toString(16)}`;
    const folded: Folded = { name, namespace, firstAt: now, count: 1, created: false };
    this.#remember(fold, folded);
    await this.#cluster.create(events, {
      apiVersion: "v1",
      kind: "Event",
      metadata: { namespace, name },
      involvedObject: {
        apiVersion: object.apiVersion,
        kind: object.kind,
        ...(object.metadata.namespace === undefined ? {} : { namespace: object.metadata.namespace }),
        name: object.metadata.name,
        uid: object.metadata.uid,
        resourceVersion: object.metadata.resourceVersion,
      },
      type: event.type,
      reason: event.reason,
      message,
      source: { component: this.#component },
      reportingComponent: this.#component,
      reportingInstance: this.#instance,
      firstTimestamp: stamp,
      lastTimestamp: stamp,
      count: 1,
    });
    folded.created = true;
  }

  #remember(fold: string, folded: Folded): void {
    this.#folded.delete(fold);
    this.#folded.set(fold, folded);
    if (this.#folded.size <= MOST_FOLDED) return;
    const [oldest] = this.#folded.keys();
    if (oldest !== undefined) this.#folded.delete(oldest);
  }
}
