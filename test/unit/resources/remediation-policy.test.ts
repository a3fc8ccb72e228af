import assert from "node:assert/strict";

import { z } from "zod";

import { hostRemediationTemplates, machineDeployments, machineHealthChecks, machines, metal3RemediationTemplates } from "../../../provider/capi/kinds.ts";
import { customResourceDefinitions } from "../../../provider/cluster/kinds.ts";
import { resources } from "../../../provider/resources/index.ts";
import type { Json } from "../../../provider/resources/inputs.ts";
import { UNKNOWN } from "../../../provider/resources/lifecycle.ts";
import { repairsUpTo } from "../../../provider/resources/remediation-policy/plan.ts";
import type { FakeCluster } from "../fakes/fake-cluster.ts";
import type { TestContext } from "./context.ts";
import { contextFor, run, watchForce } from "./context.ts";
import { fakeManagement, NAMESPACE } from "./fake-cluster-api.ts";

const { RemediationPolicy } = resources;
const key = `${NAMESPACE}/edge-workers`;
const workerGroup = { clusterName: "edge", machineDeployment: "edge-workers", namespace: NAMESPACE, replicas: 3 };

function args(change: Json = {}): Json {
  return { workerGroup, maxUnhealthy: 1, owner: "proj/stack/workers", resourceName: "workers", ...change };
}

function world(): { cluster: FakeCluster; context: TestContext } {
  const cluster = fakeManagement();
  cluster.seed(machineDeployments, {
    metadata: { name: "edge-workers", namespace: NAMESPACE },
    spec: { clusterName: "edge", replicas: 3, template: { spec: { bootstrap: {}, infrastructureRef: { name: "i" } } } },
  });
  return { cluster, context: contextFor(cluster) };
}

function installCapm3(cluster: FakeCluster): void {
  cluster.seed(customResourceDefinitions, {
    metadata: { name: "metal3machines.infrastructure.cluster.x-k8s.io", labels: { "cluster.x-k8s.io/provider": "infrastructure-metal3" } },
  });
}

async function checked(context: TestContext, news: Json, olds?: Json): Promise<Json> {
  const { inputs, failures } = await RemediationPolicy.check(context, olds, news);
  assert.deepEqual(failures, []);
  return inputs;
}

async function created(news: Json = args()): Promise<ReturnType<typeof world> & { state: Json; inputs: Json }> {
  const made = world();
  const inputs = await checked(made.context, news);
  const { id, state } = await RemediationPolicy.create(made.context, inputs);
  assert.equal(id, key);
  made.context.lines.length = 0;
  return { ...made, state, inputs };
}

