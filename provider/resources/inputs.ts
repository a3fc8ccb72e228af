/** Reading what a program wrote: values that are not known yet in a preview, and the shapes that several resources share. */
import { isIP } from "node:net";

import { z } from "zod";

import { DURATION_HINT, parseDuration } from "./durations.ts";
import type { CheckFailure } from "./lifecycle.ts";
import { UNKNOWN } from "./lifecycle.ts";
import "./metadata.ts";

/** Inputs and state as they travel: plain JSON, parsed by each verb at its start. */
export type Json = Record<string, unknown>;

/** Whether the value, or any part of it, is not known yet. */
export function containsUnknown(value: unknown): boolean {
  if (value === UNKNOWN) return true;
  return typeof value === "object" && value !== null && Object.values(value).some(containsUnknown);
}

function unknownPaths(value: unknown, at: PropertyKey[] = []): PropertyKey[][] {
  if (value === UNKNOWN) return [at];
  if (Array.isArray(value)) return value.flatMap((item, index) => unknownPaths(item, [...at, index]));
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([key, item]) => unknownPaths(item, [...at, key]));
}

function startsWith(path: readonly PropertyKey[], prefix: readonly PropertyKey[]): boolean {
  return prefix.length <= path.length && prefix.every((key, index) => key === path[index]);
}

/** `machineInventories[1].bmc.address`, as a program would write it. */
export function propertyPath(path: readonly PropertyKey[]): string {
  return path.map((key, index) => (typeof key === "number" ? `[${key}]` : `${index === 0 ? "" : "."}${String(key)}`)).join("");
}

/** The value, where it is wholly known and right; undefined otherwise. */
export function knownField<T extends z.ZodType>(schema: T, value: unknown): z.output<T> | undefined {
  if (containsUnknown(value)) return undefined;
  const parsed = schema.safeParse(value);
  return parsed.success ? parsed.data : undefined;
}

type Issue = z.core.$ZodIssue;

/** Of the alternatives of a union, the one that the value was most likely meant for: the deepest complaint. */
function closest(issue: Issue): Issue[] {
  if (issue.code !== "invalid_union" || issue.errors.length === 0) return [issue];
  const depth = (issues: readonly Issue[]): number => Math.max(...issues.map(({ path }) => path.length));
  const shallow = issue.errors.every((issues) => depth(issues) === 0 && issues.every(({ code }) => code === "invalid_type"));
  if (shallow) return [issue];
  const [best] = [...issue.errors].sort((a, b) => depth(b) - depth(a));
  return (best ?? []).flatMap((inner) => closest({ ...inner, path: [...issue.path, ...inner.path] }));
}

function reasonOf(issue: Issue): string {
  if (issue.code === "invalid_type")
    return issue.input === undefined ? `is missing; it must be ${article(issue.expected)}` : `must be ${article(issue.expected)}`;
  if (issue.code === "unrecognized_keys") return "is not known here; remove it or correct its spelling";
  if (issue.code === "invalid_value") return `must be ${issue.values.map((value) => JSON.stringify(value)).join(" or ")}`;
  if (issue.code === "invalid_union") return "has none of the forms that are accepted here; see the documentation of this input";
  return issue.message;
}

/** Words for a bound that the model gives none for. */
function boundOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code !== "too_small") return undefined;
  return issue.origin === "string" ? "must not be empty" : `must be at least ${String(issue.minimum)}`;
}

function article(type: string): string {
  const name = type === "int" ? "integer" : type === "record" ? "object" : type;
  return /^[aeiou]/.test(name) ? `an ${name}` : `a ${name}`;
}

export interface ParsedInputs<T> {
  /** Set where everything is known and right. */
  inputs: T | undefined;
  failures: CheckFailure[];
}

/** Checks what is known. Complaints about parts that are not known yet are left out. */
export function parseInputs<T extends z.ZodType>(schema: T, raw: unknown): ParsedInputs<z.output<T>> {
  const unknown = unknownPaths(raw);
  const parsed = schema.safeParse(raw, { reportInput: true, error: boundOf });
  if (parsed.success) return { inputs: unknown.length === 0 ? parsed.data : undefined, failures: [] };
  const failures = parsed.error.issues
    .filter(({ path, code }) => !unknown.some((known) => startsWith(path, known) || (code === "invalid_union" && startsWith(known, path))))
    .flatMap(closest)
    .flatMap((issue) => {
      const paths = issue.code === "unrecognized_keys" ? issue.keys.map((key) => [...issue.path, key]) : [issue.path];
      return paths.map((path) => ({ property: propertyPath(path), reason: reasonOf(issue) }));
    });
  return { inputs: undefined, failures };
}

/** Canonical JSON: object keys in order, absent and undefined the same. For comparing and for hashing. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value === "object" && value !== null) {
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    return `{${entries
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, item]) => `${JSON.stringify(key)}:${canonical(item)}`)
      .join(",")}}`;
  }
  return value === undefined ? "null" : JSON.stringify(value);
}

export function same(left: unknown, right: unknown): boolean {
  return canonical(left) === canonical(right);
}

/** Keys of a model whose change replaces the resource. */
export function replacingKeys(shape: Record<string, z.ZodType>): string[] {
  return Object.entries(shape).flatMap(([key, schema]) => (schema.meta()?.replaceOnChanges === true ? [key] : []));
}

const LABEL = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;

export function isDnsLabel(text: string): boolean {
  return text.length <= 63 && LABEL.test(text);
}

export function isDnsName(text: string): boolean {
  return text.length <= 253 && text.split(".").every(isDnsLabel);
}

const DNS_NAME_RULE = "must be a DNS name: lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit";

/** Name of a Kubernetes object. */
export const objectName = z.string().refine(isDnsName, DNS_NAME_RULE);

/** Name of an object that also becomes the value of a label. */
export const labelName = z
  .string()
  .refine(isDnsLabel, "must be at most 63 characters: lower-case letters, digits and '-', beginning and ending with a letter or digit");

export const hostName = z.string().refine((text) => isDnsName(text) && isIP(text) === 0, DNS_NAME_RULE);

export const duration = z.string().refine((text) => parseDuration(text) !== undefined, `must be ${DURATION_HINT}`);

/** Seconds of a duration that the model has already accepted. */
export function secondsOf(text: string): number {
  const seconds = parseDuration(text);
  if (seconds === undefined) throw new TypeError(`${JSON.stringify(text)} is not ${DURATION_HINT}`);
  return seconds;
}

export const namespaceInput = labelName.optional().meta({
  description: "Namespace of the objects in the management cluster. Changing it replaces the resource.",
  defaultNote: "the stack's `baremetal:namespace`, else `default`",
  replaceOnChanges: true,
});

export const clusterNameInput = labelName.meta({
  description: "Name of the Cluster API Cluster. Changing it replaces the resource.",
  replaceOnChanges: true,
});

export const adoptInput = z.boolean().optional().meta({
  description: "Take over objects of the same name that another program made, or that nobody owns, and fields of them that someone else has set.",
  defaultNote: "`false`",
});

/** Filled in by the SDK, never by a program. */
export const hiddenInputs = {
  owner: z.string().min(1),
  resourceName: z.string().min(1),
};
