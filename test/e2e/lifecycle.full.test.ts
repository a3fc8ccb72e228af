/** What happens to a running group less often: edits by others, a controller that is gone, credentials in the program. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

import { z } from "zod";

import { machineHealthChecks } from "../../provider/capi/kinds.ts";
import { readMachineHealthCheck } from "../../provider/capi/machine-health-check.ts";
import { deployments, secrets } from "../../provider/cluster/kinds.ts";
import type { ResourceKind } from "../../provider/cluster/objects.ts";
import { machineInventories, machineInventoryPools } from "../../provider/hosts/kinds.ts";
import { parsePool } from "../../provider/hosts/pool.ts";
import { CONTROLLER_NAMESPACE, serverName, setScene } from "../testbed/scene.ts";
import type { Scene } from "../testbed/scene.ts";
import { until } from "../testbed/wait.ts";
import { PulumiProject } from "./pulumi-cli.ts";
import type { RunResult } from "./pulumi-cli.ts";

const SERVERS = [1, 2, 3, 4].map(serverName);

function changesOf({ changes }: RunResult): string[] {
  return changes.map(({ op, type, diffs }) => [op, type.split(":").at(-1), ...diffs].join(" "));
}

function errorsOf({ events }: RunResult): string {
  return events.flatMap(({ diagnosticEvent: event }) => (event?.severity === "error" ? [event.message] : [])).join("\n");
}

describe("a group in a world with others in it", function () {
  this.timeout(240_000);
  this.bail(true);
  let scene: Scene;
  let project: PulumiProject;

  async function succeeds(command: "preview" | "up" | "refresh" | "destroy", on = project): Promise<RunResult> {
    const result = await on[command]();
    assert.equal(result.exitCode, 0, `pulumi ${command} failed:\n${result.stdout}${result.stderr}`);
    return result;
  }

  async function nothingLeftToDo(): Promise<void> {
    assert.deepEqual(changesOf(await succeeds("preview")), []);
  }

  async function editedByHand(kind: ResourceKind, name: string, spec: object, namespace = scene.bed.namespace): Promise<void> {
    await scene.bed.management.cluster.patch(kind, { namespace, name }, "merge", { spec }, { fieldManager: "kubectl-edit" });
  }

  before(async () => {
    scene = await setScene({ servers: SERVERS.length });
    project = scene.project;
    await until("all servers to register", async () => (await scene.observe.inventories()).length === SERVERS.length);
    await project.config({ hosts: SERVERS.slice(0, 3).map((server) => scene.poolEntry(server)), replicas: 2 });
    await succeeds("up");
  });

  after(async () => {
    await scene.stop();
  });

  afterEach(function () {
    if (this.currentTest?.state === "failed") scene.bed.keep();
  });

  it("shows and puts right what others changed in the pool's list, its order included", async () => {
    const entries = async (): Promise<unknown> =>
      parsePool(await scene.bed.management.cluster.get(machineInventoryPools, { namespace: scene.bed.namespace, name: "edge-workers-pool" })).entries;
    const declared = await entries();
    await editedByHand(machineInventoryPools, "edge-workers-pool", {
      machineInventories: [{ name: "rack1-02", hostname: "edge-w2" }, { name: "rack1-04" }, { name: "rack1-01", hostname: "edge-w1" }],
    });
    await succeeds("refresh");
    assert.deepEqual(changesOf(await succeeds("preview")), ["update MachineInventoryPool machineInventories"]);
    await succeeds("up");
    assert.deepEqual(await entries(), declared);
    await succeeds("refresh");
    await nothingLeftToDo();
  });

  it("shows and puts right what others changed in the health check, and makes it again where it was deleted", async () => {
    const { cluster } = scene.bed.management;
    const key = { namespace: scene.bed.namespace, name: "edge-workers" };
    const declared = readMachineHealthCheck(await cluster.get(machineHealthChecks, key));
    await editedByHand(machineHealthChecks, key.name, {
      checks: { nodeStartupTimeoutSeconds: 3600 },
      remediation: { triggerIf: { unhealthyLessThanOrEqualTo: "100%" } },
    });
    await succeeds("refresh");
    assert.deepEqual(changesOf(await succeeds("preview")), ["update RemediationPolicy maxUnhealthy nodeStartupTimeout"]);
    await succeeds("up");
    assert.deepEqual(readMachineHealthCheck(await cluster.get(machineHealthChecks, key)), declared);
    await nothingLeftToDo();
    await cluster.delete(machineHealthChecks, key);
    await until("the health check to go", async () => (await scene.observe.objects(machineHealthChecks)).length === 0);
    await succeeds("refresh");
    assert.deepEqual(changesOf(await succeeds("preview")), ["create RemediationPolicy"]);
    await succeeds("up");
    assert.deepEqual(readMachineHealthCheck(await cluster.get(machineHealthChecks, key)), declared);
    await nothingLeftToDo();
  });

  it("does not overwrite what others changed and nobody was shown", async () => {
    await editedByHand(machineHealthChecks, "edge-workers", { checks: { nodeStartupTimeoutSeconds: 3600 } });
    await project.config({ unhealthyAfter: "6s" });
    const result = await project.up();
    assert.equal(result.exitCode, 1);
    assert.match(
      errorsOf(result),
      /another client has set fields that this resource sets \(\.spec\.checks\.nodeStartupTimeoutSeconds\): .*conflict with "kubectl-edit".*; run "pulumi refresh" and read the next preview, which then takes them back; or give them the same values there; or set adopt: true to take them over unseen/,
    );
    await succeeds("refresh");
    await succeeds("up");
    await nothingLeftToDo();
  });

  it("does not drop a host that is in use, and lets a free one go without a trace", async () => {
    const machine = await scene.observe.machineOf("edge-w1");
    const [first, second, third] = SERVERS.map((server) => scene.poolEntry(server));
    assert.ok(first && second && third);
    await project.config({ hosts: [second, third] });
    const refused = await project.preview();
    assert.equal(refused.exitCode, 1);
    assert.ok(
      errorsOf(refused).includes(
        `inventory rack1-01 is in use by machine ${machine.name} and cannot be dropped; remove that machine first (removeMachines of its WorkerGroup), or keep the inventory`,
      ),
    );
    await project.config({ hosts: [first, second] });
    await succeeds("up");
    const { metadata } = await scene.bed.management.cluster.get(machineInventories, { namespace: scene.bed.namespace, name: "rack1-03" });
    assert.deepEqual(
      Object.keys(metadata.annotations ?? {}).filter((key) => key.startsWith("pulumi-baremetal.dev/") || key.endsWith("/pool")),
      [],
    );
    await nothingLeftToDo();
  });

  it("keeps credentials of the program in a Secret of its own, encrypted in the state, and takes them away again", async () => {
    const { username, password, address } = scene.bmcs.bmc("rack1-04");
    const { cluster } = scene.bed.management;
    // The bed brought one for every BMC; this program brings its own.
    await cluster.delete(secrets, { namespace: scene.bed.namespace, name: "rack1-04-bmc" });
    const other = await PulumiProject.create({
      directory: resolve(import.meta.dirname, "fixtures/inline-credentials"),
      env: { KUBECONFIG: scene.bed.management.kubeconfigPath },
    });
    try {
      await other.config({ "baremetal:namespace": scene.bed.namespace, address, username });
      await other.config({ password }, { secret: true });
      const made = await succeeds("up", other);
      const secret = z
        .object({ data: z.record(z.string(), z.string()) })
        .parse(await cluster.get(secrets, { namespace: scene.bed.namespace, name: "rack1-04-bmc" }));
      assert.equal(Buffer.from(secret.data["password"] ?? "", "base64").toString(), password);
      const state = join(other.workDirectory, "state");
      const stored = readdirSync(state, { recursive: true, encoding: "utf8" })
        .map((name) => join(state, name))
        .filter((path) => statSync(path).isFile())
        .map((path) => readFileSync(path, "utf8"));
      assert.ok(stored.some((text) => text.includes("edge-spare-pool")));
      for (const text of [...stored, made.stdout, made.stderr, JSON.stringify(made.events)]) assert.ok(!text.includes(password), "the password is readable");
      assert.deepEqual(changesOf(await succeeds("preview", other)), []);
      await succeeds("destroy", other);
      const left = await cluster.list(secrets, { namespace: scene.bed.namespace });
      assert.ok(!left.items.some(({ metadata }) => metadata.name === "rack1-04-bmc"));
    } finally {
      other.close();
    }
  });

  it("says in a destroy who would have to give the hosts back, and ends well once somebody does", async () => {
    await project.config({ waitTimeout: "40s" });
    await succeeds("up");
    await editedByHand(deployments, "pulumi-baremetal-controller", { replicas: 0 }, CONTROLLER_NAMESPACE);
    await until("the controller to be gone", () => scene.pods.pods().length === 0);
    const stuck = await project.destroy();
    assert.equal(stuck.exitCode, 1);
    assert.match(errorsOf(stuck), /not gone after 40s: .*\. no inventory controller is running: nothing gives back the host of /);
    assert.ok(stuck.messages.some((line) => line.includes("warning: no inventory controller is running: nothing gives back the host of ")));
    await editedByHand(deployments, "pulumi-baremetal-controller", { replicas: 1 }, CONTROLLER_NAMESPACE);
    await succeeds("destroy");
    assert.deepEqual(await scene.observe.machines(), []);
    for (const { name, state, owner, pool } of await scene.observe.inventories()) {
      assert.deepEqual([state ?? "Available", owner, pool], ["Available", undefined, undefined], name);
    }
  });
});
