import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { z } from "zod";

import { configMaps, deployments, namespaces, pods, serviceAccounts } from "../../../provider/cluster/kinds.ts";
import type { ResourceKind } from "../../../provider/cluster/objects.ts";
import { readAuditLog, serviceAccountUser, writesBy } from "../../testbed/audit.ts";
import { startBed } from "../../testbed/bed.ts";
import type { Bed } from "../../testbed/bed.ts";
import { startPodRunner } from "../../testbed/pod-runner.ts";
import type { PodInfo, PodRunner } from "../../testbed/pod-runner.ts";
import { until } from "../../testbed/wait.ts";

const rbac = (plural: string, kind: string): ResourceKind => ({ group: "rbac.authorization.k8s.io", version: "v1", plural, kind, namespaced: true });
const namespace = "tiny";
const bundle = fileURLToPath(new URL("fixtures/tiny-controller.ts", import.meta.url));
const about = z.object({ argv: z.array(z.string()), environment: z.record(z.string(), z.string()), answers: z.array(z.number()) });
const deploymentStatus = z.looseObject({ availableReplicas: z.number().optional(), readyReplicas: z.number().optional() });
const podStatus = z.looseObject({
  phase: z.string(),
  podIP: z.string(),
  containerStatuses: z.array(
    z.looseObject({
      restartCount: z.number(),
      ready: z.boolean(),
      lastState: z.looseObject({ terminated: z.looseObject({ exitCode: z.number() }).optional() }),
    }),
  ),
});

function environmentFrom(fields: Record<string, string>): object[] {
  return Object.entries(fields).map(([name, fieldPath]) => ({ name, valueFrom: { fieldRef: { fieldPath } } }));
}

function deployment(replicas: number): Parameters<Bed["management"]["cluster"]["create"]>[1] {
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: "tiny", namespace },
    spec: {
      replicas,
      selector: { matchLabels: { app: "tiny" } },
      template: {
        metadata: { labels: { app: "tiny" } },
        spec: {
          serviceAccountName: "tiny",
          terminationGracePeriodSeconds: 5,
          containers: [
            {
              name: "controller",
              image: "example.org/tiny:1",
              command: ["node", "/app/controller.cjs"],
              args: ["--namespaces=a,b", "--pod=$(POD_NAME)", "--literal=$$(POD_NAME)"],
              env: [
                ...environmentFrom({ POD_NAME: "metadata.name", POD_NAMESPACE: "metadata.namespace", POD_IP: "status.podIP", NODE_NAME: "spec.nodeName" }),
                { name: "PLAIN", value: "text" },
              ],
              ports: [{ name: "health", containerPort: 8080 }],
              livenessProbe: { httpGet: { path: "/healthz", port: "health" }, periodSeconds: 1, failureThreshold: 1 },
              readinessProbe: { httpGet: { path: "/readyz", port: 8080 }, periodSeconds: 1 },
            },
          ],
        },
      },
    },
  };
}

