import assert from "node:assert/strict";

import { secrets } from "../../../provider/cluster/kinds.ts";
import { machineInventories, machineInventoryPools } from "../../../provider/hosts/kinds.ts";
import type { Bmc, BmcAccess, BmcTarget } from "../../../provider/redfish/bmc.ts";
import { BmcError } from "../../../provider/redfish/bmc.ts";
import { jsonOf } from "../../../provider/resources/changes.ts";
import { resources } from "../../../provider/resources/index.ts";
import type { Json } from "../../../provider/resources/inputs.ts";
import { PartialFailure, UNKNOWN } from "../../../provider/resources/lifecycle.ts";
import type { FakeCluster } from "../fakes/fake-cluster.ts";
import type { TestContext } from "./context.ts";
import { contextFor, run, watchForce } from "./context.ts";
import { fakeManagement, NAMESPACE, seedInventory } from "./fake-cluster-api.ts";

const { MachineInventoryPool } = resources;
const key = `${NAMESPACE}/edge-workers-pool`;
const bmc = (n: number, secretName?: string): Json => ({ address: `https://10.0.7.${n}`, ...(secretName === undefined ? {} : { secretName }) });
const members = [
  { name: "inv-1", hostname: "w1", bmc: bmc(1, "bmc-1") },
  { name: "inv-2", bmc: bmc(2) },
];
const credentials = { "inv-2": { username: "admin", password: "s3cret" } };

function args(change: Json = {}): Json {
  return { clusterName: "edge", machineInventories: members, bmcCredentials: credentials, owner: "proj/stack/workers", resourceName: "workers", ...change };
}

function world(): { cluster: FakeCluster; context: TestContext } {
  const cluster = fakeManagement();
  for (const name of ["inv-1", "inv-2", "inv-3"]) seedInventory(cluster, name, { kept: "yes" });
  return { cluster, context: contextFor(cluster) };
}

async function checked(context: TestContext, news: Json, olds?: Json): Promise<Json> {
  const { inputs, failures } = await MachineInventoryPool.check(context, olds, news);
  assert.deepEqual(failures, []);
  return inputs;
}

async function created(news: Json = args()): Promise<ReturnType<typeof world> & { state: Json; inputs: Json }> {
  const made = world();
  const inputs = await checked(made.context, news);
  const { state } = await MachineInventoryPool.create(made.context, inputs);
  made.context.lines.length = 0;
  return { ...made, state, inputs };
}

function annotationsOf(cluster: FakeCluster, name: string): Record<string, string> | undefined {
  return cluster.peek(machineInventories, `${NAMESPACE}/${name}`)?.metadata.annotations;
}

function take(cluster: FakeCluster, name: string, machine: string, state = "Allocated"): void {
  cluster.edit(machineInventories, `${NAMESPACE}/${name}`, (object) => {
    object.metadata.annotations = {
      ...object.metadata.annotations,
      "baremetal.alauda.io/allocation-state": state,
      "baremetal.alauda.io/owner-kind": "Machine",
      "baremetal.alauda.io/owner-name": machine,
      "baremetal.alauda.io/owner-uid": `uid-${machine}`,
    };
  });
}

