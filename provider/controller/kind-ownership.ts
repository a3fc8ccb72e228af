/** Whose a kind is: where another controller's installation brought the CustomResourceDefinition, that controller reconciles the kind. */
import { z } from "zod";

import type { Clock } from "../clock.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { isClusterError } from "../cluster/errors.ts";
import { customResourceDefinitions } from "../cluster/kinds.ts";
import { qualifiedName, type ResourceKind } from "../cluster/objects.ts";
import { MANAGED_BY, MANAGED_BY_LABEL } from "../hosts/names.ts";
import type { Log } from "./runtime/reconciler.ts";

const LOOK_AGAIN_MS = 30_000;

const schema = z.object({ metadata: z.object({ labels: z.record(z.string(), z.string()).optional() }) });

export class KindOwnership {
  readonly #cluster: Cluster;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #foreign = new Set<string>();

  constructor(parts: { cluster: Cluster; clock: Clock; log: Log }) {
    this.#cluster = parts.cluster;
    this.#clock = parts.clock;
    this.#log = parts.log;
  }

  /** Qualified names of the kinds that are left to another controller. */
  foreign(): readonly string[] {
    return [...this.#foreign];
  }

  /** Runs `work` while the kind is ours or not there yet, until `end`; its signal is aborted when that changes. */
  async whileOurs(kind: ResourceKind, work: (halt: AbortSignal) => Promise<void>, end: AbortSignal): Promise<void> {
    let running: { halt: AbortController; done: Promise<void> } | undefined;
    while (!end.aborted) {
      const ours = await this.#isOurs(kind, end);
      if (ours === true && running === undefined) {
        const halt = new AbortController();
        running = { halt, done: work(AbortSignal.any([halt.signal, end])) };
      } else if (ours === false && running !== undefined) {
        running.halt.abort();
        await running.done;
        running = undefined;
      }
      await this.#clock.sleep(LOOK_AGAIN_MS, end).catch(() => undefined);
    }
    await running?.done;
  }

  /** Undefined where that cannot be told now. */
  async #isOurs(kind: ResourceKind, signal: AbortSignal): Promise<boolean | undefined> {
    const name = qualifiedName(kind);
    let ours: boolean;
    try {
      const { labels } = schema.parse(await this.#cluster.get(customResourceDefinitions, { name }, { signal })).metadata;
      ours = labels?.[MANAGED_BY_LABEL] === MANAGED_BY;
    } catch (error) {
      if (!isClusterError(error, "notFound")) {
        if (!signal.aborted) this.#log.warn("it cannot be told whose this kind is", { kind: name, error });
        return undefined;
      }
      ours = true;
    }
    if (!ours && !this.#foreign.has(name)) this.#log.warn("another controller brought this kind; it is left to that one", { kind: name });
    if (ours) this.#foreign.delete(name);
    else this.#foreign.add(name);
    return ours;
  }
}
