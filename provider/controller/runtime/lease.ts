/**
 * Leader election over a coordination.k8s.io Lease. The holder's time is measured by its own running clock, never by comparing wall
 * clocks: a candidate takes over after it has seen the Lease unchanged for the whole lease time, and a holder stops acting well
 * before that time is over if it could not renew.
 */
import { z } from "zod";

import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { leases } from "../../cluster/kinds.ts";
import { keyOf, type LiveObject, type ObjectKey } from "../../cluster/objects.ts";
import type { Log } from "./reconciler.ts";

export interface LeaseTimes {
  /** How long a silent holder keeps the Lease. */
  leaseMs: number;
  /** A holder that could not renew for that long stops acting; the rest of the lease time is its margin. */
  renewDeadlineMs: number;
  /** Between two renewals. */
  renewIntervalMs: number;
  /** Between two looks of a candidate. */
  pollIntervalMs: number;
}

/** Fail-over after a crash takes at most lease and poll interval together, below 15 s. */
export const leaseTimes: LeaseTimes = { leaseMs: 12_000, renewDeadlineMs: 8_000, renewIntervalMs: 3_000, pollIntervalMs: 2_000 };

const schema = z.object({
  metadata: z.object({ resourceVersion: z.string() }),
  spec: z
    .object({
      holderIdentity: z.string().nullish(),
      leaseTransitions: z.number().nullish(),
      acquireTime: z.string().nullish(),
    })
    .optional(),
});

export interface LeaseOptions {
  cluster: Cluster;
  key: ObjectKey;
  /** Unique among all processes that may run at the same time. A process that starts again under its own name takes its Lease up at once. */
  identity: string;
  clock: Clock;
  log: Log;
  /** Milliseconds that run on whatever happens to the wall clock; `performance.now` by default. */
  elapsed?: () => number;
  times?: LeaseTimes;
}

interface Seen {
  resourceVersion: string;
  since: number;
}

