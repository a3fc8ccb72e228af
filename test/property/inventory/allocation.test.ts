import assert from "node:assert/strict";

import fc from "fast-check";

import { baremetalMachines, machineInventories } from "../../../provider/hosts/kinds.ts";
import { parseInventory } from "../../../provider/hosts/inventory.ts";
import { parseMachine } from "../../../provider/controller/inventory/machine.ts";
import { chooseInventory } from "../../../provider/controller/inventory/allocation.ts";
import { parsePool } from "../../../provider/hosts/pool.ts";
import { FakeCluster } from "../../unit/fakes/fake-cluster.ts";
import { namespace, World } from "../../unit/inventory/world.ts";

/** What is true of every state: a host has one owner, and a machine one host. */
function check(cluster: FakeCluster): void {
  const owners = new Map<string, string[]>();
  for (const object of cluster.all(machineInventories)) {
    const { owner, name } = parseInventory(object);
    if (owner !== undefined) owners.set(owner.uid, [...(owners.get(owner.uid) ?? []), name]);
  }
  for (const [owner, names] of owners) assert.equal(names.length, 1, `machine ${owner} owns ${names.join(" and ")}`);
  const chosen = cluster
    .all(baremetalMachines)
    .map(parseMachine)
    .filter(({ phase }) => phase !== undefined && phase !== "Pending")
    .map(({ inventory }) => inventory?.name);
  assert.equal(new Set(chosen).size, chosen.length, "two machines have one host");
}

describe("allocation under concurrent claims", () => {
  it("gives each host one owner, whatever fails, with two controllers at once", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 7 }),
        fc.array(fc.constantFrom(...Array.from({ length: 12 }, () => "none"), "conflict", "timeout before", "timeout after", "server before"), {
          maxLength: 60,
        }),
        fc.array(fc.constantFrom(0, 0, 1, 40), { maxLength: 20 }),
        fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 7 }),
        async (hosts, machineCount, faults, pauses, choices) => {
          const world = new World();
          const other = new World(world);
          world.hosts(hosts);
          let turn = 0;
          let claim = 0;
          const { cluster } = world;
          cluster.before = async ({ write, resource }) => {
            if (!write) return;
            const at = turn++;
            // Claims arrive out of order, some long after they were sent.
            const pause = resource.startsWith("machineinventories.") ? (pauses[claim++] ?? 0) : 0;
            for (let round = 0; round < pause; round++) await new Promise<void>((resolve) => setImmediate(resolve));
            const fault = faults[at];
            if (fault === "conflict") cluster.fail((request) => request.write, "conflict");
            else if (fault === "timeout before") cluster.fail((request) => request.write, "timeout");
            else if (fault === "timeout after") cluster.fail((request) => request.write, "timeout", { after: true });
            else if (fault === "server before") cluster.fail((request) => request.write, "server");
          };
          const violations: unknown[] = [];
          cluster.after = () => {
            try {
              check(cluster);
            } catch (error) {
              violations.push(error);
            }
          };
          try {
            await Promise.all([world.start(), other.start()]);
            for (let index = 0; index < machineCount; index++) {
              const name = `m${index + 1}`;
              world.machine(name);
              const choice = choices[index];
              if (choice === undefined || choice > hosts) continue;
              // As if a controller with an older view had chosen for it: several may want one host.
              const chosen = { name: `inv-${choice}`, uid: world.inventory(`inv-${choice}`).uid };
              cluster.edit(baremetalMachines, `${namespace}/${name}`, (object) => (object["status"] = { phase: "Pending", machineInventoryRef: chosen }));
            }
            await world.advance(20_000);
            cluster.before = undefined;
            cluster.heal();
            await world.advance(120_000);
            assert.deepEqual(violations, []);
            const owned = cluster.all(machineInventories).filter((object) => parseInventory(object).owner !== undefined).length;
            assert.equal(owned, Math.min(hosts, machineCount));
          } finally {
            cluster.before = undefined;
            cluster.after = undefined;
            await Promise.all([world.end(), other.end()]);
          }
        },
      ),
      { numRuns: 60, plugins: [fc.interruptAfterTimeLimit(60_000, { failOnInterrupt: true })] },
    );
  }).timeout(120_000);

  it("chooses the first entry of the pool that nothing speaks against", () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom("free", "owned", "unregistered", "promised", "held"), { maxLength: 12 }), (states) => {
        const name = (index: number): string => `inv-${index}`;
        const pool = parsePool({
          apiVersion: "x/v1",
          kind: "MachineInventoryPool",
          metadata: { name: "p", namespace: "n", uid: "p", resourceVersion: "1" },
          spec: { machineInventories: states.map((_, index) => ({ name: name(index) })) },
        });
        const allocation = chooseInventory(pool, {
          inventory: (wanted) => {
            const state = states[Number(wanted.slice(4))];
            if (state === "unregistered") return undefined;
            const annotations: Record<string, string> =
              state === "owned" ? { "baremetal.alauda.io/owner-uid": "x" } : state === "held" ? { "pulumi-baremetal.dev/power-hold": "{}" } : {};
            const metadata = { name: wanted, namespace: "n", uid: wanted, resourceVersion: "1", annotations };
            return {
              apiVersion: "elemental.cattle.io/v1beta1",
              kind: "MachineInventory",
              metadata,
              status: { conditions: [{ type: "Ready", status: "True" }] },
            };
          },
          poolExists: () => true,
          isPromised: (wanted) => states[Number(wanted.slice(4))] === "promised",
        });
        const first = states.indexOf("free");
        assert.equal(allocation.chosen?.name, first < 0 ? undefined : name(first));
        assert.equal(allocation.others.length, first < 0 ? states.length : first);
      }),
    );
  });
});
