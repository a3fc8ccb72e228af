import assert from "node:assert/strict";

import { ClusterClient } from "../../../provider/cluster/client.ts";
import type { WatchEvent } from "../../../provider/cluster/cluster.ts";
import { isClusterError } from "../../../provider/cluster/errors.ts";
import type { ClusterErrorKind } from "../../../provider/cluster/errors.ts";
import { configMaps, secrets } from "../../../provider/cluster/kinds.ts";
import { readAuditLog } from "../../testbed/audit.ts";
import { issueClientCertificate, startBed } from "../../testbed/bed.ts";
import type { Bed } from "../../testbed/bed.ts";
import type { FaultProxy } from "../../testbed/fault-proxy.ts";
import { until } from "../../testbed/wait.ts";

const namespace = "default";

describe("fault proxy", function () {
  this.timeout(60_000);
  let bed: Bed;
  let proxy: FaultProxy;
  let alice: ClusterClient;
  let bob: ClusterClient;
  const removals: (() => void)[] = [];

  const order = (rule: Parameters<FaultProxy["add"]>[0]): void => {
    removals.push(proxy.add(rule));
  };
  const create = async (client: ClusterClient, name: string): Promise<unknown> =>
    client.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: { name, namespace } }, { timeoutMs: 2000 });
  const stored = async (): Promise<string[]> =>
    (await bed.management.cluster.list(configMaps, { namespace })).items.map(({ metadata }) => metadata.name).sort();
  const fails = async (promise: Promise<unknown>, kind: ClusterErrorKind): Promise<void> => assert.rejects(promise, (error) => isClusterError(error, kind));

  const through = async (user: string, groups: string[]): Promise<ClusterClient> =>
    new ClusterClient({ ...(await issueClientCertificate(bed.management, { user, groups })), server: proxy.server }, { userAgent: `${user}'s tool` });

  before(async () => {
    bed = await startBed({ workloadThroughProxy: true });
    proxy = bed.management.proxy;
    alice = await through("alice", ["system:masters"]);
    bob = await through("bob", ["system:masters", "others"]);
  });
  after(async () => {
    await Promise.all([alice.close(), bob.close()]);
    await bed.stop();
  });
  beforeEach(async () => {
    for (const { metadata } of (await bed.management.cluster.list(configMaps, { namespace })).items) {
      if (metadata.name !== "kube-root-ca.crt") await bed.management.cluster.delete(configMaps, { namespace, name: metadata.name });
    }
  });
  afterEach(function () {
    for (const remove of removals.splice(0)) remove();
    if (this.currentTest?.state === "failed") bed.keep();
  });

  it("passes a client on as itself: with its certificate, or with none", async () => {
    await create(alice, "a");
    const [request] = await readAuditLog(bed.management.auditLogPath, { user: "alice" });
    assert.deepEqual([request?.verb, request?.name, request?.code], ["create", "a", 201]);
    const nobody = await through("nobody", []);
    const anonymous = new ClusterClient({ server: proxy.server, certificateAuthority: bed.management.certificateAuthority.certificate });
    try {
      await assert.rejects(nobody.list(secrets, { namespace }), (error) => isClusterError(error, "forbidden") && error.message.includes('"nobody"'));
      await assert.rejects(
        anonymous.list(secrets, { namespace }),
        (error) => isClusterError(error, "forbidden") && error.message.includes('"system:anonymous"'),
      );
    } finally {
      await Promise.all([nobody.close(), anonymous.close()]);
    }
  });

  it("does not let a client speak for another", async () => {
    const posing = new ClusterClient({
      server: proxy.server,
      certificateAuthority: bed.management.certificateAuthority.certificate,
      authorize: () => Promise.resolve({ "X-Remote-User": "alice", "X-Remote-Group": "system:masters" }),
    });
    try {
      await fails(posing.list(secrets, { namespace }), "forbidden");
    } finally {
      await posing.close();
    }
  });

  it("carries Cluster API's own requests to the workload cluster", () => {
    assert.ok(
      bed.workload.proxy.count({ userAgent: /cluster-api-core|cluster-cache/ }) > 0,
      JSON.stringify(bed.workload.proxy.requests.map(({ userAgent }) => userAgent)),
    );
  });

  it("counts requests by client and kind", async () => {
    const before = proxy.requests.length;
    await create(alice, "a");
    await create(bob, "b");
    await alice.list(configMaps, { namespace });
    await alice.create(configMaps, { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "dry", namespace } }, { dryRun: true });
    const seen = proxy.requests.slice(before);
    assert.deepEqual(
      seen.map(({ user, groups, verb, resource, name, write, outcome }) => [user, groups.join(","), verb, resource, name ?? "", write, outcome]),
      [
        ["alice", "system:masters", "create", "configmaps", "", true, 201],
        ["bob", "system:masters,others", "create", "configmaps", "", true, 201],
        ["alice", "system:masters", "list", "configmaps", "", false, 200],
        ["alice", "system:masters", "create", "configmaps", "", false, 201],
      ],
    );
    assert.equal(proxy.count({ user: "bob", userAgent: /^bob's tool/, only: "writes", exceptResources: ["leases"] }), 1);
    assert.equal(proxy.count({ user: "bob", exceptResources: ["configmaps"] }), 0);
  });

  it("cuts before the n-th write: it never reaches the server", async () => {
    const met: string[] = [];
    order({
      match: { user: "alice", only: "writes" },
      nth: 2,
      fault: { kind: "cut", when: "before" },
      act: async ({ verb }) => void met.push(`${verb}, stored: ${(await stored()).join()}`),
    });
    await create(alice, "a1");
    await create(bob, "b1");
    await fails(create(alice, "a2"), "unreachable");
    await create(alice, "a3");
    assert.deepEqual(await stored(), ["a1", "a3", "b1"]);
    assert.deepEqual(met, ["create, stored: a1,b1"]);
  });

  it("cuts after the n-th write: the server has carried it out, the client never hears of it", async () => {
    const met: string[] = [];
    order({ match: { user: "alice", only: "writes" }, nth: 2, fault: { kind: "cut", when: "after" }, act: async () => void met.push((await stored()).join()) });
    await create(alice, "a1");
    await fails(create(alice, "a2"), "unreachable");
    assert.deepEqual(await stored(), ["a1", "a2"]);
    assert.deepEqual(met, ["a1,a2"]);
  });

  for (const [status, kind] of [
    [409, "conflict"],
    [429, "throttled"],
    [500, "server"],
    [503, "server"],
  ] as const) {
    it(`answers ${status} in the server's place, as often as told`, async () => {
      order({ match: { user: "alice", verb: "create" }, times: 2, fault: { kind: "answer", status, retryAfterSeconds: 7 } });
      await assert.rejects(create(alice, "a"), (error) => isClusterError(error, kind) && error.status === status && error.retryAfterSeconds === 7);
      await fails(create(alice, "a"), kind);
      await alice.list(configMaps, { namespace });
      await create(alice, "a");
      assert.deepEqual(await stored(), ["a"]);
    });
  }

  it("delays", async () => {
    order({ match: { user: "alice", resource: "configmaps" }, fault: { kind: "delay", milliseconds: 300 } });
    const began = performance.now();
    await create(alice, "a");
    assert.ok(performance.now() - began >= 299);
  });

  it("swallows everything and lets go again", async () => {
    order({ match: { user: "alice" }, fault: { kind: "blackHole" } });
    await fails(alice.list(configMaps, { namespace, timeoutMs: 300 }), "timeout");
    await create(bob, "b");
    removals.pop()?.();
    assert.equal(
      (await alice.list(configMaps, { namespace })).items.some(({ metadata }) => metadata.name === "b"),
      true,
    );
  });

  describe("watches", () => {
    let events: string[];
    let ended: Promise<unknown>;
    let stop: AbortController;

    beforeEach(async () => {
      events = [];
      stop = new AbortController();
      const { resourceVersion } = await alice.list(configMaps, { namespace });
      const collect = async (stream: AsyncIterable<WatchEvent>): Promise<string> => {
        try {
          for await (const event of stream) if (event.type !== "BOOKMARK") events.push(`${event.type} ${event.object.metadata.name}`);
          return "closed";
        } catch (error) {
          return isClusterError(error) ? error.kind : String(error);
        }
      };
      ended = collect(alice.watch(configMaps, { namespace, resourceVersion, signal: stop.signal }));
      await create(bob, "one");
      await until("the first event", () => events.length === 1);
    });
    afterEach(async () => {
      stop.abort();
      await ended;
    });

    it("fall silent and go on where they stopped", async () => {
      order({ match: { user: "alice", only: "watches" }, fault: { kind: "stall" } });
      await create(bob, "two");
      // Other requests of the same client are served, and what they say is later than the silent watch knows.
      assert.ok((await alice.list(configMaps, { namespace })).items.some(({ metadata }) => metadata.name === "two"));
      assert.deepEqual(events, ["ADDED one"]);
      removals.pop()?.();
      await until("the second event", () => events.length === 2);
      assert.deepEqual(events, ["ADDED one", "ADDED two"]);
    });

    it("are cut", async () => {
      assert.equal(proxy.cutWatches({ user: "bob" }), 0);
      assert.equal(proxy.cutWatches({ user: "alice", resource: "configmaps" }), 1);
      assert.equal(await ended, "unreachable");
    });

    it("end at the server when their client goes", async () => {
      stop.abort();
      await ended;
      await until("the watch to be forgotten", () => proxy.cutWatches({ user: "alice" }) === 0);
    });
  });
});
