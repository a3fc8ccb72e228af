/** The quick start through the real CLI, from its first preview to its removal, looked at from outside. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

import { z } from "zod";

import { capiLabels, kubeadmConfigTemplates, machineDeployments } from "../../provider/capi/kinds.ts";
import { secrets } from "../../provider/cluster/kinds.ts";
import { baremetalMachines, baremetalMachineTemplates, machineInventories } from "../../provider/hosts/kinds.ts";
import { allocationAnnotations, MANAGED_BY, MANAGED_BY_LABEL } from "../../provider/hosts/names.ts";
import { isWrite, readAuditLog, serviceAccountUser, writesBy } from "../testbed/audit.ts";
import type { AuditedRequest } from "../testbed/audit.ts";
import { issueClientCertificate } from "../testbed/bed.ts";
import type { CertifiedConnection } from "../testbed/control-plane.ts";
import { ADMINISTRATORS, kubeconfigOfConnection } from "../testbed/control-plane.ts";
import { labelledObjects } from "../testbed/labelled.ts";
import { CONTROLLER_NAMESPACE, serverName, setScene } from "../testbed/scene.ts";
import type { Scene } from "../testbed/scene.ts";
import { until } from "../testbed/wait.ts";
import { PulumiProject } from "./pulumi-cli.ts";
import type { RunResult } from "./pulumi-cli.ts";

const USER = "operator";
const GROUP = "pulumi-nodejs:dynamic/baremetal:WorkerGroup";
const POOL = "pulumi-nodejs:dynamic/baremetal:MachineInventoryPool";
const SERVERS = Array.from({ length: 7 }, (_, index) => serverName(index + 1));

const claim = z.object({ metadata: z.object({ annotations: z.record(z.string(), z.unknown()) }) });
const machineHost = z.object({ status: z.object({ machineInventoryRef: z.object({ name: z.string() }) }) });
const tokenSecret = z.object({ data: z.record(z.string(), z.string()) });

function hostnameOf(server: string): string {
  return `edge-w${Number(server.slice(-2))}`;
}

/** What the resources said, without their common prefix. */
function said({ messages }: RunResult): string[] {
  return messages.flatMap((line) => (line.startsWith("pulumi-baremetal: ") ? [line.slice("pulumi-baremetal: ".length)] : []));
}

function changesOf({ changes }: RunResult): string[] {
  return changes.map(({ op, type, diffs }) => [op, type.split(":").at(-1), ...diffs].join(" "));
}

function filesUnder(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => join(folder, name))
    .filter((path) => statSync(path).isFile());
}

