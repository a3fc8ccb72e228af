/** Wrong programs through the real CLI: each is refused with the words to put it right, and nothing is written. */
import assert from "node:assert/strict";
import { resolve } from "node:path";

import { machineDeployments, machineHealthChecks } from "../../provider/capi/kinds.ts";
import { apiVersionOf } from "../../provider/cluster/objects.ts";
import type { KubernetesObject, ResourceKind } from "../../provider/cluster/objects.ts";
import { inventoryCrds, remediationCrds } from "../../provider/controller/crds/index.ts";
import { machineInventories, machineInventoryPools } from "../../provider/hosts/kinds.ts";
import { allocationAnnotations, OWNER_ANNOTATION } from "../../provider/hosts/names.ts";
import { isWrite, readAuditLog } from "../testbed/audit.ts";
import { issueClientCertificate, startBed } from "../testbed/bed.ts";
import type { Bed } from "../testbed/bed.ts";
import { ADMINISTRATORS, kubeconfigOfConnection } from "../testbed/control-plane.ts";
import { freePort } from "../testbed/ports.ts";
import { PulumiProject } from "./pulumi-cli.ts";
import type { RunResult } from "./pulumi-cli.ts";

const USER = "operator";
const STRANGER = "stranger";
const OTHER_OWNER = "other/prod/workers";
const LOST = "00000000-0000-0000-0000-000000000000";

/** What the resources and the program complained of, without what the engine puts before and after it. */
function complaints({ events }: RunResult): string[] {
  return events.flatMap(({ diagnosticEvent: event }) => {
    if (event?.severity !== "error" || event.message.trim() === "update failed") return [];
    const [, kind, property, reason] = /:(\w+) resource '\w+'(?:: property (\S+) value .*?)? has a problem: (.*)$/s.exec(event.message.trimEnd()) ?? [];
    return reason === undefined ? [event.message.trimEnd()] : [`${kind ?? ""}${property === undefined ? "" : ` ${property}`}: ${reason}`];
  });
}

