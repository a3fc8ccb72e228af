/** Values on their way to and from Pulumi's engine, which stores nothing but JSON. */

/** Where Pulumi keeps the serialised provider among a dynamic resource's properties. */
export const PROVIDER_KEY = "__provider";

export type Properties = Record<string, unknown>;

export function isProperties(value: unknown): value is Properties {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The resource's own properties: what Pulumi itself adds is of no concern to it. */
export function withoutProvider(properties: Properties): Properties {
  return Object.fromEntries(Object.entries(properties).filter(([key]) => key !== PROVIDER_KEY));
}

/**
 * The value as JSON can hold it. The engine refuses a resource that was just created if a single `undefined`, function
 * or bigint hides in its outputs, and then forgets that it exists (pulumi/pulumi#2721).
 */
export function toJson(value: unknown): unknown {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : null;
    case "bigint":
      return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
    case "object":
      return value === null ? null : objectToJson(value);
    case "undefined":
    case "function":
    case "symbol":
      return undefined;
  }
}

function objectToJson(value: object): unknown {
  if (Array.isArray(value)) return value.map((item: unknown) => toJson(item) ?? null);
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : value.toISOString();
  if (value instanceof Set) return objectToJson([...value.values()]);
  const entries: [string, unknown][] = value instanceof Map ? [...value].map(([key, item]) => [String(key), item]) : Object.entries(value);
  return Object.fromEntries(
    entries.flatMap(([key, item]) => {
      const json = toJson(item);
      return json === undefined ? [] : [[key, json]];
    }),
  );
}

/** The outputs or inputs that a lifecycle returned, ready for the engine. */
export function propertiesToJson(properties: unknown): Properties {
  const json = toJson(properties);
  if (!isProperties(json)) throw new TypeError("a resource's properties must be an object");
  return json;
}