describe("MachineInventoryPool", () => {
  it("checks without a write and says which hosts it gets", async () => {
    const { cluster, context } = world();
    const inputs = await checked(context, args());
    assert.deepEqual([inputs["poolName"], inputs["namespace"], inputs["waitTimeout"]], ["edge-workers-pool", NAMESPACE, "2m"]);
    assert.deepEqual(context.lines, ["info: pool edge-workers-pool gets inv-1 (w1), inv-2"]);
    assert.deepEqual(
      cluster.requests.filter(({ write }) => write),
      [],
    );
  });

  it("makes the pool, the inline Secret, and makes BMCs known on the inventories", async () => {
    const { cluster, state } = await created();
    const pool = cluster.peek(machineInventoryPools, key);
    assert.ok(pool);
    assert.deepEqual(pool["spec"], { machineInventories: [{ name: "inv-1", hostname: "w1" }, { name: "inv-2" }] });
    assert.equal(pool.metadata.annotations?.["pulumi-baremetal.dev/owner"], "proj/stack/workers");
    assert.deepEqual(annotationsOf(cluster, "inv-1"), {
      kept: "yes",
      "baremetal.alauda.io/pool": "edge-workers-pool",
      "pulumi-baremetal.dev/bmc-address": "https://10.0.7.1",
      "pulumi-baremetal.dev/bmc-secret": "bmc-1",
    });
    assert.equal(annotationsOf(cluster, "inv-2")?.["pulumi-baremetal.dev/bmc-secret"], "inv-2-bmc");
    assert.deepEqual(
      cluster.all(secrets).map(({ metadata }) => metadata.name),
      ["inv-2-bmc"],
    );
    assert.deepEqual(cluster.peek(secrets, `${NAMESPACE}/inv-2-bmc`)?.["data"], { username: "YWRtaW4=", password: "czNjcmV0" });
    assert.deepEqual(state["pending"], []);
  });

  it("never makes an inventory; one that registers later is completed by the next run", async () => {
    const later = [...members, { name: "inv-9", hostname: "w9" }];
    const { cluster, context, state, inputs } = await created(args({ machineInventories: later }));
    assert.deepEqual(state["pending"], ["inv-9"]);
    assert.equal(annotationsOf(cluster, "inv-9"), undefined);
    assert.equal((await MachineInventoryPool.diff(context, key, state, inputs)).changed, false);
    seedInventory(cluster, "inv-9");
    assert.equal((await MachineInventoryPool.diff(context, key, state, inputs)).changed, true);
    const next = await MachineInventoryPool.update(context, key, state, inputs);
    assert.deepEqual(next["pending"], []);
    assert.equal(annotationsOf(cluster, "inv-9")?.["baremetal.alauda.io/pool"], "edge-workers-pool");
  });

  it("sees no difference in what it made", async () => {
    const { context, state } = await created();
    const news = await checked(context, args(), args());
    assert.deepEqual(await MachineInventoryPool.diff(context, key, state, news), { changed: false, replaces: [], deleteBeforeReplace: false });
    assert.deepEqual(await MachineInventoryPool.read(context, key, state), { id: key, state });
  });

  it("takes another waitTimeout into its state, by which a removal goes", async () => {
    const { context, state } = await created();
    const news = await checked(context, args({ waitTimeout: "7m" }), args());
    assert.equal((await MachineInventoryPool.diff(context, key, state, news)).changed, true);
    assert.equal((await MachineInventoryPool.update(context, key, state, news))["waitTimeout"], "7m");
  });

  it("finds what somebody took off an inventory at the next refresh", async () => {
    const { cluster, context, state, inputs } = await created();
    cluster.edit(machineInventories, `${NAMESPACE}/inv-1`, (object) => (object.metadata.annotations = {}));
    const refreshed = await MachineInventoryPool.read(context, key, state);
    assert.deepEqual(refreshed?.state["pending"], ["inv-1"]);
    assert.equal((await MachineInventoryPool.diff(context, key, refreshed.state, inputs)).changed, true);
  });

  it("drops a free host and its Secret, and keeps what is not ours", async () => {
    const { cluster, context, state, inputs } = await created();
    const news = await checked(context, args({ machineInventories: [members[0]], bmcCredentials: undefined }), inputs);
    await MachineInventoryPool.diff(context, key, state, news);
    assert.deepEqual(context.lines, ["info: pool edge-workers-pool gives up inv-2"]);
    await MachineInventoryPool.update(context, key, state, news);
    assert.deepEqual(annotationsOf(cluster, "inv-2"), { kept: "yes" });
    assert.deepEqual(cluster.all(secrets), []);
  });

  it("refuses to drop a host in use, naming its machine", async () => {
    const { cluster, context, state, inputs } = await created();
    take(cluster, "inv-2", "edge-workers-x");
    const news = args({ machineInventories: [members[0]], bmcCredentials: undefined });
    assert.deepEqual((await MachineInventoryPool.check(context, inputs, news)).failures, [
      {
        property: "machineInventories",
        reason:
          "inventory inv-2 is in use by machine edge-workers-x and cannot be dropped; remove that machine first (removeMachines of its WorkerGroup), or keep the inventory",
      },
    ]);
    await assert.rejects(MachineInventoryPool.update(context, key, state, { ...inputs, machineInventories: [members[0]] }), /in use by machine edge-workers-x/);
  });

  it("puts a host back that a machine took while it was dropped", async () => {
    const { cluster, context, state, inputs } = await created();
    cluster.after = ({ verb, resource }) => {
      if (verb === "apply" && resource.startsWith("machineinventorypools") && annotationsOf(cluster, "inv-2")?.["baremetal.alauda.io/owner-uid"] === undefined)
        take(cluster, "inv-2", "quick");
    };
    await assert.rejects(
      MachineInventoryPool.update(context, key, state, { ...inputs, machineInventories: [members[0]], bmcCredentials: undefined }),
      /in use by machine quick/,
    );
    assert.deepEqual(cluster.peek(machineInventoryPools, key)?.["spec"], { machineInventories: [{ name: "inv-1", hostname: "w1" }, { name: "inv-2" }] });
    assert.equal(annotationsOf(cluster, "inv-2")?.["pulumi-baremetal.dev/bmc-address"], "https://10.0.7.2");
  });

  it("writes annotations against the version that it read", async () => {
    const { cluster, context } = world();
    const inputs = await checked(context, args());
    let raced = false;
    cluster.before = ({ verb, key: at }) => {
      if (verb !== "patch" || raced || !at.endsWith("inv-1")) return;
      raced = true;
      cluster.edit(machineInventories, at, (object) => (object.metadata.annotations = { ...object.metadata.annotations, other: "writer" }));
    };
    await MachineInventoryPool.create(context, inputs);
    assert.ok(raced);
    assert.equal(annotationsOf(cluster, "inv-1")?.["other"], "writer");
    assert.equal(annotationsOf(cluster, "inv-1")?.["baremetal.alauda.io/pool"], "edge-workers-pool");
  });

  it("keeps its state when it fails half-way", async () => {
    const { cluster, context } = world();
    const inputs = await checked(context, args());
    cluster.fail(({ verb, key: at }) => verb === "patch" && at.endsWith("inv-2"), "forbidden");
    const failure: unknown = await MachineInventoryPool.create(context, inputs).catch((error: unknown) => error);
    assert.ok(failure instanceof PartialFailure);
    assert.equal(failure.id, key);
    assert.ok(!failure.message.includes("s3cret"));
    const next = await MachineInventoryPool.update(context, key, jsonOf(failure.state), inputs);
    assert.deepEqual(next["pending"], []);
  });

  it("refuses a Secret that is not its own", async () => {
    const { cluster, context } = world();
    cluster.seed(secrets, { metadata: { name: "inv-2-bmc", namespace: NAMESPACE }, data: { username: "eA==" } });
    await assert.rejects(
      MachineInventoryPool.create(context, await checked(context, args())),
      /Secret cpaas-system\/inv-2-bmc already exists and was not made by this program.*or name it in bmc\.secretName of inv-2/,
    );
    assert.deepEqual(cluster.peek(secrets, `${NAMESPACE}/inv-2-bmc`)?.["data"], { username: "eA==" });
  });

  it("deletes the pool and lets its hosts go", async () => {
    const { cluster, context, state } = await created();
    await run(context, MachineInventoryPool.delete(context, key, state));
    assert.equal(cluster.peek(machineInventoryPools, key), undefined);
    assert.deepEqual(annotationsOf(cluster, "inv-1"), { kept: "yes" });
    assert.deepEqual(cluster.all(secrets), []);
  });

  it("leaves a pool that another program has taken over, and its hosts and Secrets", async () => {
    const { cluster, context, state } = await created();
    cluster.edit(machineInventoryPools, key, ({ metadata }) => (metadata.annotations = { "pulumi-baremetal.dev/owner": "a/b/c" }));
    take(cluster, "inv-1", "theirs");
    cluster.requests.length = 0;
    assert.equal(await MachineInventoryPool.read(context, key, state), undefined);
    await run(context, MachineInventoryPool.delete(context, key, state));
    assert.deepEqual(
      cluster.requests.filter(({ write }) => write),
      [],
    );
    assert.deepEqual(context.lines, [`warn: MachineInventoryPool ${key} belongs to a/b/c now; it is left there`]);
  });

  it("deletes a pool that names no owner, and does without one whose kind is gone", async () => {
    const { cluster, context, state } = await created();
    cluster.edit(machineInventoryPools, key, ({ metadata }) => (metadata.annotations = {}));
    await run(context, MachineInventoryPool.delete(context, key, state));
    assert.equal(cluster.peek(machineInventoryPools, key), undefined);
    cluster.unserve(machineInventoryPools);
    await run(context, MachineInventoryPool.delete(context, key, state));
  });

  it("leaves the BMC on a host that a machine takes while it is let go", async () => {
    const { cluster, context, state } = await created();
    cluster.before = ({ verb, key: at }) => {
      if (verb !== "patch" || !at.endsWith("inv-2")) return;
      cluster.before = undefined;
      take(cluster, "inv-2", "quick");
    };
    await assert.rejects(run(context, MachineInventoryPool.delete(context, key, state)), {
      message: "inventory inv-2 is in use by machine quick and cannot be dropped; remove that machine first",
    });
    assert.equal(annotationsOf(cluster, "inv-2")?.["pulumi-baremetal.dev/bmc-address"], "https://10.0.7.2");
    assert.ok(cluster.peek(machineInventoryPools, key));
    assert.equal(cluster.all(secrets).length, 1);
  });

  it("keeps the BMC of a quarantined host, and warns", async () => {
    const { cluster, context, state } = await created();
    cluster.edit(
      machineInventories,
      `${NAMESPACE}/inv-2`,
      (object) => (object.metadata.annotations = { ...object.metadata.annotations, "baremetal.alauda.io/allocation-state": "Quarantined" }),
    );
    await run(context, MachineInventoryPool.delete(context, key, state));
    assert.equal(annotationsOf(cluster, "inv-2")?.["pulumi-baremetal.dev/bmc-secret"], "inv-2-bmc");
    assert.equal(cluster.all(secrets).length, 1);
    assert.ok(context.lines.some((line) => line.startsWith("warn: inv-2 is kept off")));
  });

  it("waits for a host that is being cleaned, and fails on one that stays in use", async () => {
    const { cluster, context, state } = await created(args({ waitTimeout: "30s" }));
    take(cluster, "inv-1", "going", "Preparing");
    await assert.rejects(run(context, MachineInventoryPool.delete(context, key, state)), {
      message:
        "pool edge-workers-pool cannot be deleted: inv-1 is in use by machine going; remove these machines first (their WorkerGroup must depend on the pool, so that it goes before it)",
    });
    assert.ok(cluster.peek(machineInventoryPools, key));
    let seconds = 0;
    await run(context, MachineInventoryPool.delete(context, key, state), () => {
      if (++seconds === 5) {
        cluster.edit(machineInventories, `${NAMESPACE}/inv-1`, (object) => {
          object.metadata.annotations = Object.fromEntries(
            Object.entries(object.metadata.annotations ?? {}).filter(([name]) => !name.startsWith("baremetal.alauda.io/owner")),
          );
        });
      }
    });
    assert.equal(cluster.peek(machineInventoryPools, key), undefined);
  });

  describe("refuses", () => {
    for (const [what, change, failures] of [
      [
        "an inventory listed twice",
        { machineInventories: [{ name: "inv-1" }, { name: "inv-1" }], bmcCredentials: undefined },
        [["machineInventories[1].name", "inventory inv-1 is listed twice, first as machineInventories[0]; list it once"]],
      ],
      [
        "a host name used twice",
        {
          machineInventories: [
            { name: "inv-1", hostname: "w" },
            { name: "inv-2", hostname: "w" },
          ],
          bmcCredentials: undefined,
        },
        [["machineInventories[1].hostname", "host name w is also that of inv-1 (machineInventories[0]); each host needs its own"]],
      ],
      [
        "a host name that is another's inventory name",
        { machineInventories: [{ name: "inv-1" }, { name: "inv-2", hostname: "inv-1" }], bmcCredentials: undefined },
        [["machineInventories[1].hostname", "host name inv-1 is also that of inv-1 (machineInventories[0]); each host needs its own"]],
      ],
      ["an empty list", { machineInventories: [] }, [["machineInventories", "must name at least one MachineInventory"]]],
      [
        "a name that is none",
        { machineInventories: [{ name: "Inv_1" }] },
        [["machineInventories[0].name", "must be a DNS name: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"]],
      ],
      [
        "a BMC without credentials",
        { bmcCredentials: undefined },
        [["machineInventories[1].bmc.secretName", "inv-2 has a BMC but no credentials; set bmc.secretName, or add inv-2 to bmcCredentials"]],
      ],
      [
        "two sources of credentials",
        { machineInventories: [{ name: "inv-2", bmc: bmc(2, "x") }] },
        [["machineInventories[0].bmc.secretName", "inv-2 has both bmc.secretName and an entry in bmcCredentials; keep one of them"]],
      ],
      [
        "credentials of nobody",
        { machineInventories: [members[0]] },
        [["bmcCredentials", "inv-2 is no inventory of this pool that has a bmc; remove it or correct its spelling"]],
      ],
    ] as const) {
      it(what, async () => {
        const { context } = world();
        const result = await MachineInventoryPool.check(context, undefined, args(change));
        assert.deepEqual(
          result.failures,
          failures.map(([property, reason]) => ({ property, reason })),
        );
      });
    }

    it("an address that is no Redfish service", async () => {
      const { context } = world();
      const { failures } = await MachineInventoryPool.check(
        context,
        undefined,
        args({ machineInventories: [{ name: "inv-2", bmc: { address: "ipmi://10.0.0.1" } }] }),
      );
      assert.equal(failures[0]?.property, "machineInventories[0].bmc.address");
    });

    it("an inventory or a host name of another pool", async () => {
      const { cluster, context } = world();
      cluster.seed(machineInventoryPools, {
        metadata: {
          name: "other",
          namespace: NAMESPACE,
          labels: { "cluster.x-k8s.io/cluster-name": "edge" },
          annotations: { "pulumi-baremetal.dev/owner": "a/b/c" },
        },
        spec: { machineInventories: [{ name: "inv-2" }, { name: "inv-3", hostname: "w1" }] },
      });
      assert.deepEqual((await MachineInventoryPool.check(context, undefined, args())).failures, [
        {
          property: "machineInventories[0].hostname",
          reason: "host name w1 is also that of inv-3 in pool other of the same cluster; each host of a cluster needs its own",
        },
        {
          property: "machineInventories[1].name",
          reason: "inventory inv-2 belongs to pool other (a/b/c), and an inventory belongs to one pool; drop it there first",
        },
      ]);
    });

    it("a pool that another program has", async () => {
      const { cluster, context } = world();
      cluster.seed(machineInventoryPools, {
        metadata: { name: "edge-workers-pool", namespace: NAMESPACE, annotations: { "pulumi-baremetal.dev/owner": "a/b/c" } },
        spec: {},
      });
      await assert.rejects(
        MachineInventoryPool.create(context, await checked(context, args())),
        /belongs to a\/b\/c; give this resource another `name`, or set `adopt: true` to take it over/,
      );
      await MachineInventoryPool.create(context, await checked(context, args({ adopt: true })));
    });
  });

  it("takes back what others changed in its list once a refresh has shown it, and not before", async () => {
    const { context, state, inputs, cluster } = await created();
    const forced = watchForce(cluster, machineInventoryPools);
    const change = (): unknown => cluster.edit(machineInventoryPools, key, (object) => (object["spec"] = { machineInventories: [{ name: "inv-1" }] }));
    change();
    const refreshed = await MachineInventoryPool.read(context, key, state);
    assert.ok(refreshed);
    assert.equal((await MachineInventoryPool.diff(context, key, refreshed.state, inputs)).changed, true);
    await MachineInventoryPool.update(context, key, state, inputs);
    change();
    await MachineInventoryPool.update(context, key, refreshed.state, inputs);
    assert.deepEqual(forced, [false, true]);
  });

  it("leaves out what is not known yet", async () => {
    const { context } = world();
    const unknown = [{ name: "inv-1", bmc: { address: UNKNOWN, secretName: "x" } }];
    const inputs = await checked(context, args({ machineInventories: unknown, bmcCredentials: UNKNOWN }));
    assert.equal(inputs["poolName"], "edge-workers-pool");
  });

  it("replaces, the old one first, when it gets another name", async () => {
    const { context, state } = await created();
    const news = await checked(context, args({ name: "mine" }), args());
    assert.deepEqual(await MachineInventoryPool.diff(context, key, state, news), { changed: true, replaces: ["poolName"], deleteBeforeReplace: true });
  });

  describe("with verifyBmc", () => {
    class OneBadBmc implements BmcAccess {
      readonly asked: BmcTarget[] = [];
      bmc(target: BmcTarget): Bmc {
        this.asked.push(target);
        return {
          readPower: () =>
            target.address.endsWith(".2")
              ? Promise.reject(new BmcError("unauthorized", target.address, "the BMC refuses the credentials"))
              : Promise.resolve({ power: "on" as const, literal: "On", at: 0, system: "/" }),
          forceOff: () => Promise.reject(new Error("not in a check")),
          on: () => Promise.reject(new Error("not in a check")),
          resetTypes: () => Promise.resolve([]),
        };
      }
      close(): Promise<void> {
        return Promise.resolve();
      }
    }

    it("asks each BMC once and fails on the one that cannot be used", async () => {
      const { cluster } = world();
      cluster.seed(secrets, { metadata: { name: "bmc-1", namespace: NAMESPACE }, data: { username: "cm9vdA==", password: "cGFzcw==" } });
      const bmcs = new OneBadBmc();
      const { failures } = await MachineInventoryPool.check(contextFor(cluster, bmcs), undefined, args({ verifyBmc: true }));
      assert.deepEqual(failures, [{ property: "machineInventories[1].bmc", reason: "BMC of inv-2: the BMC refuses the credentials" }]);
      assert.deepEqual(
        bmcs.asked.sort((a, b) => a.address.localeCompare(b.address)),
        [
          { address: "https://10.0.7.1", username: "root", password: "pass" },
          { address: "https://10.0.7.2", username: "admin", password: "s3cret" },
        ],
      );
    });

    it("names a Secret that is not there", async () => {
      const { cluster } = world();
      const { failures } = await MachineInventoryPool.check(
        contextFor(cluster, new OneBadBmc()),
        undefined,
        args({ verifyBmc: true, machineInventories: [members[0]], bmcCredentials: undefined }),
      );
      assert.deepEqual(failures, [
        {
          property: "machineInventories[0].bmc",
          reason: "BMC of inv-1: Secret cpaas-system/bmc-1 does not exist; create it with the keys username and password",
        },
      ]);
    });
  });
});