export class LeaderElection {
  readonly #options: LeaseOptions;
  readonly #elapsed: () => number;
  readonly #times: LeaseTimes;
  #leading = false;
  #lastTurn: number;
  #seen: Seen | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#elapsed = options.elapsed ?? (() => performance.now());
    this.#times = options.times ?? leaseTimes;
    this.#lastTurn = this.#elapsed();
  }

  get leading(): boolean {
    return this.#leading;
  }

  /** Milliseconds since the election last did anything: a measure of whether this process is alive. */
  get idleMs(): number {
    return this.#elapsed() - this.#lastTurn;
  }

  /**
   * Competes until `stop` is aborted. `lead` is called each time the Lease is won and is to return soon after `stop` or its own signal,
   * which is aborted when the Lease is lost. On `stop` the Lease is released only after `lead` has returned, so that a successor never
   * acts beside it.
   */
  async run(lead: (lost: AbortSignal) => Promise<void>, stop: AbortSignal): Promise<void> {
    while (!stop.aborted) {
      this.#lastTurn = this.#elapsed();
      const asked = this.#elapsed();
      const held = await this.#attempt(stop, this.#times.pollIntervalMs * 2);
      if (held !== undefined) await this.#hold(held, asked, lead);
      else await this.#options.clock.sleep(this.#times.pollIntervalMs, stop).catch(() => undefined);
    }
  }

  async #hold(first: LiveObject, asked: number, lead: (lost: AbortSignal) => Promise<void>): Promise<void> {
    const { log, identity, clock } = this.#options;
    const lost = new AbortController();
    let deadline = this.#armed(asked, lost);
    const over = new AbortController();
    this.#leading = true;
    log.info("leading", { identity });
    const work = lead(lost.signal).finally(() => over.abort());
    let lease = first;
    // Renewing goes on while the work comes to its end after `stop`: nobody else may act meanwhile.
    while (!over.signal.aborted && !lost.signal.aborted) {
      const ended = AbortSignal.any([over.signal, lost.signal]);
      await clock.sleep(this.#times.renewIntervalMs, ended).catch(() => undefined);
      if (ended.aborted) break;
      this.#lastTurn = this.#elapsed();
      const again = this.#elapsed();
      const renewed = await this.#renew(lease, ended);
      if (renewed === "taken") lost.abort(new Error("the Lease was taken by another"));
      if (typeof renewed === "string") continue;
      lease = renewed;
      deadline.abort();
      deadline = this.#armed(again, lost);
    }
    try {
      await work;
    } finally {
      this.#leading = false;
      deadline.abort();
      log.info("not leading any more", { identity, lost: lost.signal.aborted });
    }
    if (!lost.signal.aborted) await this.#release(lease);
  }

  /** Aborts `lost` when the renewal asked for at that time is too long ago. */
  #armed(asked: number, lost: AbortController): AbortController {
    const disarm = new AbortController();
    const left = Math.max(0, this.#times.renewDeadlineMs - (this.#elapsed() - asked));
    this.#options.clock.sleep(left, disarm.signal).then(
      () => lost.abort(new Error("the Lease could not be renewed in time")),
      () => undefined,
    );
    return disarm;
  }

  /** One look at the Lease; takes it where it is free, ours, or has been silent for the whole lease time. */
  async #attempt(signal: AbortSignal, timeoutMs: number): Promise<LiveObject | undefined> {
    const { cluster, key, identity, log } = this.#options;
    try {
      let lease: LiveObject;
      try {
        lease = await cluster.get(leases, key, { signal, timeoutMs });
      } catch (error) {
        if (!isClusterError(error, "notFound")) throw error;
        return await cluster.create(
          leases,
          { apiVersion: "coordination.k8s.io/v1", kind: "Lease", metadata: { ...key }, spec: this.#spec(0, undefined) },
          { signal, timeoutMs },
        );
      }
      const { metadata, spec } = schema.parse(lease);
      const holder = spec?.holderIdentity ?? "";
      if (holder !== "" && holder !== identity) {
        if (this.#seen?.resourceVersion !== metadata.resourceVersion) this.#seen = { resourceVersion: metadata.resourceVersion, since: this.#elapsed() };
        if (this.#elapsed() - this.#seen.since < this.#times.leaseMs) return undefined;
      }
      const transitions = (spec?.leaseTransitions ?? 0) + (holder === identity ? 0 : 1);
      return await cluster.replace(leases, { ...lease, spec: this.#spec(transitions, undefined) }, { signal, timeoutMs });
    } catch (error) {
      if (!signal.aborted && !isClusterError(error, "conflict", "alreadyExists"))
        log.warn("the Lease cannot be read or taken", { lease: keyOf({ metadata: key }), error });
      return undefined;
    }
  }

  async #renew(lease: LiveObject, signal: AbortSignal): Promise<LiveObject | "taken" | "failed"> {
    const { cluster, key, identity, log } = this.#options;
    const timeoutMs = this.#times.renewIntervalMs;
    const { spec } = schema.parse(lease);
    try {
      return await cluster.replace(leases, { ...lease, spec: this.#spec(spec?.leaseTransitions ?? 0, spec?.acquireTime ?? undefined) }, { signal, timeoutMs });
    } catch (error) {
      if (signal.aborted) return "failed";
      if (!isClusterError(error, "conflict")) {
        log.warn("the Lease could not be renewed", { lease: keyOf({ metadata: key }), error });
        return "failed";
      }
    }
    // An earlier renewal may have gone through although its answer was lost.
    try {
      const current = await cluster.get(leases, key, { signal, timeoutMs });
      if (schema.parse(current).spec?.holderIdentity !== identity) return "taken";
      return await cluster.replace(
        leases,
        { ...current, spec: this.#spec(spec?.leaseTransitions ?? 0, spec?.acquireTime ?? undefined) },
        { signal, timeoutMs },
      );
    } catch {
      return "failed";
    }
  }

  /** Lets a successor start at once. Should it fail, the successor waits for the lease time. */
  async #release(lease: LiveObject): Promise<void> {
    const { cluster, log, identity } = this.#options;
    try {
      const transitions = schema.parse(lease).spec?.leaseTransitions ?? 0;
      await cluster.replace(
        leases,
        { ...lease, spec: { ...this.#spec(transitions, undefined), holderIdentity: "" } },
        { timeoutMs: this.#times.renewIntervalMs },
      );
      log.info("the Lease is released", { identity });
    } catch (error) {
      log.warn("the Lease could not be released", { error });
    }
  }

  #spec(leaseTransitions: number, acquireTime: string | undefined): Record<string, unknown> {
    const now = new Date(this.#options.clock.now()).toISOString().replace("Z", "000Z");
    return {
      holderIdentity: this.#options.identity,
      leaseDurationSeconds: Math.ceil(this.#times.leaseMs / 1000),
      acquireTime: acquireTime ?? now,
      renewTime: now,
      leaseTransitions,
    };
  }
}
