/** The Pulumi package schema, made from the models of the resources. */
import { z } from "zod";

import { poolArgs, poolOutputs } from "../resources/machine-inventory-pool/inputs.ts";
import { policyArgs, policyOutputs } from "../resources/remediation-policy/inputs.ts";
import { groupArgs, groupOutputs } from "../resources/worker-group/inputs.ts";

type JsonSchema = z.core.JSONSchema.BaseSchema;

export interface PropertySpec {
  type?: string;
  $ref?: string;
  items?: PropertySpec;
  additionalProperties?: PropertySpec;
  oneOf?: PropertySpec[];
  description?: string;
  default?: string | number | boolean;
  secret?: boolean;
  willReplaceOnChanges?: boolean;
}

export interface ObjectSpec {
  type: "object";
  description?: string;
  properties: Record<string, PropertySpec>;
  required: string[];
}

export interface EnumSpec {
  type: "string";
  description?: string;
  enum: { value: string }[];
}

export interface ResourceSpec extends ObjectSpec {
  inputProperties: Record<string, PropertySpec>;
  requiredInputs: string[];
}

export interface PackageSpec {
  name: string;
  version: string;
  types: Record<string, ObjectSpec | EnumSpec>;
  resources: Record<string, ResourceSpec>;
  [field: string]: unknown;
}

export const PACKAGE = "baremetal";

interface ResourceModel {
  description: string;
  args: z.ZodObject;
  outputs: z.ZodObject;
}

export const resourceModels: Record<string, ResourceModel> = {
  MachineInventoryPool: {
    description: "An ordered set of registered machines (MachineInventory) that worker groups take their hosts from, and how their BMCs are reached.",
    args: poolArgs,
    outputs: poolOutputs,
  },
  WorkerGroup: {
    description:
      "A group of worker machines of a Cluster API cluster: a MachineDeployment with its templates. Previews name the hosts that will be taken and the machines that will go.",
    args: groupArgs,
    outputs: groupOutputs,
  },
  RemediationPolicy: {
    description: "When and how the machines of a WorkerGroup are repaired: a MachineHealthCheck with its remediation template.",
    args: policyArgs,
    outputs: policyOutputs,
  },
};

export function typeToken(name: string): string {
  return `${PACKAGE}:index:${name}`;
}

export function pascal(name: string): string {
  return name.charAt(0).toUpperCase() + name.slice(1);
}

function isSchema(value: unknown): value is JsonSchema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Description with the default where it cannot stand in a field of its own. */
function describe(schema: JsonSchema, inherited: string | undefined): string | undefined {
  const description = schema.description ?? inherited;
  const note =
    typeof schema["defaultNote"] === "string"
      ? schema["defaultNote"]
      : typeof schema.default === "object"
        ? `\`${JSON.stringify(schema.default)}\``
        : undefined;
  if (description === undefined || note === undefined || note === "`{}`" || note === "`[]`") return description;
  return `${description} Default: ${note}.`;
}

/** Turns JSON Schema, as zod writes it, into Pulumi's; types are gathered on the way. */
class Converter {
  readonly types: Record<string, ObjectSpec | EnumSpec> = {};

  object(name: string, schema: JsonSchema): ObjectSpec {
    const properties: Record<string, PropertySpec> = {};
    for (const [key, property] of Object.entries(schema.properties ?? {})) {
      if (isSchema(property)) properties[key] = this.property(`${name}${pascal(key)}`, property);
    }
    return {
      type: "object",
      ...(schema.description === undefined ? {} : { description: schema.description }),
      properties,
      required: [...(schema.required ?? [])].sort(),
    };
  }

