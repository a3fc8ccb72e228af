/** The steps of the demo. Each acts as a user would and then looks at what is true: cluster objects, BMC journal, the servers themselves. */
import assert from "node:assert/strict";

import { machineDeployments } from "../../provider/capi/kinds.ts";
import { machineInventories, machineInventoryPools } from "../../provider/hosts/kinds.ts";
import { MANAGED_BY, MANAGED_BY_LABEL, RELEASE_ANNOTATION } from "../../provider/hosts/names.ts";
import type { CommandResult, RunOptions, RunResult } from "../e2e/pulumi-cli.ts";
import { CONTROLLER_NAMESPACE, serverName, setScene } from "../testbed/scene.ts";
import type { Scene } from "../testbed/scene.ts";
import { until } from "../testbed/wait.ts";
import type { Story } from "./story.ts";

export interface DemoOptions {
  controllerReplicas: number;
  /** Lets the host of the first repair never power on again. */
  leaveFault: boolean;
  /** Done once the Pulumi CLI and its plugins are built. */
  pulumi: Promise<void>;
}

const POOL = ["edge-w1", "edge-w2", "edge-w3", "edge-w4", "edge-w5", "edge-w6"];
const MINUTE_MS = 60_000;

class Demo {
  readonly scene: Scene;
  readonly story: Story;

  constructor(scene: Scene, story: Story) {
    this.scene = scene;
    this.story = story;
  }