describe("pod runner", function () {
  this.timeout(60_000);
  let bed: Bed;
  let runner: PodRunner;

  const available = async (count: number): Promise<true> =>
    until(`${count} available`, async () => {
      const status = deploymentStatus.parse((await bed.management.cluster.get(deployments, { namespace, name: "tiny" }))["status"]);
      return (status.availableReplicas ?? 0) === count && (status.readyReplicas ?? 0) === count;
    });
  const only = (): PodInfo => {
    const [pod, ...others] = runner.pods();
    assert.ok(pod !== undefined && others.length === 0, `one Pod expected, not ${others.length + 1}`);
    return pod;
  };
  const ask = async (pod: PodInfo, path: string): Promise<string> => (await fetch(`http://${pod.ip}:8080${path}`, { headers: { connection: "close" } })).text();

  before(async () => {
    bed = await startBed();
    const { cluster } = bed.management;
    await cluster.create(namespaces, { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace } });
    await cluster.create(serviceAccounts, { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "tiny", namespace } });
    await cluster.create(rbac("roles", "Role"), {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "Role",
      metadata: { name: "tiny", namespace },
      rules: [{ apiGroups: [""], resources: ["configmaps"], verbs: ["create"] }],
    });
    await cluster.create(rbac("rolebindings", "RoleBinding"), {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "RoleBinding",
      metadata: { name: "tiny", namespace },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: "tiny" },
      subjects: [{ kind: "ServiceAccount", name: "tiny", namespace }],
    });
    runner = await startPodRunner(bed, {
      namespaces: [namespace],
      files: { "/app/controller.cjs": bundle },
      server: bed.management.proxy.server,
      nodeName: () => "somewhere",
    });
  });
  after(async () => bed.stop());
  afterEach(function () {
    if (this.currentTest?.state === "failed") bed.keep();
  });

  it("makes a Deployment Available with its Pod's own arguments, environment and identity", async () => {
    await bed.management.cluster.create(deployments, deployment(1));
    await available(1);
    const pod = only();
    const told = await until("both writes", async () => {
      const found = about.parse(JSON.parse(await ask(pod, "/about")));
      return found.answers.length === 2 ? found : undefined;
    });
    assert.deepEqual(told.argv, ["--namespaces=a,b", `--pod=${pod.name}`, "--literal=$(POD_NAME)"]);
    assert.deepEqual(told.answers, [201, 201]);
    // The shell that starts it adds some of its own; nothing of this process's environment gets through.
    const added = ["PATH", "HOME", "KUBECONFIG", "PWD", "OLDPWD", "SHLVL", "_"];
    assert.deepEqual(Object.fromEntries(Object.entries(told.environment).filter(([name]) => !added.includes(name))), {
      POD_NAME: pod.name,
      POD_NAMESPACE: namespace,
      POD_IP: pod.ip,
      NODE_NAME: "somewhere",
      PLAIN: "text",
    });
    const writes = await writesBy(bed.management.auditLogPath, serviceAccountUser(namespace, "tiny"));
    assert.deepEqual(
      writes.map(({ verb, resource, code, pod: by }) => [verb, resource, code, by]),
      [
        ["create", "configmaps", 201, pod.name],
        ["create", "configmaps", 201, pod.name],
      ],
    );
    assert.equal(bed.management.proxy.count({ user: serviceAccountUser(namespace, "tiny"), pod: pod.name, only: "writes" }), 2);
  });

  it("restarts a killed process in the same Pod and says so in its status", async () => {
    const pod = only();
    runner.kill(pod.name, "SIGKILL");
    await until("another process that is ready", () => {
      const { pid, ready } = only();
      return pid !== undefined && pid !== pod.pid && ready;
    });
    const status = await until("the status", async () => {
      const found = podStatus.parse((await bed.management.cluster.get(pods, { namespace, name: pod.name }))["status"]);
      return found.containerStatuses[0]?.ready ? found : undefined;
    });
    assert.deepEqual([status.phase, status.podIP, status.containerStatuses[0]?.restartCount], ["Running", pod.ip, 1]);
    assert.equal(status.containerStatuses[0]?.lastState.terminated?.exitCode, 137);
    await available(1);
  });

  it("restarts a process whose liveness probe fails", async () => {
    const pod = only();
    await ask(pod, "/freeze");
    await until("a second restart", () => only().restarts === 2 && only().ready);
    assert.equal(only().name, pod.name);
    assert.match(readFileSync(pod.logPath, "utf8"), /asked to end/);
  });

  it("ends the process with SIGTERM and then the Pod when the Pod is deleted", async () => {
    const pod = only();
    await bed.management.cluster.delete(pods, { namespace, name: pod.name });
    await until("another Pod in its place", () => runner.pods().length === 1 && only().name !== pod.name && only().ready);
    const deletions = await readAuditLog(bed.management.auditLogPath, { user: "pod-runner", verb: "delete", resource: "pods" });
    assert.deepEqual(
      deletions.map(({ name, code }) => [name, code]),
      [[pod.name, 200]],
    );
    assert.throws(() => process.kill(pod.pid ?? 0, 0), { code: "ESRCH" });
    await available(1);
  });

  it("runs as many as there are replicas, each with an address of its own, and none at 0", async () => {
    const scale = async (replicas: number): Promise<unknown> =>
      bed.management.cluster.patch(deployments, { namespace, name: "tiny" }, "merge", { spec: { replicas } });
    await scale(2);
    await available(2);
    assert.equal(new Set(runner.pods().map(({ ip }) => ip)).size, 2);
    const pids = runner.pods().map(({ pid }) => pid ?? 0);
    await scale(0);
    await until("no Pods", async () => (await bed.management.cluster.list(pods, { namespace })).items.length === 0);
    assert.deepEqual(runner.pods(), []);
    for (const pid of pids) assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
  });

  it("lets a process be killed after its first write went through and before its second", async () => {
    const { proxy } = bed.management;
    const user = serviceAccountUser(namespace, "tiny");
    const kill = ({ pod }: { pod?: string }): void => runner.kill(pod ?? "", "SIGKILL");
    const remove = proxy.add({ match: { user, only: "writes" }, nth: 1, fault: { kind: "cut", when: "after" }, act: kill });
    await bed.management.cluster.patch(deployments, { namespace, name: "tiny" }, "merge", { spec: { replicas: 1 } });
    await until("a restart", () => runner.pods()[0]?.restarts === 1 && only().ready);
    remove();
    const pod = only();
    const exists = async (name: string): Promise<boolean> =>
      (await bed.management.cluster.list(configMaps, { namespace })).items.some(({ metadata }) => metadata.name === `${pod.name}-${name}`);
    await until("the second write, of the second process", async () => exists("second"));
    const writes = proxy.requests.filter((request) => request.pod === pod.name && request.write);
    // The second process finds what the first had written although it never heard of it.
    assert.deepEqual(
      writes.map(({ outcome }) => outcome),
      ["cut", 409, 201],
    );
  });
});
