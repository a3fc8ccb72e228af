/** Kills the deployed controller before or after one of its writes, and looks from outside at how things end all the same. */
import assert from "node:assert/strict";

import { z } from "zod";

import { machineDeployments } from "../../provider/capi/kinds.ts";
import { nodes } from "../../provider/cluster/kinds.ts";
import { serviceAccountUser, writesBy } from "../testbed/audit.ts";
import type { Match } from "../testbed/fault-rules.ts";
import { CONTROLLER_NAMESPACE, setScene } from "../testbed/scene.ts";
import type { Scene } from "../testbed/scene.ts";
import { until } from "../testbed/wait.ts";

const CONTROLLER_USER = serviceAccountUser(CONTROLLER_NAMESPACE, "pulumi-baremetal-controller");
const CONTROLLER_AGENT = /^pulumi-baremetal-controller/;
const LABEL = "example.com/kept";
/** What comes by the clock, or tells of what was done, is not a step of it. */
const BY_THE_CLOCK = ["leases", "events"];

export interface KillPoint {
  /** Which API server the write goes to. */
  cluster: "management" | "workload";
  /** Counted from 1 over the writes of one story. */
  nth: number;
  when: "before" | "after";
}

export function nameOf({ cluster, nth, when }: KillPoint): string {
  return `${when} its write ${nth} to the ${cluster} cluster`;
}

/** How many writes a story takes when nobody is killed. */
export type WriteCounts = Record<KillPoint["cluster"], number>;

export function everyPoint(counts: WriteCounts): KillPoint[] {
  return (["management", "workload"] as const).flatMap((cluster) =>
    Array.from({ length: counts[cluster] }, (_, index) => index + 1).flatMap((nth) =>
      (["before", "after"] as const).map((when): KillPoint => ({ cluster, nth, when })),
    ),
  );
}

/** A sample that a seed repeats: the same points for the same counts. */
export function samplePoints(counts: WriteCounts, size: number, seed: number): KillPoint[] {
  const left = everyPoint(counts);
  const sample: KillPoint[] = [];
  let state = seed >>> 0;
  while (sample.length < size && left.length > 0) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    sample.push(...left.splice(state % left.length, 1));
  }
  return sample;
}

const annotated = z.object({ metadata: z.object({ labels: z.record(z.string(), z.string()), annotations: z.record(z.string(), z.string()) }) });

export class KillStage {
  readonly scene: Scene;
  readonly #dead: string[] = [];

  private constructor(scene: Scene) {
    this.scene = scene;
  }

  /** The quick start with one machine of two servers, everything the controller says passing through the fault proxies. */
  static async set(): Promise<KillStage> {
    const scene = await setScene({
      servers: 2,
      powerDelayMs: 300,
      behaviour: { bootMs: 300, planMs: 200 },
      controllerThroughProxy: true,
      bed: { nodeMonitorGraceSeconds: 4, workloadThroughProxy: true },
    });
    try {
      await scene.project.config({ replicas: 1, unhealthyAfter: "2s", waitTimeout: "1m" });
      const up = await scene.project.up();
      assert.equal(up.exitCode, 0, up.stdout + up.stderr);
    } catch (error) {
      scene.bed.keep();
      await scene.stop();
      throw error;
    }
    return new KillStage(scene);
  }

