/**
 * Metal3Remediation and HostRemediation with their templates: one shape under two names, field-compatible with Metal3's own kind.
 * Two versions are served without conversion, so both hold `timeout` and `timeoutSeconds`; what a webhook would refuse is CEL here.
 */
import { z } from "zod";

import { hostRemediations, hostRemediationTemplates, metal3Remediations, metal3RemediationTemplates } from "../../capi/kinds.ts";
import { type KubernetesObject, qualifiedName, type ResourceKind } from "../../cluster/objects.ts";
import { MANAGED_BY, MANAGED_BY_LABEL } from "../../hosts/names.ts";
import { remediationStatusSchema } from "../remediation/status.ts";

type Schema = Readonly<Record<string, unknown>>;

function seconds(description: string, minimum: number): Schema {
  return { type: "integer", format: "int32", minimum, description };
}

const strategy: Schema = {
  type: "object",
  description: "How an unhealthy host is repaired.",
  properties: {
    type: { type: "string", enum: ["Reboot"], default: "Reboot", description: "Reboot powers the host off and on; the only type." },
    retryLimit: {
      type: "integer",
      format: "int32",
      minimum: 1,
      default: 1,
      description: "Attempts after the first one, before the Machine is offered for replacement.",
    },
    timeoutSeconds: seconds("How long the Node may take to be Ready once its host was seen on; 600 by default.", 100),
    timeout: {
      type: "string",
      maxLength: 32,
      description: "The same as a duration, such as 10m; of timeout and timeoutSeconds only one may be set.",
      "x-kubernetes-validations": [
        { rule: "duration(self) == duration('0s') || duration(self) >= duration('100s')", message: "must be a duration of at least 100s, such as 600s or 10m" },
      ],
    },
    powerOffTimeoutSeconds: seconds("How long the host may take from the request to proven off; 300 by default.", 1),
    drainTimeoutSeconds: seconds("How long fencing and draining the Node may take once the host is off; 300 by default.", 1),
    powerOnTimeoutSeconds: seconds("How long the host may take from the request to be seen on; 300 by default.", 1),
    offConfirmationSeconds: seconds("Least distance of the two readings that prove the host off; 2 by default.", 0),
    drainConfirmationSeconds: seconds("Least distance of the two sightings of an empty Node; 5 by default.", 0),
  },
  "x-kubernetes-validations": [{ rule: "!(has(self.timeout) && has(self.timeoutSeconds))", message: "only one of timeout and timeoutSeconds may be set" }],
};

const spec: Schema = { type: "object", properties: { strategy } };
const templateSpec: Schema = { type: "object", required: ["template"], properties: { template: { type: "object", required: ["spec"], properties: { spec } } } };

/** What JSON Schema has and the structural schemas of the API server have not. */
const notStructural = new Set(["$schema", "propertyNames", "pattern", "maximum"]);

function structural(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(structural);
  if (typeof schema !== "object" || schema === null) return schema;
  const kept = Object.entries(schema).filter(([key, value]) => !notStructural.has(key) && !(key === "additionalProperties" && typeof value === "boolean"));
  return Object.fromEntries(kept.map(([key, value]) => [key, key === "enum" || key === "required" ? value : structural(value)]));
}

function statusSchema(): Schema {
  const json = z
    .object({})
    .loose()
    .parse(structural(z.toJSONSchema(remediationStatusSchema, { io: "input" })));
  const properties = z.record(z.string(), z.record(z.string(), z.unknown())).parse(json["properties"]);
  return {
    type: "object",
    properties: { ...properties, conditions: { ...properties["conditions"], "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] } },
  };
}

const columns = [
  { name: "Phase", type: "string", jsonPath: ".status.phase" },
  { name: "Host", type: "string", jsonPath: ".status.host.name" },
  { name: "Retries", type: "integer", jsonPath: ".status.retryCount" },
  { name: "Reason", type: "string", jsonPath: '.status.conditions[?(@.type=="Progressing")].reason' },
  { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" },
];

function definition(kind: ResourceKind, properties: Record<string, Schema>, additionalPrinterColumns: object[]): KubernetesObject {
  const schema = {
    openAPIV3Schema: { type: "object", properties: { apiVersion: { type: "string" }, kind: { type: "string" }, metadata: { type: "object" }, ...properties } },
  };
  const version = (name: string, storage: boolean): object => ({
    name,
    served: true,
    storage,
    ...("status" in properties ? { subresources: { status: {} } } : {}),
    additionalPrinterColumns,
    schema,
  });
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: qualifiedName(kind),
      labels: { [MANAGED_BY_LABEL]: MANAGED_BY, "cluster.x-k8s.io/v1beta1": "v1beta1", "cluster.x-k8s.io/v1beta2": "v1beta2" },
    },
    spec: {
      group: kind.group,
      scope: "Namespaced",
      names: { kind: kind.kind, listKind: `${kind.kind}List`, plural: kind.plural, singular: kind.kind.toLowerCase(), categories: ["cluster-api"] },
      conversion: { strategy: "None" },
      versions: [version("v1beta1", false), version("v1beta2", true)],
    },
  };
}

function pair(kind: ResourceKind, template: ResourceKind): KubernetesObject[] {
  return [definition(kind, { spec, status: statusSchema() }, columns), definition(template, { spec: templateSpec }, columns.slice(-1))];
}

export const remediationCrds: readonly KubernetesObject[] = [
  ...pair(metal3Remediations, metal3RemediationTemplates),
  ...pair(hostRemediations, hostRemediationTemplates),
];
