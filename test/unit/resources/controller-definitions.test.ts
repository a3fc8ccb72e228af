import assert from "node:assert/strict";

import { customResourceDefinitions } from "../../../provider/cluster/kinds.ts";
import type { KubernetesObject, LiveObject } from "../../../provider/cluster/objects.ts";
import { controllerDefinitions } from "../../../provider/resources/controller-definitions/lifecycle.ts";
import type { VerbContext } from "../../../provider/resources/lifecycle.ts";
import { FakeCluster } from "../fakes/fake-cluster.ts";

const OURS = { "app.kubernetes.io/managed-by": "pulumi-baremetal" };

function specOf(name: string, revision: number): object {
  const [plural = "", group = ""] = name.split(".");
  const versions = ["v1", "v2"].map((version) => ({ name: version, served: version === "v2" }));
  return { group, scope: "Namespaced", names: { plural, kind: plural }, versions, revision };
}

function definition(name: string, revision: number): KubernetesObject {
  return { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name, labels: OURS }, spec: specOf(name, revision) };
}

function versioned(revision: number): ReturnType<typeof controllerDefinitions> {
  return controllerDefinitions({
    remediation: [definition("repairs.a", revision), definition("hosts.a", revision)],
    inventory: [definition("pools.a", revision)],
  });
}

describe("the controller's definitions", () => {
  let cluster: FakeCluster;
  let lines: string[];
  let now: number;
  let context: VerbContext;
  /** Whether the API server has anything against a definition. */
  let establishes: boolean;

  beforeEach(() => {
    cluster = new FakeCluster();
    lines = [];
    now = 0;
    establishes = true;
    context = {
      cluster: () => Promise.resolve(cluster),
      bmcs: { bmc: () => assert.fail("no BMC is used here"), close: () => Promise.resolve() },
      clock: {
        now: () => now,
        sleep: (milliseconds) => {
          now += milliseconds;
          for (const { metadata } of cluster.all(customResourceDefinitions)) {
            if (establishes)
              cluster.edit(customResourceDefinitions, metadata.name, (live) => (live["status"] = { conditions: [{ type: "Established", status: "True" }] }));
          }
          return Promise.resolve();
        },
      },
      signal: new AbortController().signal,
      report: { status: () => undefined, info: (line) => lines.push(line), warn: (line) => lines.push(line) },
      defaultNamespace: "default",
    };
  });

  async function checked(lifecycle: ReturnType<typeof controllerDefinitions>, sets: string[], olds?: object): Promise<Record<string, unknown>> {
    const { inputs, failures } = await lifecycle.check(context, olds, { sets, owner: "p/s/c", resourceName: "c" });
    assert.deepEqual(failures, []);
    return inputs;
  }

  function revisionOf(name: string): unknown {
    const live: LiveObject | undefined = cluster.peek(customResourceDefinitions, name);
    return (live?.["spec"] as { revision?: number } | undefined)?.revision;
  }

  it("are brought and waited for, and a preview names them", async () => {
    const lifecycle = versioned(1);
    const inputs = await checked(lifecycle, ["remediation"]);
    assert.deepEqual(lines, ["will bring repairs.a, hosts.a; they stay when the controller is removed"]);
    assert.equal(cluster.all(customResourceDefinitions).length, 0);
    const { id, state } = await lifecycle.create(context, inputs);
    assert.equal(id, "controller-definitions");
    assert.deepEqual([state["brought"], state["foreign"]], [["repairs.a", "hosts.a"], []]);
    assert.equal(revisionOf("repairs.a"), 1);
    assert.equal(revisionOf("pools.a"), undefined);
    assert.ok(now > 0);
  });

  it("of somebody else are never written", async () => {
    cluster.seed(customResourceDefinitions, { metadata: { name: "repairs.a" }, spec: { revision: 99 } });
    const lifecycle = versioned(1);
    const { state } = await lifecycle.create(context, await checked(lifecycle, ["remediation"]));
    assert.deepEqual([state["brought"], state["foreign"]], [["hosts.a"], ["repairs.a"]]);
    assert.equal(revisionOf("repairs.a"), 99);
    assert.deepEqual(lines.at(-1), "left as they are, because somebody else brought them: repairs.a");
  });

  it("are not taken from somebody who was faster", async () => {
    const lifecycle = versioned(1);
    const inputs = await checked(lifecycle, ["remediation"]);
    cluster.fail(({ verb, key }) => {
      if (verb !== "create" || key !== "repairs.a") return false;
      cluster.seed(customResourceDefinitions, { metadata: { name: "repairs.a" }, spec: { revision: 99 } });
      return true;
    }, "alreadyExists");
    const { state } = await lifecycle.create(context, inputs);
    assert.deepEqual(state["foreign"], ["repairs.a"]);
    assert.equal(revisionOf("repairs.a"), 99);
  });

  it("of another version of the package show as a change and are brought up to date", async () => {
    const before = versioned(1);
    const { id, state } = await before.create(context, await checked(before, ["remediation"]));
    const after = versioned(2);
    assert.deepEqual(await before.diff(context, id, state, await checked(before, ["remediation"], state)), {
      changed: false,
      replaces: [],
      deleteBeforeReplace: false,
    });
    const news = await checked(after, ["remediation"], state);
    assert.equal((await after.diff(context, id, state, news)).changed, true);
    await after.update(context, id, state, news);
    assert.equal(revisionOf("repairs.a"), 2);
  });

  it("stay when the controller goes, and are found again by the next one", async () => {
    const lifecycle = versioned(1);
    const { id, state } = await lifecycle.create(context, await checked(lifecycle, ["remediation"]));
    await lifecycle.delete(context, id, state);
    assert.equal(revisionOf("repairs.a"), 1);
    lines.length = 0;
    const again = await lifecycle.create(context, await checked(lifecycle, ["remediation"]));
    assert.deepEqual([again.state["brought"], lines], [["repairs.a", "hosts.a"], []]);
  });

  it("that somebody removed are brought back: a refresh shows it", async () => {
    const lifecycle = versioned(1);
    const { id, state } = await lifecycle.create(context, await checked(lifecycle, ["remediation"]));
    cluster.remove(customResourceDefinitions, "hosts.a");
    const found = await lifecycle.read(context, id, state);
    assert.notEqual(found?.state["digest"], state["digest"]);
    cluster.remove(customResourceDefinitions, "repairs.a");
    assert.equal(await lifecycle.read(context, id, state), undefined);
  });

  it("that the API server does not establish fail with their name", async () => {
    establishes = false;
    const lifecycle = versioned(1);
    await assert.rejects(lifecycle.create(context, await checked(lifecycle, ["inventory"])), {
      message: "pools.a cannot be used 30 s after it was brought; the conditions of this CustomResourceDefinition say why",
    });
  });

  it("count as brought only once their storage answers", async () => {
    const lifecycle = versioned(1);
    const inputs = await checked(lifecycle, ["inventory"]);
    cluster.fail(({ verb, resource }) => verb === "get" && resource === "pools.a", "throttled", { times: 3 });
    await lifecycle.create(context, inputs);
    assert.equal(now, 200 * (1 + 3));
  });

  it("need at least one controller, of those there are", async () => {
    const { failures } = await versioned(1).check(context, undefined, { sets: ["storage"], owner: "o", resourceName: "c" });
    assert.deepEqual(failures, [{ property: "sets[0]", reason: 'must be "remediation" or "inventory"' }]);
  });
});