  async #pulumi(command: "preview" | "up" | "destroy", options: RunOptions = {}): Promise<RunResult> {
    this.story.tell(`$ pulumi ${command}`);
    const result = await this.scene.project[command](options);
    this.story.output(shown(result));
    return result;
  }

  async #preview(): Promise<RunResult> {
    return this.#pulumi("preview");
  }

  async #up(): Promise<RunResult> {
    const result = await this.#pulumi("up");
    assert.equal(result.exitCode, 0, "pulumi up failed, see its output above");
    return result;
  }

  async #nothingLeftToDo(): Promise<void> {
    const again = await this.scene.project.preview();
    assert.deepEqual([again.exitCode, again.changes], [0, []], `a second preview is not empty:\n${again.stdout}`);
    this.story.sure("a second preview is empty");
  }

  async #readyNodes(expected: string[], timeoutMs = MINUTE_MS): Promise<void> {
    const wanted = [...expected].sort().join(", ");
    let seen = "";
    await until(`Ready Nodes ${wanted}`, async () => (seen = (await this.scene.observe.readyNodes()).join(", ")) === wanted, { timeoutMs }).catch(
      (error: unknown) => {
        throw new Error(`${error instanceof Error ? error.message : String(error)}; Ready are: ${seen || "none"}`);
      },
    );
    this.story.sure(`Ready: ${wanted}`);
  }

  #powerActions(server: string, since: number): string[] {
    return this.scene.bmcs
      .bmc(server)
      .journal()
      .slice(since)
      .flatMap((entry) => (entry.event === "power" ? [`→ ${entry.power}`] : [entry.resetType ?? "nothing"]));
  }

  async create(): Promise<void> {
    await this.#up();
    await this.#readyNodes(POOL.slice(0, 3));
    await this.#nothingLeftToDo();
  }

  async previewScaleUp(): Promise<void> {
    await this.scene.project.config({ replicas: 5 });
    const { exitCode, messages } = await this.#preview();
    assert.equal(exitCode, 0);
    const text = messages.join("\n");
    for (const server of ["rack1-04", "rack1-05"]) assert.ok(text.includes(server), `the preview does not name ${server}`);
    assert.ok(!text.includes("rack1-06"), "the preview names a host too many");
    this.story.sure("the preview names rack1-04 and rack1-05, the next two of the pool");
  }

  async refuseTooMany(): Promise<void> {
    await this.scene.project.config({ replicas: 7 });
    const { exitCode, stdout, stderr, messages } = await this.#preview();
    assert.notEqual(exitCode, 0, "a scale-up beyond the pool was not refused");
    const text = [stdout, stderr, ...messages].join("\n");
    assert.ok(text.includes("7 machines need 4 more hosts, but pool edge-workers-pool has 3"), "the refusal does not say what is missing");
    assert.match(text, /: 1 is missing\. The others cannot be taken: rack1-01 is in use by machine \S+; rack1-02 is in use by machine \S+; rack1-03 is in use/);
    this.story.sure("refused before anything was written; it says how many are missing and why no other host counts");
  }

  async scaleToFour(): Promise<void> {
    await this.scene.project.config({ replicas: 4 });
    await this.#up();
    await this.#readyNodes(POOL.slice(0, 4));
    await this.#nothingLeftToDo();
  }

  async removeNamed(): Promise<void> {
    const before = new Map((await this.scene.observe.machines()).map(({ node, uid }) => [node, uid]));
    const { pool } = await this.scene.observe.inventory("rack1-02");
    await this.scene.project.config({ replicas: 3, removeMachines: ["edge-w2"] });
    await this.#preview();
    await this.#up();
    await this.#readyNodes(["edge-w1", "edge-w3", "edge-w4"]);
    const after = new Map((await this.scene.observe.machines()).map(({ node, uid }) => [node, uid]));
    before.delete("edge-w2");
    assert.deepEqual(after, before, "other machines than the named one changed");
    const inventory = await until("rack1-02 to be Available", async () => {
      const seen = await this.scene.observe.inventory("rack1-02");
      return seen.state === "Available" && seen;
    });
    assert.deepEqual([inventory.pool, inventory.owner], [pool, undefined]);
    this.story.sure(`exactly edge-w2 went; rack1-02 is Available and still belongs to ${pool ?? "no pool"}`);
    await this.scene.project.removeConfig("removeMachines");
    await this.#nothingLeftToDo();
  }

  async repairHungHost(leaveFault: boolean): Promise<void> {
    const { observe, hosts, bmcs } = this.scene;
    const server = "rack1-01";
    const journal = bmcs.bmc(server).journal().length;
    const before = (await observe.nodes()).find(({ name }) => name === "edge-w1");
    assert.ok(before);
    if (leaveFault) await bmcs.bmc(server).setPower({ neverOn: true });
    hosts.host(server).hang();
    this.story.tell(`${server} hangs`);
    await until("its remediation", async () => (await observe.remediations()).length > 0, { timeoutMs: MINUTE_MS });
    this.story.tell("the MachineHealthCheck asked for a remediation");
    await until(
      "edge-w1 to be Ready after a new boot",
      async () => {
        const node = (await observe.nodes()).find(({ name }) => name === "edge-w1");
        return node?.ready === true && node.bootID !== before.bootID && node.taints.length === 0;
      },
      { timeoutMs: 2 * MINUTE_MS },
    );
    assert.deepEqual(this.#powerActions(server, journal), ["ForceOff", "→ Off", "On", "→ On"]);
    this.story.sure("powered off once, on once, one change of the true power each; edge-w1 is Ready with a new boot");
    await until("the remediation to be over", async () => (await observe.remediations()).length === 0, { timeoutMs: MINUTE_MS });
  }

  async replaceDeadHost(): Promise<void> {
    const { observe, hosts, bmcs } = this.scene;
    const server = "rack1-03";
    const machine = await observe.machineOf("edge-w3");
    const journal = bmcs.bmc(server).journal().length;
    await bmcs.bmc(server).setPower({ neverOn: true });
    hosts.host(server).hang();
    this.story.tell(`${server} hangs, and will never power on again`);
    const replacement = "edge-w2";
    await this.#readyNodes(["edge-w1", replacement, "edge-w4"], 5 * MINUTE_MS);
    const inventory = await observe.inventory(server);
    assert.deepEqual([inventory.state, inventory.unhealthy, inventory.owner], ["Quarantined", true, undefined]);
    assert.ok(!(await observe.machines()).some(({ uid }) => uid === machine.uid), "the old Machine is still there");
    assert.equal(hosts.host(server).trueState().power, "Off");
    const offs = this.#powerActions(server, journal).filter((action) => action === "→ Off").length;
    assert.equal(offs, 1, "its power went off more than once");
    this.story.sure(`${server} is proven off and Quarantined; the pool's first free host, rack1-02, replaced it as ${replacement}`);
  }

  async keepHandsOffWithoutProof(): Promise<void> {
    const { observe, hosts, bmcs } = this.scene;
    const server = "rack1-04";
    const machine = await observe.machineOf("edge-w4");
    const before = (await observe.nodes()).find(({ name }) => name === "edge-w4");
    assert.ok(before);
    const journal = bmcs.bmc(server).journal().length;
    await bmcs.bmc(server).setFault({ dead: true });
    hosts.host(server).hang();
    this.story.tell(`${server} hangs, and its BMC is dead`);
    const shown = await until(
      "OffNotProven",
      async () => {
        const [remediation] = await observe.remediations();
        return remediation?.conditions.find(({ reason }) => reason === "OffNotProven");
      },
      { timeoutMs: 2 * MINUTE_MS },
    );
    this.story.output(`${shown.reason}: ${shown.message}`);
    const node = (await observe.nodes()).find(({ name }) => name === "edge-w4");
    assert.equal(node?.uid, before.uid, "the Node was deleted though its host was not proven off");
    assert.ok(!node.taints.includes("node.kubernetes.io/out-of-service"), "the Node was fenced though its host was not proven off");
    assert.ok(
      (await observe.machines()).some(({ uid, deleting }) => uid === machine.uid && !deleting),
      "the Machine was deleted",
    );
    this.story.sure("nothing is deleted or fenced, and it says why");
    await bmcs.bmc(server).setFault({});
    this.story.tell("the BMC answers again");
    await until(
      "edge-w4 to be Ready after a new boot",
      async () => {
        const now = (await observe.nodes()).find(({ name }) => name === "edge-w4");
        return now?.ready === true && now.bootID !== before.bootID && now.taints.length === 0;
      },
      { timeoutMs: 3 * MINUTE_MS },
    );
    assert.deepEqual(this.#powerActions(server, journal), ["ForceOff", "→ Off", "On", "→ On"]);
    assert.equal((await observe.machineOf("edge-w4")).uid, machine.uid);
    this.story.sure("repaired: the same Machine, one power cycle");
    await until("the remediation to be over", async () => (await observe.remediations()).length === 0, { timeoutMs: MINUTE_MS });
  }

  async rollOut(): Promise<void> {
    const { observe } = this.scene;
    const before = (await observe.machines()).map(({ uid }) => uid);
    await this.scene.project.config({ motd: "Rolled out by Pulumi.\n" });
    await this.#preview();
    let fewest = Number.POSITIVE_INFINITY;
    const watching = new AbortController();
    const watched = (async () => {
      while (!watching.signal.aborted) {
        fewest = Math.min(fewest, (await observe.readyNodes()).length);
        await new Promise((next) => setTimeout(next, 500));
      }
    })();
    try {
      await this.#up();
    } finally {
      watching.abort();
      await watched;
    }
    const after = (await observe.machines()).map(({ uid }) => uid);
    assert.equal(after.length, 3);
    assert.ok(!after.some((uid) => before.includes(uid)), "a Machine was not replaced");
    assert.ok(fewest >= 2, `at one moment only ${fewest} Nodes were Ready`);
    this.story.sure(`all three were replaced one by one; never fewer than ${fewest} Nodes were Ready`);
    await this.#nothingLeftToDo();
  }

  async release(): Promise<void> {
    const { bed, observe, bmcs, hosts } = this.scene;
    const server = "rack1-03";
    const { uid } = await observe.inventory(server);
    await bmcs.bmc(server).setPower({ neverOn: false });
    this.story.tell(`$ kubectl annotate machineinventory ${server} ${RELEASE_ANNOTATION}=${uid}`);
    await bed.management.cluster.patch(machineInventories, { namespace: bed.namespace, name: server }, "merge", {
      metadata: { annotations: { [RELEASE_ANNOTATION]: uid } },
    });
    await until(
      `${server} to be Available`,
      async () => {
        const seen = await observe.inventory(server);
        return seen.state === "Available" && !seen.unhealthy;
      },
      { timeoutMs: 2 * MINUTE_MS },
    );
    const state = hosts.host(server).trueState();
    assert.equal(state.power, "On");
    assert.deepEqual(state.plans.at(-1)?.instructions, ["clean"]);
    this.story.sure(`${server} was powered on and cleaned, and is Available`);
  }

  async destroy(): Promise<void> {
    const { bed, observe } = this.scene;
    const result = await this.#pulumi("destroy");
    assert.equal(result.exitCode, 0, "pulumi destroy failed, see its output above");
    const inventories = await observe.inventories();
    assert.equal(inventories.length, 7);
    for (const { name, state, owner, pool, held } of inventories) {
      assert.deepEqual([state ?? "Available", owner, pool, held], ["Available", undefined, undefined, false], `${name} is not as it was`);
    }
    assert.deepEqual(await observe.machines(), []);
    for (const kind of [machineDeployments, machineInventoryPools]) {
      const left = (await observe.objects(kind)).filter(({ metadata }) => metadata.labels?.[MANAGED_BY_LABEL] === MANAGED_BY);
      assert.deepEqual(left, [], `${kind.kind} objects are left`);
    }
    assert.deepEqual(
      this.scene.pods.pods().filter(({ namespace }) => namespace === CONTROLLER_NAMESPACE),
      [],
    );
    assert.deepEqual(await observe.readyNodes(), []);
    this.story.sure(`every inventory in ${bed.namespace} is Available, nothing is held, nothing of ours is left but the CustomResourceDefinitions`);
  }
}

/** Output of the CLI without what it repeats: where it found its binaries, and each stage of each resource. */
function shown({ stdout, stderr }: CommandResult): string {
  return [stdout, stderr]
    .join("\n")
    .split("\n")
    .filter((line) => line.trim() !== "" && !/^@ |from \$PATH| (creating|updating|deleting) \(\d+s\)|pulumi:pulumi:Stack \S+ running/.test(line))
    .join("\n");
}

export async function tell(story: Story, options: DemoOptions): Promise<void> {
  const scene = await story.step("A real control plane, Cluster API, and seven servers with their BMCs", async () => {
    const set = await setScene({ pulumi: options.pulumi });
    story.tell(`KUBECONFIG=${set.bed.management.kubeconfigPath}`);
    const names = Array.from({ length: 7 }, (_, index) => serverName(index + 1));
    await until("all servers to register", async () => (await set.observe.inventories()).length === names.length);
    story.sure(`registered: ${names.join(", ")}; the pool of the quick start has the first six`);
    return set;
  });
  try {
    const demo = new Demo(scene, story);
    if (options.controllerReplicas !== 1) await scene.project.config({ controllerReplicas: options.controllerReplicas, waitTimeout: "30s" });
    await story.step("pulumi up: controller, pool, a group of three, remediation policy", () => demo.create());
    await story.step("Preview of a scale-up from 3 to 5", () => demo.previewScaleUp());
    await story.step("Preview of a scale-up from 3 to 7, more than the pool holds", () => demo.refuseTooMany());
    await story.step("pulumi up: scale to 4", () => demo.scaleToFour());
    await story.step("pulumi up: remove one machine by name", () => demo.removeNamed());
    await story.step("A host hangs and is repaired", () => demo.repairHungHost(options.leaveFault));
    await story.step("A host never powers on again and is replaced", () => demo.replaceDeadHost());
    await story.step("A host hangs and its BMC is dead", () => demo.keepHandsOffWithoutProof());
    await story.step("pulumi up: a bootstrap change, rolled out one by one", () => demo.rollOut());
    await story.step("A person releases the quarantined host", () => demo.release());
    await story.step("pulumi destroy", () => demo.destroy());
  } catch (error) {
    scene.bed.keep();
    throw error;
  } finally {
    await scene.stop();
  }
}
