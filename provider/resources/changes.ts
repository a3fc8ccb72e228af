/** What differs between the state of a resource and what is wanted of it. */
import { z } from "zod";

import type { Json } from "./inputs.ts";
import { containsUnknown, same } from "./inputs.ts";
import type { DiffResult } from "./lifecycle.ts";
import { UNKNOWN } from "./lifecycle.ts";

const record = z.record(z.string(), z.unknown());

/** Inputs or state as a front hands them over. */
export function jsonOf(value: unknown): Json {
  return record.parse(value ?? {});
}

/** Top-level keys that differ; something that is not known yet counts as different. */
export function changedKeys(state: Json, news: Json, keys: readonly string[]): string[] {
  return keys.filter((key) => containsUnknown(news[key]) || !same(state[key], news[key]));
}

/** A resource is replaced when what identifies its objects changes; the old one goes first, as both would claim the same hosts. */
export function diffOf(changed: readonly string[], news: Json, identity: readonly string[]): DiffResult {
  const replaces = changed.filter((key) => identity.includes(key) && !containsUnknown(news[key]));
  return { changed: changed.length > 0, replaces, deleteBeforeReplace: replaces.length > 0 };
}

/** The raw inputs with the defaults of their model, for a preview in which not everything is known. */
export function withDefaults(shape: Record<string, z.ZodType>, raw: Json): Json {
  const filled: Json = { ...raw };
  for (const [key, schema] of Object.entries(shape)) {
    if (raw[key] !== undefined) continue;
    const parsed = schema.safeParse(undefined);
    if (parsed.success && parsed.data !== undefined) filled[key] = parsed.data;
  }
  return filled;
}

/** The name of an object: given, or made from others; unknown where one of these is. */
export function derivedName(given: unknown, parts: readonly unknown[]): string {
  if (typeof given === "string") return given;
  const known = parts.filter((part): part is string => typeof part === "string" && part !== UNKNOWN);
  return known.length === parts.length ? known.join("-") : UNKNOWN;
}
