/** The kinds that the inventory controller serves to Cluster API: pool, machine, machine template and cluster. */
import { type KubernetesObject, qualifiedName, type ResourceKind } from "../../cluster/objects.ts";
import { baremetalClusters, baremetalMachines, baremetalMachineTemplates, machineInventoryPools } from "../../hosts/kinds.ts";
import { MANAGED_BY, MANAGED_BY_LABEL } from "../../hosts/names.ts";
import { phases } from "../inventory/machine.ts";

type Schema = Readonly<Record<string, unknown>>;

interface PrinterColumn {
  name: string;
  type: "string" | "integer" | "boolean" | "date";
  jsonPath: string;
  priority?: number;
}

const age: PrinterColumn = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" };

function definition(
  kind: ResourceKind,
  properties: Record<string, Schema>,
  columns: PrinterColumn[],
  required: string[],
  shortNames: string[],
): KubernetesObject {
  const singular = kind.kind.toLowerCase();
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: qualifiedName(kind),
      // Cluster API finds by its contract label which version of a kind follows which contract.
      labels: { [MANAGED_BY_LABEL]: MANAGED_BY, "cluster.x-k8s.io/v1beta1": kind.version },
    },
    spec: {
      group: kind.group,
      scope: "Namespaced",
      names: { kind: kind.kind, listKind: `${kind.kind}List`, plural: kind.plural, singular, shortNames, categories: ["cluster-api"] },
      versions: [
        {
          name: kind.version,
          served: true,
          storage: true,
          ...("status" in properties ? { subresources: { status: {} } } : {}),
          additionalPrinterColumns: [...columns, age],
          schema: {
            openAPIV3Schema: {
              type: "object",
              required,
              properties: { apiVersion: { type: "string" }, kind: { type: "string" }, metadata: { type: "object" }, ...properties },
            },
          },
        },
      ],
    },
  };
}

function object(description: string, properties: Record<string, Schema>, required: string[] = []): Schema {
  return { type: "object", description, properties, ...(required.length === 0 ? {} : { required }) };
}

const objectName: Schema = { type: "string", minLength: 1, maxLength: 253, pattern: "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$" };
const hostname: Schema = { type: "string", minLength: 1, maxLength: 253, pattern: "^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$" };

const conditions: Schema = {
  type: "array",
  maxItems: 32,
  "x-kubernetes-list-type": "map",
  "x-kubernetes-list-map-keys": ["type"],
  items: object(
    "One aspect of the object's state.",
    {
      type: { type: "string", maxLength: 316 },
      status: { type: "string", enum: ["True", "False", "Unknown"] },
      reason: { type: "string", maxLength: 1024 },
      message: { type: "string", maxLength: 32768 },
      lastTransitionTime: { type: "string", format: "date-time" },
    },
    ["type", "status", "lastTransitionTime"],
  ),
};

const shortTexts: Schema = { type: "object", maxProperties: 64, additionalProperties: { type: "string", maxLength: 1024 } };

const poolReference = object("The pool that the machine's host is taken from; in the machine's namespace.", { name: objectName }, ["name"]);
const allocationPolicy: Schema = {
  type: "string",
  enum: ["Ordered"],
  default: "Ordered",
  description: "How a host is chosen: Ordered takes the first Available one in the pool's order.",
};

const machineSpec: Record<string, Schema> = {
  machineInventoryPoolRef: poolReference,
  allocationPolicy,
  providerID: { type: "string", maxLength: 512, pattern: "^baremetal:///.+$", description: "Set by the controller: baremetal:///<inventory>." },
};