describe("programs with a mistake", function () {
  this.timeout(180_000);
  let bed: Bed;
  let project: PulumiProject;
  let kubeconfig: string;

  async function make(kind: ResourceKind, name: string, content: Partial<KubernetesObject> & { annotations?: Record<string, string> }): Promise<void> {
    const { annotations, ...rest } = content;
    const metadata = { namespace: bed.namespace, name, ...(annotations === undefined ? {} : { annotations }) };
    await bed.management.cluster.create(kind, { apiVersion: apiVersionOf(kind), kind: kind.kind, metadata, ...rest });
  }

  /** An inventory as its operator and the inventory controller would leave it. */
  async function register(name: string, ready: boolean, machine?: string): Promise<void> {
    const owner = machine === undefined ? {} : { [allocationAnnotations.ownerName]: machine, [allocationAnnotations.ownerUid]: LOST };
    await make(machineInventories, name, { annotations: owner, spec: {} });
    const condition = { type: "Ready", status: ready ? "True" : "False", message: "the agent is silent" };
    const status = { conditions: [condition] };
    await bed.management.cluster.patch(machineInventories, { namespace: bed.namespace, name }, "merge", { status }, { subresource: "status" });
  }

  before(async () => {
    bed = await startBed({ crds: [...inventoryCrds, ...remediationCrds] });
    await register("rack1-01", true);
    await register("rack1-02", false);
    await register("rack1-03", true, "edge-other-x7k2p");
    await make(machineInventoryPools, "edge-other-pool", { spec: { machineInventories: [{ name: "rack1-09", hostname: "edge-w9" }] } });
    kubeconfig = kubeconfigOfConnection(await issueClientCertificate(bed.management, { user: USER, groups: [ADMINISTRATORS] }));
    project = await PulumiProject.create({ directory: resolve(import.meta.dirname, "fixtures/bad-input") });
    await project.config({ "baremetal:namespace": bed.namespace });
  });

  after(async () => {
    project.close();
    await bed.stop();
  });

  async function run(command: "preview" | "up", name: string, access = kubeconfig): Promise<RunResult> {
    await project.config({ "baremetal:kubeconfig": access }, { secret: true });
    await project.config({ case: name });
    return project[command]();
  }

  async function refused(name: string, expected: string[], access = kubeconfig): Promise<RunResult> {
    const result = await run("preview", name, access);
    assert.deepEqual(complaints(result), expected);
    assert.equal(result.exitCode, 1);
    return result;
  }

  it("previews the right one, so that each refusal is for its mistake alone", async () => {
    const result = await run("preview", "right");
    assert.deepEqual([result.exitCode, complaints(result)], [0, []]);
    assert.deepEqual(
      result.messages.filter((line) => line.startsWith("pulumi-baremetal: ")),
      [
        "pulumi-baremetal: MachineInventoryPool workers: pool edge-workers-pool gets rack1-01 (edge-w1), rack1-02 (edge-w2), rack1-03 (edge-w3)",
        "pulumi-baremetal: WorkerGroup workers: machines: 0 → 1",
        "pulumi-baremetal: WorkerGroup workers: takes rack1-01 (edge-w1), in pool order",
      ],
    );
  });

  it("names the pools that there are when a group asks for another", async () => {
    await refused("unknownPool", [
      "WorkerGroup infrastructure.machineInventory.pool: no MachineInventoryPool edge-wrokers-pool exists in namespace cpaas-system; there are edge-other-pool",
    ]);
  });

  it("refuses an inventory that is listed twice", async () => {
    await refused("duplicateInventory", [
      "MachineInventoryPool machineInventories[2].name: inventory rack1-01 is listed twice, first as machineInventories[0]; list it once",
    ]);
  });

  it("refuses one host name for two hosts", async () => {
    await refused("hostnameClash", [
      "MachineInventoryPool machineInventories[2].hostname: host name edge-w1 is also that of rack1-01 (machineInventories[0]); each host needs its own",
    ]);
  });

  it("refuses a version without its leading v and its patch", async () => {
    await refused("badVersion", ['WorkerGroup version: must be a full Kubernetes version with a leading v, such as "v1.34.2"']);
  });

  it("refuses host name and provider-id in the template", async () => {
    const at = "WorkerGroup bootstrap.kubeadm";
    await refused("filledInFields", [
      `${at}.joinConfiguration.nodeRegistration.name: the host name is filled in from the pool's \`hostname\`; remove it, and set \`hostname\` in the pool where the name matters`,
      `${at}.joinConfiguration.nodeRegistration.kubeletExtraArgs.provider-id: provider-id is filled in for each host (baremetal:///<inventory>); remove it`,
      `${at}.files[0].path: the host name is filled in from the pool's \`hostname\`; remove this file`,
    ]);
  });

  it("refuses values of the wrong type and names that it does not know", async () => {
    await refused("wrongTypesOfPool", [
      "MachineInventoryPool machineInventories[0].name: is missing; it must be a string",
      "MachineInventoryPool machineInventories[0].bmc.address: must be a string",
      "MachineInventoryPool machineInventories[0].bmc.pasword: is not known here; remove it or correct its spelling",
      "MachineInventoryPool verifyBmc: must be a boolean",
    ]);
    await refused("wrongTypesOfGroup", [
      "WorkerGroup replicas: must be a number",
      "WorkerGroup rollout.maxSurge: must be at least 0",
      "WorkerGroup waitTimeout: must be a string",
    ]);
  });

  it("refuses more machines than the pool can give, and says why no other host counts", async () => {
    await refused("tooManyReplicas", [
      "WorkerGroup replicas: 4 machines need 4 more hosts, but pool edge-workers-pool has 1 (rack1-01 (edge-w1)) to give: 3 are missing. The others cannot be taken: rack1-02 is not Ready (the agent is silent); rack1-03 is in use by machine edge-other-x7k2p. Lower replicas to 1, or add hosts to the pool",
    ]);
  });

  it("says that the cluster does not answer", async () => {
    const server = `https://127.0.0.1:${await freePort()}`;
    await refused(
      "right",
      [
        `MachineInventoryPool: the management cluster ${server} does not answer: the API server cannot be reached (ECONNREFUSED); check the kubeconfig (baremetal:kubeconfig, else KUBECONFIG) and the way to it`,
      ],
      kubeconfig.replaceAll(bed.management.server, server),
    );
  });

  it("says which permission is missing", async () => {
    const access = kubeconfigOfConnection(await issueClientCertificate(bed.management, { user: STRANGER }));
    const path = "/apis/infrastructure.cluster.x-k8s.io/v1beta1/namespaces/cpaas-system/machineinventorypools";
    const refusal =
      'machineinventorypools.infrastructure.cluster.x-k8s.io is forbidden: User "stranger" cannot list resource "machineinventorypools" in API group "infrastructure.cluster.x-k8s.io" in the namespace "cpaas-system"';
    await refused(
      "right",
      [`MachineInventoryPool: the management cluster ${bed.management.server} does not permit GET ${path}: ${refusal}; grant this to the kubeconfig's user`],
      access,
    );
  });

  it("says that Cluster API is not installed, and who brings it", async () => {
    const access = kubeconfigOfConnection(await issueClientCertificate(bed.workload, { user: USER, groups: [ADMINISTRATORS] }));
    const { messages } = await refused(
      "right",
      [
        "WorkerGroup: the management cluster does not know machinedeployments.cluster.x-k8s.io (its CustomResourceDefinition is missing); Cluster API brings it: install its core provider (clusterctl init) first",
      ],
      access,
    );
    const unknown = (kind: string, remedy: string): string =>
      `pulumi-baremetal: MachineInventoryPool workers: warning: the management cluster does not know ${kind} (its CustomResourceDefinition is missing); ${remedy}`;
    assert.deepEqual(
      messages.filter((line) => line.includes("warning: ")),
      [
        unknown(
          "machineinventorypools.infrastructure.cluster.x-k8s.io",
          'RemediationController brings it: add one with controllers: ["remediation", "inventory"], and let this resource depend on it',
        ),
        unknown("machineinventories.elemental.cattle.io", "the Elemental operator brings it: install it and register the hosts first"),
      ],
    );
  });

  it("wrote nothing through all of this", async () => {
    for (const cluster of [bed.management, bed.workload]) {
      const requests = (await readAuditLog(cluster.auditLogPath)).filter(({ user, userAgent }) => [USER, STRANGER].includes(user) || /pulumi/i.test(userAgent));
      assert.ok(requests.length > 0);
      assert.deepEqual(requests.filter(isWrite), []);
    }
  });

  describe("that claims the names of another program", () => {
    before(async () => {
      const annotations = { [OWNER_ANNOTATION]: OTHER_OWNER };
      await make(machineInventoryPools, "edge-workers-pool", { annotations, spec: { machineInventories: [{ name: "rack1-08" }] } });
      const template = (kind: string, apiGroup: string): object => ({ apiGroup, kind, name: "absent" });
      const machine = {
        clusterName: bed.clusterName,
        bootstrap: { configRef: template("KubeadmConfigTemplate", "bootstrap.cluster.x-k8s.io") },
        infrastructureRef: template("BaremetalMachineTemplate", "infrastructure.cluster.x-k8s.io"),
      };
      const selector = { matchLabels: {} };
      await make(machineDeployments, "edge-workers", {
        annotations,
        spec: { clusterName: bed.clusterName, replicas: 0, selector, template: { spec: machine } },
      });
      await make(machineHealthChecks, "edge-workers", { annotations, spec: { clusterName: bed.clusterName, selector: { matchLabels: { pool: "other" } } } });
    });

    for (const [name, object] of [
      ["samePool", "MachineInventoryPool cpaas-system/edge-workers-pool"],
      ["sameGroup", "MachineDeployment cpaas-system/edge-workers"],
      ["samePolicy", "MachineHealthCheck cpaas-system/edge-workers"],
    ] as const) {
      it(`does not take over the ${object.split(" ")[0] ?? ""}, and names its owner and the remedies`, async () => {
        const result = await run("up", name);
        assert.notEqual(result.exitCode, 0);
        assert.deepEqual(complaints(result), [
          `${object} already exists and belongs to ${OTHER_OWNER}; give this resource another \`name\`, or set \`adopt: true\` to take it over`,
        ]);
      });
    }

    it("left them as they were", async () => {
      const writes = (await readAuditLog(bed.management.auditLogPath, { user: USER })).filter(isWrite);
      assert.deepEqual(
        writes.map(({ verb, resource, name, code }) => [verb, resource, name, code]),
        [],
      );
    });
  });
});
