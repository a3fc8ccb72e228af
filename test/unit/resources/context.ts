/** A `VerbContext` over a cluster in memory and a clock that the test moves. */
import type { Cluster } from "../../../provider/cluster/cluster.ts";
import type { ResourceKind } from "../../../provider/cluster/objects.ts";
import type { Bmc, BmcAccess, BmcTarget } from "../../../provider/redfish/bmc.ts";
import type { VerbContext } from "../../../provider/resources/lifecycle.ts";
import { ManualClock, settle } from "../fakes/manual-clock.ts";

export interface TestContext extends VerbContext {
  readonly clock: ManualClock;
  /** Everything reported, each line with its kind in front. */
  readonly lines: string[];
  abort(reason: Error): void;
}

export class NoBmcs implements BmcAccess {
  bmc(target: BmcTarget): Bmc {
    throw new Error(`no BMC was expected to be asked, but ${target.address} was`);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

export function contextFor(cluster: Cluster | (() => Promise<Cluster>), bmcs: BmcAccess = new NoBmcs()): TestContext {
  const lines: string[] = [];
  const abort = new AbortController();
  const seen = new Set<string>();
  return {
    cluster: typeof cluster === "function" ? cluster : () => Promise.resolve(cluster),
    bmcs,
    clock: new ManualClock(),
    signal: abort.signal,
    report: {
      status: (line) => {
        if (!seen.has(line)) lines.push(`status: ${line}`);
        seen.add(line);
      },
      info: (line) => lines.push(`info: ${line}`),
      warn: (line) => lines.push(`warn: ${line}`),
    },
    defaultNamespace: "cpaas-system",
    lines,
    abort: (reason) => abort.abort(reason),
  };
}

/** Whether each apply of the kind took over fields that others have set, in order. */
export function watchForce(cluster: Cluster, watched: ResourceKind): boolean[] {
  const forced: boolean[] = [];
  const apply = cluster.apply.bind(cluster);
  cluster.apply = (kind, object, options) => {
    if (kind.plural === watched.plural) forced.push(options.force === true);
    return apply(kind, object, options);
  };
  return forced;
}

/** Moves the clock second by second until the work is done; what it throws is thrown. */
export async function run<T>(
  context: TestContext,
  work: Promise<T>,
  everySecond: () => void | Promise<void> = () => undefined,
  limitSeconds = 7200,
): Promise<T> {
  const state = { done: false };
  const finished = work.finally(() => {
    state.done = true;
  });
  finished.catch(() => undefined);
  for (let second = 0; second < limitSeconds; second++) {
    await settle();
    if (state.done) return finished;
    await everySecond();
    await context.clock.advance(1_000);
  }
  throw new Error(`not finished after ${limitSeconds} seconds`);
}