  #match(cluster: KillPoint["cluster"]): Match {
    return cluster === "management"
      ? { user: CONTROLLER_USER, only: "writes", exceptResources: BY_THE_CLOCK }
      : { userAgent: CONTROLLER_AGENT, only: "writes", exceptResources: BY_THE_CLOCK };
  }

  #written(): WriteCounts {
    const { management, workload } = this.scene.bed;
    return { management: management.proxy.count(this.#match("management")), workload: workload.proxy.count(this.#match("workload")) };
  }

  /** Runs a story to its end with nobody killed. */
  async count(story: () => Promise<void>): Promise<WriteCounts> {
    const before = this.#written();
    await story();
    const after = this.#written();
    return { management: after.management - before.management, workload: after.workload - before.workload };
  }

  /**
   * Runs a story during which the controller is killed once, and returns at which write. How often a waiting controller tells of its
   * progress differs from run to run: where a run ended before the wanted write came, the one before it is taken in another run.
   */
  async killAt(point: KillPoint, story: () => Promise<void>): Promise<KillPoint> {
    for (let { nth } = point; nth > 0; nth--) {
      if (await this.#ranInto({ ...point, nth }, story)) return { ...point, nth };
    }
    throw new Error("the story ended without any write at which the controller could die");
  }

  async #ranInto(point: KillPoint, story: () => Promise<void>): Promise<boolean> {
    const { bed, pods } = this.scene;
    const killed = this.#dead.length;
    const remove = bed[point.cluster].proxy.add({
      match: this.#match(point.cluster),
      nth: point.nth,
      fault: { kind: "cut", when: point.when },
      act: () => {
        const [pod] = pods.pods();
        assert.ok(pod);
        pods.kill(pod.name, "SIGKILL");
        this.#dead.push(pod.name);
      },
    });
    try {
      await story();
    } finally {
      remove();
    }
    return this.#dead.length === killed + 1;
  }

  /** The host of the only machine hangs, and is repaired. */
  readonly repair = async (): Promise<void> => {
    const { observe, bmcs, hosts, bed } = this.scene;
    const [machine] = await observe.machines();
    assert.ok(machine?.node);
    const name = machine.node;
    const server = (await observe.inventories()).find(({ owner }) => owner !== undefined)?.name;
    assert.ok(server);
    await bed.workload.cluster.patch(nodes, { name }, "merge", { metadata: { labels: { [LABEL]: "label" }, annotations: { [LABEL]: "annotation" } } });
    const before = (await observe.nodes()).find((node) => node.name === name);
    const journal = bmcs.bmc(server).journal().length;
    const began = Date.now();
    hosts.host(server).hang();
    await until(
      `${name} to be Ready after a new boot, its remediation gone`,
      async () => {
        const node = (await observe.nodes()).find((candidate) => candidate.name === name);
        return node?.ready === true && node.bootID !== before?.bootID && node.taints.length === 0 && (await observe.remediations()).length === 0;
      },
      { timeoutMs: 150_000, intervalMs: 250 },
    );
    const entries = bmcs.bmc(server).journal().slice(journal);
    assert.deepEqual(
      entries.flatMap((entry) => (entry.event === "power" ? [entry.power] : [])),
      ["Off", "On"],
      "the true power did not change once each way",
    );
    const off = entries.find((entry) => entry.event === "power" && entry.power === "Off");
    const fences = (await writesBy(bed.workload.auditLogPath, "kubernetes-admin", { resource: "nodes" })).filter(
      ({ time, userAgent }) => time >= began && CONTROLLER_AGENT.test(userAgent),
    );
    assert.ok(fences.length > 0, "the Node was never fenced");
    for (const { time } of fences) assert.ok(off !== undefined && time > off.at, "the Node was written to before its host was off");
    const node = (await observe.nodes()).find((candidate) => candidate.name === name);
    assert.equal(node?.uid, before?.uid, "the Node is another one");
    const { metadata } = annotated.parse(await bed.workload.cluster.get(nodes, { name }));
    assert.deepEqual([metadata.labels[LABEL], metadata.annotations[LABEL]], ["label", "annotation"]);
    const [still] = await observe.machines();
    assert.equal(still?.uid, machine.uid, "the Machine was replaced");
    const inventory = await observe.inventory(server);
    assert.deepEqual([inventory.held, inventory.unhealthy, inventory.state], [false, false, "Allocated"]);
  };

  /** A second machine comes and goes. */
  readonly machineLife = async (): Promise<void> => {
    const { observe, hosts, bed } = this.scene;
    const before = new Map(hosts.all.map((host) => [host.name, host.trueState().plans.length]));
    const [first] = await observe.machines();
    assert.ok(first);
    const replicas = async (wanted: number): Promise<unknown> =>
      bed.management.cluster.patch(machineDeployments, { namespace: bed.namespace, name: "edge-workers" }, "merge", { spec: { replicas: wanted } });
    await replicas(2);
    await until("two Ready Nodes", async () => (await observe.readyNodes()).length === 2, { timeoutMs: 120_000, intervalMs: 250 });
    const owned = (await observe.inventories()).filter(({ owner }) => owner !== undefined);
    assert.equal(new Set(owned.map(({ owner }) => owner)).size, 2, "two machines do not have an inventory each");
    await replicas(1);
    const [freed] = await until(
      "one inventory to be Available",
      async () => {
        const free = (await observe.inventories()).filter(({ state }) => state === "Available");
        return free.length === 1 && (await observe.machines()).length === 1 && (await observe.readyNodes()).length === 1 && free;
      },
      { timeoutMs: 120_000, intervalMs: 250 },
    );
    assert.deepEqual([freed?.owner, freed?.held, freed?.unhealthy, freed?.pool], [undefined, false, false, "edge-workers-pool"]);
    const server = owned.find(({ name }) => name === freed?.name)?.name;
    assert.ok(server);
    const cleans = hosts
      .host(server)
      .trueState()
      .plans.slice(before.get(server) ?? 0)
      .map(({ instructions }) => instructions.at(-1));
    assert.equal(cleans.at(-1), "clean", `${server} was freed without having been cleaned`);
  };
}
