import * as pulumi from "@pulumi/pulumi";

type Fields = Record<string, unknown>;

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) && !pulumi.Output.isInstance(value) && !(value instanceof Promise);
}

/** Applies the function at once where the value is at hand, so that what is not known yet elsewhere does not hide it. */
function whenKnown(value: unknown, change: (known: unknown) => unknown): unknown {
  return pulumi.Output.isInstance(value) || value instanceof Promise ? pulumi.output(value).apply(change) : change(value);
}

/** The value with one field of it changed, at any depth; what lies beside the path is left as it is. */
export function changeAt(value: unknown, path: readonly string[], change: (known: unknown) => unknown): unknown {
  const [field, ...rest] = path;
  return whenKnown(value, (known) => {
    if (field === undefined) return change(known);
    if (!isFields(known) || known[field] === undefined) return known;
    return { ...known, [field]: changeAt(known[field], rest, change) };
  });
}
