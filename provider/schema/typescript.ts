/** The SDK's argument interfaces in TypeScript, made from the package schema. */
import type { EnumSpec, ObjectSpec, PackageSpec, PropertySpec } from "./schema.ts";

type Form = "input" | "plain";

const PRIMITIVES: Record<string, string> = { integer: "number", number: "number", string: "string", boolean: "boolean" };

function nameOf(token: string): string {
  return token.slice(token.lastIndexOf(":") + 1);
}

class Writer {
  readonly #schema: PackageSpec;

  constructor(schema: PackageSpec) {
    this.#schema = schema;
  }

  /** Type of a value; in the input form every part may be an output of another resource. */
  type(spec: PropertySpec, form: Form): string {
    if (spec.oneOf !== undefined) return spec.oneOf.map((alternative) => this.type(alternative, form)).join(" | ");
    if (spec.$ref !== undefined) return this.#reference(spec.$ref, form);
    if (spec.items !== undefined) return `${this.#inner(spec.items, form)}[]`;
    if (spec.additionalProperties !== undefined) return `Record<string, ${this.#wrapped(spec.additionalProperties, form)}>`;
    return PRIMITIVES[spec.type ?? ""] ?? "unknown";
  }

  #reference(ref: string, form: Form): string {
    if (ref === "pulumi.json#/Any") return "unknown";
    const token = ref.replace("#/types/", "");
    return this.#schema.types[token]?.type === "object" && form === "input" ? `${nameOf(token)}Args` : nameOf(token);
  }

  #wrapped(spec: PropertySpec, form: Form): string {
    return form === "plain" ? this.type(spec, form) : `pulumi.Input<${this.type(spec, form)}>`;
  }

  #inner(spec: PropertySpec, form: Form): string {
    const type = this.#wrapped(spec, form);
    return type.includes(" | ") && form === "plain" ? `(${type})` : type;
  }

  interface(name: string, description: string | undefined, properties: Record<string, PropertySpec>, required: readonly string[], form: Form): string {
    const fields = Object.entries(properties).map(([key, spec]) => {
      const optional = required.includes(key) ? "" : "?";
      return `${comment(spec, form)}  ${form === "plain" ? "readonly " : ""}${key}${optional}: ${this.#wrapped(spec, form)};`;
    });
    return `${block(description, "")}export interface ${name} {\n${fields.join("\n")}\n}\n`;
  }

  enumeration(name: string, spec: EnumSpec): string {
    return `${block(spec.description, "")}export type ${name} = ${spec.enum.map(({ value }) => JSON.stringify(value)).join(" | ")};\n`;
  }
}

function block(text: string | undefined, indent: string): string {
  return text === undefined ? "" : `${indent}/** ${text.replaceAll("*/", "*\\/")} */\n`;
}

function comment(spec: PropertySpec, form: Form): string {
  const value = spec.default === undefined || form === "plain" ? "" : ` Default: \`${String(spec.default)}\`.`;
  return block(spec.description === undefined ? undefined : `${spec.description}${value}`, "  ");
}

function isObject(spec: ObjectSpec | EnumSpec): spec is ObjectSpec {
  return spec.type === "object";
}

export function typescriptTypes(schema: PackageSpec): string {
  const writer = new Writer(schema);
  const parts = [
    "// Made from the models of the resources by provider/schema/write.ts; not to be edited.",
    'import type * as pulumi from "@pulumi/pulumi";',
    "",
  ];
  for (const [token, spec] of Object.entries(schema.resources)) {
    parts.push(writer.interface(`${nameOf(token)}Args`, spec.description, spec.inputProperties, spec.requiredInputs, "input"));
    parts.push(writer.interface(`${nameOf(token)}Outputs`, `What a ${nameOf(token)} holds once it exists.`, spec.properties, spec.required, "plain"));
  }
  for (const [token, spec] of Object.entries(schema.types)) {
    const name = nameOf(token);
    if (!isObject(spec)) {
      parts.push(writer.enumeration(name, spec));
      continue;
    }
    parts.push(writer.interface(`${name}Args`, spec.description, spec.properties, spec.required, "input"));
    parts.push(writer.interface(name, spec.description, spec.properties, spec.required, "plain"));
  }
  return parts.join("\n");
}