const pool = definition(
  machineInventoryPools,
  {
    spec: object(
      "Which registered machines may be taken.",
      {
        machineInventories: {
          type: "array",
          maxItems: 5000,
          description: "Registered machines, in the order in which they are taken.",
          "x-kubernetes-list-type": "map",
          "x-kubernetes-list-map-keys": ["name"],
          items: object(
            "One registered machine.",
            {
              name: { ...objectName, description: "Name of the MachineInventory, in the pool's namespace." },
              hostname: { ...hostname, description: "The host's name, and that of its Node; the inventory's name by default." },
            },
            ["name"],
          ),
        },
      },
      ["machineInventories"],
    ),
    status: object("What the controller counted.", {
      total: { type: "integer", minimum: 0, description: "Declared machines that are registered." },
      available: { type: "integer", minimum: 0, description: "Those of them that could be taken now." },
    }),
  },
  [
    { name: "Total", type: "integer", jsonPath: ".status.total" },
    { name: "Available", type: "integer", jsonPath: ".status.available" },
  ],
  ["spec"],
  ["mip"],
);

const machine = definition(
  baremetalMachines,
  {
    spec: object("What Cluster API asked for.", machineSpec, ["machineInventoryPoolRef"]),
    status: object("How far the machine is.", {
      phase: { type: "string", enum: [...phases] },
      ready: { type: "boolean", description: "Provisioned, as the v1beta1 contract has it." },
      initialization: object("Provisioned, as the v1beta2 contract has it.", { provisioned: { type: "boolean" } }),
      machineInventoryRef: object("The registered machine that was chosen.", { name: objectName, uid: { type: "string", maxLength: 128 } }, ["name", "uid"]),
      addresses: {
        type: "array",
        maxItems: 32,
        items: object("One address of the host.", { type: { type: "string", maxLength: 64 }, address: { type: "string", minLength: 1, maxLength: 256 } }, [
          "type",
          "address",
        ]),
      },
      conditions,
    }),
  },
  [
    { name: "Phase", type: "string", jsonPath: ".status.phase" },
    { name: "Inventory", type: "string", jsonPath: ".status.machineInventoryRef.name" },
    { name: "Ready", type: "boolean", jsonPath: ".status.ready" },
    { name: "Reason", type: "string", jsonPath: '.status.conditions[?(@.type=="Ready")].reason' },
    { name: "ProviderID", type: "string", jsonPath: ".spec.providerID", priority: 1 },
  ],
  ["spec"],
  ["bmm"],
);

const template = definition(
  baremetalMachineTemplates,
  {
    spec: {
      ...object(
        "Never edited: a change is a template of another name.",
        {
          template: object(
            "What each machine is made from.",
            {
              metadata: object("Labels and annotations of the machines.", {
                labels: shortTexts,
                annotations: shortTexts,
              }),
              spec: object("As in BaremetalMachine.", { machineInventoryPoolRef: poolReference, allocationPolicy }, ["machineInventoryPoolRef"]),
            },
            ["spec"],
          ),
        },
        ["template"],
      ),
      "x-kubernetes-validations": [
        {
          rule: "self == oldSelf",
          message: "a BaremetalMachineTemplate is never edited: create one of another name and let the MachineDeployment refer to it",
        },
      ],
    },
  },
  [{ name: "Pool", type: "string", jsonPath: ".spec.template.spec.machineInventoryPoolRef.name" }],
  ["spec"],
  ["bmmt"],
);

const cluster = definition(
  baremetalClusters,
  {
    spec: object("How the workload cluster is reached.", {
      controlPlaneEndpoint: object(
        "Address of its API server.",
        { host: { type: "string", maxLength: 512 }, port: { type: "integer", minimum: 0, maximum: 65535 } },
        ["host", "port"],
      ),
    }),
    status: object("Whether the cluster's infrastructure is there.", {
      ready: { type: "boolean", description: "Provisioned, as the v1beta1 contract has it." },
      initialization: object("Provisioned, as the v1beta2 contract has it.", { provisioned: { type: "boolean" } }),
      conditions,
    }),
  },
  [
    { name: "Ready", type: "boolean", jsonPath: ".status.ready" },
    { name: "Endpoint", type: "string", jsonPath: ".spec.controlPlaneEndpoint.host" },
  ],
  [],
  ["bmcl"],
);

/** In the order in which they can be created. */
export const inventoryCrds: readonly KubernetesObject[] = [pool, machine, template, cluster];