describe("RemediationPolicy", () => {
  it("says what it will do, without a write", async () => {
    const { cluster, context } = world();
    const inputs = await checked(context, args());
    assert.deepEqual([inputs["machineHealthCheck"], inputs["namespace"], inputs["clusterName"]], ["edge-workers", NAMESPACE, "edge"]);
    assert.deepEqual(context.lines, [
      "info: a node of edge-workers with Ready=Unknown for 300s or Ready=False for 300s is repaired by at most 2 power cycles of its host (Metal3Remediation), while at most 1 machines are unhealthy; then it is replaced",
    ]);
    assert.deepEqual(
      cluster.requests.filter(({ write }) => write),
      [],
    );
  });

  it("makes a template and a health check that refers to it", async () => {
    const { cluster, state } = await created(args({ strategy: { powerOffTimeout: "20s" } }));
    const [template] = cluster.all(metal3RemediationTemplates);
    assert.ok(template);
    assert.match(template.metadata.name, /^edge-workers-[0-9a-f]{8}$/);
    assert.deepEqual(template["spec"], {
      template: {
        spec: {
          strategy: {
            type: "Reboot",
            retryLimit: 1,
            timeoutSeconds: 600,
            powerOffTimeoutSeconds: 20,
            powerOnTimeoutSeconds: 300,
            drainTimeoutSeconds: 300,
            offConfirmationSeconds: 2,
            drainConfirmationSeconds: 5,
          },
        },
      },
    });
    assert.deepEqual(cluster.peek(machineHealthChecks, key)?.["spec"], {
      clusterName: "edge",
      selector: { matchLabels: { "cluster.x-k8s.io/cluster-name": "edge", "cluster.x-k8s.io/deployment-name": "edge-workers" } },
      checks: {
        nodeStartupTimeoutSeconds: 1200,
        unhealthyNodeConditions: [
          { type: "Ready", status: "Unknown", timeoutSeconds: 300 },
          { type: "Ready", status: "False", timeoutSeconds: 300 },
        ],
      },
      remediation: {
        triggerIf: { unhealthyLessThanOrEqualTo: 1 },
        templateRef: { apiVersion: "infrastructure.cluster.x-k8s.io/v1beta2", kind: "Metal3RemediationTemplate", name: template.metadata.name },
      },
    });
    assert.equal(state["remediationTemplate"], template.metadata.name);
  });

  it("sees no difference in what it made, nor in the size of its group", async () => {
    const { context, state } = await created();
    const news = await checked(context, args({ workerGroup: { ...workerGroup, replicas: 9 } }), args());
    assert.deepEqual(await RemediationPolicy.diff(context, key, state, news), { changed: false, replaces: [], deleteBeforeReplace: false });
    assert.deepEqual(await RemediationPolicy.read(context, key, state), { id: key, state });
  });

  it("shows what others changed after a refresh, and takes it back only then", async () => {
    const { context, state, inputs, cluster } = await created();
    const forced = watchForce(cluster, machineHealthChecks);
    const change = (): unknown =>
      cluster.edit(machineHealthChecks, key, (object) => {
        const { spec } = z.object({ spec: z.record(z.string(), z.unknown()) }).parse(object);
        object["spec"] = {
          ...spec,
          checks: { nodeStartupTimeoutSeconds: 5400, unhealthyNodeConditions: [{ type: "Ready", status: "False", timeoutSeconds: 60 }] },
        };
      });
    change();
    const refreshed = await RemediationPolicy.read(context, key, state);
    assert.deepEqual(refreshed?.state, {
      ...state,
      nodeStartupTimeout: "1h30m",
      unhealthyNodeConditions: [{ type: "Ready", status: "False", timeout: "1m" }],
    });
    assert.equal((await RemediationPolicy.diff(context, key, refreshed.state, inputs)).changed, true);
    await RemediationPolicy.update(context, key, state, inputs);
    change();
    await RemediationPolicy.update(context, key, refreshed.state, inputs);
    assert.deepEqual(forced, [false, true]);
  });

  it("takes another waitTimeout into its state, by which a removal goes", async () => {
    const { context, state, inputs } = await created();
    const news = await checked(context, args({ waitTimeout: "7m" }), inputs);
    assert.equal((await RemediationPolicy.diff(context, key, state, news)).changed, true);
    assert.equal((await RemediationPolicy.update(context, key, state, news))["waitTimeout"], "7m");
  });

  it("makes a new template for another strategy, refers to it, then removes the old one", async () => {
    const { cluster, context, state, inputs } = await created();
    const news = await checked(context, args({ strategy: { retryLimit: 2 } }), inputs);
    assert.equal((await RemediationPolicy.diff(context, key, state, news)).changed, true);
    cluster.requests.length = 0;
    await RemediationPolicy.update(context, key, state, news);
    assert.deepEqual(
      cluster.requests.filter(({ write }) => write).map(({ verb, resource }) => `${verb} ${resource.split(".")[0] ?? ""}`),
      ["create metal3remediationtemplates", "apply machinehealthchecks", "delete metal3remediationtemplates"],
    );
    assert.equal(cluster.all(metal3RemediationTemplates).length, 1);
  });

  it("uses a kind of its own where CAPM3 is installed, and again the first one where it is gone", async () => {
    const { cluster, context, state, inputs } = await created();
    installCapm3(cluster);
    cluster.seed(hostRemediationTemplates, { metadata: { name: "elsewhere", namespace: "x" } });
    assert.equal((await RemediationPolicy.diff(context, key, state, inputs)).changed, true);
    const next = await RemediationPolicy.update(context, key, state, inputs);
    assert.equal(next["remediationKind"], "HostRemediationTemplate");
    assert.deepEqual(cluster.all(metal3RemediationTemplates), []);
    assert.match(JSON.stringify(cluster.peek(machineHealthChecks, key)?.["spec"]), /"kind":"HostRemediationTemplate"/);
  });

  it("hands over to CAPM3 only what that knows", async () => {
    const { cluster, context } = world();
    installCapm3(cluster);
    await RemediationPolicy.create(context, await checked(context, args({ engine: "capm3" })));
    assert.deepEqual(cluster.all(metal3RemediationTemplates)[0]?.["spec"], {
      template: { spec: { strategy: { type: "Reboot", retryLimit: 1, timeoutSeconds: 600 } } },
    });
  });

  it("refuses CAPM3 where it is not installed", async () => {
    const { context } = world();
    assert.deepEqual((await RemediationPolicy.check(context, undefined, args({ engine: "capm3" }))).failures, [
      {
        property: "engine",
        reason: '"capm3" needs cluster-api-provider-metal3, which is not installed in the management cluster; install it, or leave engine out',
      },
    ]);
  });

  it("warns of a percentage that never allows a repair", async () => {
    const { context } = world();
    await checked(context, args({ maxUnhealthy: "40%", workerGroup: { ...workerGroup, replicas: 2 } }));
    assert.equal(context.lines[0], "warn: maxUnhealthy 40% of 2 machines is rounded down to 0: nothing would ever be repaired; use a number, such as 1");
    assert.deepEqual([repairsUpTo("40%", 2), repairsUpTo("40%", 3), repairsUpTo("100%", 3), repairsUpTo(1, 9)], [0, 1, 3, 1]);
  });

  it("warns while machines that join use up what may be unhealthy", async () => {
    const { cluster, context } = world();
    cluster.seed(machines, {
      metadata: { name: "m1", namespace: NAMESPACE, labels: { "cluster.x-k8s.io/deployment-name": "edge-workers" } },
      spec: { infrastructureRef: { name: "m1" } },
      status: { phase: "Provisioning" },
    });
    await checked(context, args({ maxUnhealthy: "34%" }));
    assert.equal(
      context.lines[0],
      "warn: 1 of 3 machines are still being provisioned and count as unhealthy: with maxUnhealthy 34% nothing is repaired until they have joined",
    );
  });

  it("refuses to watch a group that does not exist", async () => {
    const { context } = world();
    const inputs = await checked(context, args({ workerGroup: { ...workerGroup, machineDeployment: "edge-none" } }));
    await assert.rejects(RemediationPolicy.create(context, inputs), {
      message: "workerGroup: no MachineDeployment cpaas-system/edge-none exists; correct its name, or let the policy depend on the WorkerGroup",
    });
  });

  it("only notes missing kinds of ours, and fails on them in create", async () => {
    const { cluster, context } = world();
    cluster.unserve(metal3RemediationTemplates);
    const inputs = await checked(context, args());
    assert.match(context.lines[0] ?? "", /^warn: .*metal3remediationtemplates.*RemediationController brings it/);
    await assert.rejects(RemediationPolicy.create(context, inputs), /RemediationController brings it/);
    assert.equal(cluster.peek(machineHealthChecks, key), undefined);
  });

  it("leaves out what is not known yet", async () => {
    const { context } = world();
    const inputs = await checked(context, args({ workerGroup: { clusterName: "edge", machineDeployment: UNKNOWN, namespace: NAMESPACE } }));
    assert.equal(inputs["machineHealthCheck"], "edge-workers");
    assert.deepEqual(context.lines, []);
  });

  it("leaves a health check that another program has taken over, and its templates", async () => {
    const { cluster, context, state } = await created();
    cluster.edit(machineHealthChecks, key, ({ metadata }) => (metadata.annotations = { "pulumi-baremetal.dev/owner": "a/b/c" }));
    cluster.requests.length = 0;
    assert.equal(await RemediationPolicy.read(context, key, state), undefined);
    await run(context, RemediationPolicy.delete(context, key, state));
    assert.deepEqual(
      cluster.requests.filter(({ write }) => write),
      [],
    );
    assert.deepEqual(context.lines, [`warn: MachineHealthCheck ${key} belongs to a/b/c now; it is left there`]);
  });

  it("deletes the health check and its templates", async () => {
    const { cluster, context, state } = await created();
    await run(context, RemediationPolicy.delete(context, key, state));
    assert.deepEqual([cluster.all(machineHealthChecks), cluster.all(metal3RemediationTemplates)], [[], []]);
  });
});