  property(name: string, schema: JsonSchema): PropertySpec {
    const type = this.#type(name, schema);
    // A property that says the same as its type is written by zod without a description of its own.
    const description = describe(schema, this.types[(type.$ref ?? "").replace("#/types/", "")]?.description);
    const primitive =
      typeof schema.default === "string" || typeof schema.default === "number" || typeof schema.default === "boolean" ? schema.default : undefined;
    return {
      ...type,
      ...(description === undefined ? {} : { description }),
      ...(primitive === undefined ? {} : { default: primitive }),
      ...(schema["secret"] === true ? { secret: true } : {}),
      ...(schema["replaceOnChanges"] === true ? { willReplaceOnChanges: true } : {}),
    };
  }

  #type(name: string, schema: JsonSchema): PropertySpec {
    if (schema.$ref !== undefined) return { $ref: `#/types/${typeToken(schema.$ref.replace("#/$defs/", ""))}` };
    if (schema.anyOf !== undefined) return { oneOf: schema.anyOf.filter(isSchema).map((alternative, index) => this.#type(`${name}${index}`, alternative)) };
    const values = schema.enum ?? (schema.const === undefined ? undefined : [schema.const]);
    if (values !== undefined) {
      this.types[typeToken(name)] = {
        type: "string",
        ...(schema.description === undefined ? {} : { description: schema.description }),
        enum: values.map((value) => ({ value: String(value) })),
      };
      return { $ref: `#/types/${typeToken(name)}` };
    }
    if (schema.type === "array")
      return { type: "array", items: isSchema(schema.items) ? this.#type(`${name}Item`, schema.items) : { $ref: "pulumi.json#/Any" } };
    if (schema.type === "object") {
      return {
        type: "object",
        additionalProperties: isSchema(schema.additionalProperties) ? this.#type(`${name}Value`, schema.additionalProperties) : { $ref: "pulumi.json#/Any" },
      };
    }
    if (typeof schema.type !== "string" || schema.type === "null") throw new TypeError(`${name}: this model has no counterpart in a Pulumi schema`);
    return { type: schema.type };
  }

  definitions(schema: JsonSchema): void {
    for (const [name, definition] of Object.entries(schema.$defs ?? {})) {
      if (isSchema(definition) && definition.description !== undefined)
        this.types[typeToken(name)] ??= { type: "object", description: definition.description, properties: {}, required: [] };
    }
    for (const [name, definition] of Object.entries(schema.$defs ?? {})) {
      if (isSchema(definition)) this.types[typeToken(name)] = this.object(name, definition);
    }
  }
}

function sorted<T>(record: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function resource(converter: Converter, name: string, { description, args, outputs }: ResourceModel): ResourceSpec {
  const input = z.toJSONSchema(args, { io: "input" });
  const output = z.toJSONSchema(args.extend(outputs.shape), { io: "output" });
  converter.definitions(input);
  converter.definitions(z.toJSONSchema(outputs, { io: "output" }));
  const inputs = converter.object(name, input);
  const { properties, required } = converter.object(name, output);
  return { type: "object", description, properties, required, inputProperties: inputs.properties, requiredInputs: inputs.required };
}

export function packageSpec(version: string): PackageSpec {
  const converter = new Converter();
  const resources: Record<string, ResourceSpec> = {};
  for (const [name, model] of Object.entries(resourceModels)) resources[typeToken(name)] = resource(converter, name, model);
  return {
    name: PACKAGE,
    version,
    displayName: "Bare metal",
    description: "Bare-metal worker groups for Cluster API, and the controller that keeps them healthy",
    keywords: ["pulumi", "kubernetes", "cluster-api", "bare-metal", "category/infrastructure"],
    license: "Apache-2.0",
    config: {
      variables: {
        kubeconfig: {
          type: "string",
          description: "Content or path of the management cluster's kubeconfig. Default: the environment variable `KUBECONFIG`.",
          secret: true,
        },
        context: { type: "string", description: "Context of the kubeconfig. Default: its current one." },
        namespace: { type: "string", description: "Namespace of resources that name none.", default: "default" },
      },
    },
    types: sorted(converter.types),
    resources: sorted(resources),
    language: { nodejs: { packageName: "pulumi-baremetal" }, python: { packageName: "pulumi_baremetal" } },
  };
}