describe("the quick start from preview to destroy", function () {
  this.timeout(180_000);
  this.bail(true);
  let scene: Scene;
  let project: PulumiProject;
  let operator: CertifiedConnection;
  /** All that the CLI printed and logged. */
  const printed: string[] = [];

  async function run(command: "preview" | "up" | "refresh" | "destroy"): Promise<RunResult> {
    const result = await project[command]();
    printed.push(result.stdout, result.stderr, JSON.stringify(result.events));
    return result;
  }

  async function succeeds(command: "preview" | "up" | "refresh" | "destroy"): Promise<RunResult> {
    const result = await run(command);
    assert.equal(result.exitCode, 0, `pulumi ${command} failed:\n${result.stdout}${result.stderr}`);
    return result;
  }

  async function nothingLeftToDo(): Promise<void> {
    const again = await succeeds("preview");
    assert.deepEqual(changesOf(again), []);
  }

  /** Server → uid of the Machine on it, by what the cluster's objects say. */
  async function occupied(): Promise<Map<string, string>> {
    const machines = await scene.observe.machines();
    const hosts = (await scene.observe.objects(baremetalMachines)).map((item): [string, string] => {
      const machine = machines.find(({ name }) => item.metadata.ownerReferences?.some((owner) => owner.kind === "Machine" && owner.name === name));
      return [machineHost.parse(item).status.machineInventoryRef.name, machine?.uid ?? ""];
    });
    return new Map(hosts.sort());
  }

  function operatorsWrites(since: number): Promise<AuditedRequest[]> {
    return writesBy(scene.bed.management.auditLogPath, USER, { since });
  }

  /** Inventories that the controller has claimed; machines that come at once claim theirs side by side. */
  async function claimed(since: number): Promise<string[]> {
    const user = serviceAccountUser(CONTROLLER_NAMESPACE, "pulumi-baremetal-controller");
    const writes = await writesBy(scene.bed.management.auditLogPath, user, { resource: machineInventories.plural, code: 200, since });
    return writes
      .flatMap(({ name, requestBody }) => {
        const uid = claim.safeParse(requestBody).data?.metadata.annotations[allocationAnnotations.ownerUid];
        return typeof uid === "string" && name !== undefined ? [name] : [];
      })
      .sort();
  }

  before(async () => {
    scene = await setScene();
    operator = await issueClientCertificate(scene.bed.management, { user: USER, groups: [ADMINISTRATORS] });
    project = scene.project;
    await project.config({ "baremetal:kubeconfig": kubeconfigOfConnection(operator) }, { secret: true });
    await project.config({ hosts: SERVERS.slice(0, 4).map((server) => scene.poolEntry(server)) });
    await until("all servers to register", async () => (await scene.observe.inventories()).length === SERVERS.length);
  });

  after(async () => {
    await scene.stop();
  });

  afterEach(function () {
    if (this.currentTest?.state === "failed") scene.bed.keep();
  });

  it("previews a create: which hosts will be taken, and nothing is written", async () => {
    const since = Date.now();
    const result = await succeeds("preview");
    const lines = said(result);
    assert.ok(
      lines.includes(
        "MachineInventoryPool workers: pool edge-workers-pool gets rack1-01 (edge-w1), rack1-02 (edge-w2), rack1-03 (edge-w3), rack1-04 (edge-w4)",
      ),
    );
    assert.ok(lines.includes("WorkerGroup workers: machines: 0 → 3"));
    assert.ok(lines.includes("WorkerGroup workers: takes rack1-01 (edge-w1), rack1-02 (edge-w2), rack1-03 (edge-w3), in pool order"));
    assert.deepEqual(await operatorsWrites(since), []);
  });

  it("ends a create that nobody carries out, says who is missing, and goes on from there without a duplicate", async () => {
    await project.config({ controllerReplicas: 0, waitTimeout: "5s" });
    const began = Date.now();
    const cut = await run("up");
    assert.equal(cut.exitCode, 1);
    const error = cut.messages.find((line) => line.includes("not finished after 5s"));
    assert.match(
      error ?? "",
      /not finished after 5s: 0 of 3 machines ready; .*\. no inventory controller is running: nothing has taken up edge-workers-\S+, edge-workers-\S+, edge-workers-\S+; deploy RemediationController with controllers: \["remediation", "inventory"\], and look at its Pods\. The next run goes on from here; a larger waitTimeout waits longer/,
    );
    const uids = async (): Promise<string[]> =>
      [...(await scene.observe.machineDeployments()), ...(await scene.observe.machineSets())].map(({ metadata }) => metadata.uid);
    const before = { objects: await uids(), machines: (await scene.observe.machines()).map(({ uid }) => uid).sort() };
    assert.deepEqual([before.objects.length, before.machines.length], [2, 3]);

    await project.config({ controllerReplicas: 1, waitTimeout: "5m" });
    await succeeds("up");
    assert.deepEqual({ objects: await uids(), machines: (await scene.observe.machines()).map(({ uid }) => uid).sort() }, before);
    assert.deepEqual(await scene.observe.readyNodes(), ["edge-w1", "edge-w2", "edge-w3"]);
    assert.deepEqual(await claimed(began), ["rack1-01", "rack1-02", "rack1-03"]);
    assert.deepEqual([...(await occupied()).keys()], ["rack1-01", "rack1-02", "rack1-03"]);
    await nothingLeftToDo();
  });

  it("has deployed the controller as a component, and nothing secret is in its state", async () => {
    const { resources = [] } = await project.stackExport();
    const deployments = resources.filter(({ type }) => type === "kubernetes:apps/v1:Deployment");
    assert.deepEqual(
      deployments.map(({ id }) => id),
      [`${CONTROLLER_NAMESPACE}/pulumi-baremetal-controller`],
    );
    assert.ok(deployments.every(({ urn }) => urn.includes("baremetal:index:RemediationController$")));
  });

  it("finds nothing in a refresh, and nothing to do after it", async () => {
    const result = await succeeds("refresh");
    assert.deepEqual(
      result.changes.filter(({ op }) => op !== "refresh"),
      [],
    );
    await nothingLeftToDo();
  });

  it("shows what someone else changed, and puts it right", async () => {
    const before = await occupied();
    const key = { namespace: scene.bed.namespace, name: "edge-workers" };
    await scene.bed.management.cluster.patch(machineDeployments, key, "merge", { spec: { replicas: 4 } }, { fieldManager: "kubectl-patch" });
    await until("the fourth machine", async () => (await scene.observe.readyNodes()).length === 4, { timeoutMs: 60_000 });
    await succeeds("refresh");
    const preview = await succeeds("preview");
    assert.deepEqual(changesOf(preview), ["update WorkerGroup replicas"]);
    assert.ok(said(preview).includes("WorkerGroup workers: machines: 4 → 3"));
    await succeeds("up");
    await nothingLeftToDo();
    const after = await occupied();
    assert.equal(after.size, 3);
    // Cluster API chose which went; the others are those of before.
    for (const [server, uid] of after) if (server !== "rack1-04") assert.equal(uid, before.get(server));
  });

  it("grows pool and group in one run, and takes free hosts in pool order", async () => {
    const before = await occupied();
    const free = SERVERS.filter((server) => !before.has(server)).slice(0, 2);
    const began = Date.now();
    await project.config({ hosts: SERVERS.map((server) => scene.poolEntry(server)), replicas: 5 });
    const preview = await succeeds("preview");
    assert.deepEqual(changesOf(preview).sort(), ["update MachineInventoryPool machineInventories", "update WorkerGroup infrastructure replicas"]);
    const lines = said(preview);
    assert.ok(lines.includes("MachineInventoryPool workers: pool edge-workers-pool gets rack1-05 (edge-w5), rack1-06 (edge-w6), rack1-07 (edge-w7)"));
    assert.ok(lines.includes(`WorkerGroup workers: takes ${free.map((server) => `${server} (${hostnameOf(server)})`).join(", ")}, in pool order`));
    await succeeds("up");
    assert.deepEqual(await claimed(began), free);
    const after = await occupied();
    assert.deepEqual([...after.keys()], [...before.keys(), ...free].sort());
    for (const [server, uid] of before) assert.equal(after.get(server), uid);
    assert.deepEqual(await scene.observe.readyNodes(), [...after.keys()].map(hostnameOf));
    await nothingLeftToDo();
  });

  it("refuses to remove another number of machines than replicas is lowered by", async () => {
    const [first = "", second = ""] = [...(await occupied()).keys()].map(hostnameOf);
    await project.config({ replicas: 4, removeMachines: [first, second] });
    const result = await run("preview");
    assert.equal(result.exitCode, 1);
    const reason = "names 2 machines of this group, but replicas goes from 5 to 4, which is 1 fewer; set replicas to 3, or name exactly 1";
    assert.ok(result.messages.some((line) => line.includes("property removeMachines ") && line.endsWith(`has a problem: ${reason}`)));
  });

  it("removes exactly the named machines, and their hosts are free again", async () => {
    const before = await occupied();
    const [, second = "", third = ""] = [...before.keys()];
    await project.config({ replicas: 3, removeMachines: [hostnameOf(second), (await scene.observe.machineOf(hostnameOf(third))).name] });
    await succeeds("up");
    before.delete(second);
    before.delete(third);
    assert.deepEqual(await occupied(), before);
    assert.deepEqual(await scene.observe.readyNodes(), [...before.keys()].map(hostnameOf));
    for (const server of [second, third]) {
      const { state, pool, owner } = await scene.observe.inventory(server);
      assert.deepEqual([state, pool, owner], ["Available", "edge-workers-pool", undefined]);
    }
    await nothingLeftToDo();
    await project.removeConfig("removeMachines");
    await nothingLeftToDo();
  });

  it("replaces machines one by one when what they boot with changes, and edits no template", async () => {
    const before = await scene.observe.machines();
    const templates = async (): Promise<string[]> => (await scene.observe.objects(kubeadmConfigTemplates)).map(({ metadata }) => metadata.name);
    const [old = "", ...others] = await templates();
    assert.deepEqual(others, []);
    const began = Date.now();
    await project.config({ motd: "Another greeting.\n" });
    assert.ok(
      said(await succeeds("preview")).some((line) =>
        line.startsWith("WorkerGroup workers: re-provisions one by one, because the bootstrap configuration changes: "),
      ),
    );
    let fewest = Number.POSITIVE_INFINITY;
    let mostLeaving = 0;
    const ended = new AbortController();
    const watching = (async () => {
      while (!ended.signal.aborted) {
        const machines = await scene.observe.machines();
        mostLeaving = Math.max(mostLeaving, machines.filter(({ deleting }) => deleting).length);
        fewest = Math.min(fewest, (await scene.observe.readyNodes()).length);
        await new Promise((next) => setTimeout(next, 200));
      }
    })();
    try {
      await succeeds("up");
    } finally {
      ended.abort();
      await watching;
    }
    assert.deepEqual([fewest, mostLeaving], [2, 1]);
    const after = await scene.observe.machines();
    assert.equal(after.length, 3);
    assert.deepEqual(
      after.filter(({ uid }) => before.some((machine) => machine.uid === uid)),
      [],
    );
    const now = await templates();
    assert.equal(now.length, 1);
    assert.notEqual(now[0], old);
    const log = await readAuditLog(scene.bed.management.auditLogPath, { since: began });
    const removal = log.find(({ verb, resource, name }) => verb === "delete" && resource === kubeadmConfigTemplates.plural && name === old);
    assert.equal(removal?.user, USER);
    const lastMade = Math.max(
      ...log.filter(({ verb, resource, code }) => verb === "create" && resource === "machines" && code === 201).map(({ time }) => time),
    );
    assert.ok(removal.time > lastMade, "the old template went before the last machine was replaced");
    await nothingLeftToDo();
  });

  it("refuses a second program with the same names, and names the first", async () => {
    const second = await PulumiProject.create({ directory: resolve(import.meta.dirname, "fixtures/bad-input") });
    try {
      await second.config({ "baremetal:kubeconfig": kubeconfigOfConnection(operator) }, { secret: true });
      await second.config({ "baremetal:namespace": scene.bed.namespace });
      const since = Date.now();
      await second.config({ case: "samePool" });
      const result = await second.up();
      assert.equal(result.exitCode, 1);
      const refusal = `MachineInventoryPool cpaas-system/edge-workers-pool already exists and belongs to quickstart/${project.stack}/workers; give this resource another \`name\`, or set \`adopt: true\` to take it over`;
      assert.ok(result.messages.includes(refusal), result.stdout);
      assert.deepEqual(await operatorsWrites(since), []);
    } finally {
      second.close();
    }
    await nothingLeftToDo();
  });

  it("never wrote to a template but to make and to remove it", async () => {
    const log = await readAuditLog(scene.bed.management.auditLogPath, { userAgent: /^pulumi-baremetal/ });
    const ours = log.filter(({ resource }) => [kubeadmConfigTemplates.plural, baremetalMachineTemplates.plural].includes(resource)).filter(isWrite);
    assert.deepEqual([...new Set(ours.map(({ verb }) => verb))].sort(), ["create", "delete"]);
    for (const kind of [kubeadmConfigTemplates, baremetalMachineTemplates]) {
      const generations = (await scene.observe.objects(kind)).map(({ metadata }) => metadata.generation);
      assert.deepEqual(generations, [1]);
    }
  });

  it("removes all of it but the kinds and the registered machines", async () => {
    await succeeds("destroy");
    assert.deepEqual((await project.stackExport()).resources ?? [], []);
    const left = await labelledObjects(scene.bed.management.cluster, `${MANAGED_BY_LABEL}=${MANAGED_BY}`);
    assert.deepEqual([...new Set(left.map(({ kind }) => kind))], ["CustomResourceDefinition"]);
    assert.deepEqual(await labelledObjects(scene.bed.management.cluster, `${capiLabels.deploymentName}=edge-workers`), []);
    const inventories = await scene.bed.management.cluster.list(machineInventories, { namespace: scene.bed.namespace });
    assert.deepEqual(
      inventories.items.map(({ metadata: { name, annotations = {} } }) => [name, annotations]).sort(),
      SERVERS.map((server) => [server, server === "rack1-06" || server === "rack1-07" ? {} : { [allocationAnnotations.state]: "Available" }]),
    );
    assert.deepEqual(await scene.observe.readyNodes(), []);
    assert.deepEqual(scene.pods.pods(), []);
  });

  it("kept every secret to itself, in what it printed and in what it stored", async () => {
    const { items } = await scene.bed.workload.cluster.list(secrets, { namespace: "kube-system" });
    const tokens = items.filter(({ metadata }) => metadata.name.startsWith("bootstrap-token-"));
    assert.ok(tokens.length > 0);
    const kubeconfigKey = operator.clientKey.split("\n")[1] ?? "";
    const hidden = [
      ...scene.bmcs.all.map(({ password }) => password),
      ...tokens.map((item) => Buffer.from(tokenSecret.parse(item).data["token-secret"] ?? "", "base64").toString()),
      kubeconfigKey,
      Buffer.from(operator.clientKey).toString("base64").slice(40, 100),
    ];
    assert.ok(hidden.every((secret) => secret.length >= 8));
    const stored = filesUnder(join(project.workDirectory, "state"));
    assert.ok(stored.length > 0);
    const texts = [...printed, ...stored.map((path) => readFileSync(path, "utf8"))];
    assert.ok(texts.some((text) => text.includes(GROUP)) && texts.some((text) => text.includes(POOL)));
    for (const secret of hidden) assert.ok(!texts.some((text) => text.includes(secret)), "a secret is readable");
  });
});
