/** JSON merge patch and JSON patch, as an API server applies them. */
import { isDeepStrictEqual } from "node:util";

import type { JsonPatchOperation } from "../../../provider/cluster/cluster.ts";
import { ClusterError } from "../../../provider/cluster/errors.ts";
import type { KubernetesObject, LiveObject } from "../../../provider/cluster/objects.ts";

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isObject(value: unknown): value is KubernetesObject {
  return isRecord(value) && typeof value["apiVersion"] === "string" && isRecord(value["metadata"]);
}

/** Lists of a strategic patch that are merged by a key of their items; others are replaced. */
const mergeKeys: Record<string, string> = { conditions: "type", addresses: "type" };

function mergeList(field: string, old: unknown, patch: unknown[]): unknown[] {
  const key = mergeKeys[field];
  if (key === undefined || !Array.isArray(old)) return patch;
  const merged: unknown[] = old.map((item: unknown) => item);
  for (const item of patch) {
    const at = merged.findIndex((candidate) => isRecord(candidate) && isRecord(item) && candidate[key] === item[key]);
    if (at < 0) merged.push(item);
    else merged[at] = merge(merged[at], item, true);
  }
  return merged;
}

function merge(old: unknown, patch: unknown, strategic: boolean): unknown {
  if (!isRecord(patch)) return structuredClone(patch);
  const merged: Record<string, unknown> = isRecord(old) ? { ...old } : {};
  for (const [field, value] of Object.entries(patch)) {
    if (value === undefined) continue;
    if (value === null) Reflect.deleteProperty(merged, field);
    else if (strategic && Array.isArray(value)) merged[field] = mergeList(field, merged[field], value);
    else merged[field] = merge(merged[field], value, strategic);
  }
  return merged;
}

function checked(value: unknown): KubernetesObject {
  if (!isObject(value)) throw new ClusterError("invalid", "PATCH", "the patched object has no apiVersion or metadata", { status: 422 });
  return value;
}

export function mergePatch(old: LiveObject, patch: object, strategic: boolean): KubernetesObject {
  return checked(merge(old, patch, strategic));
}

function pointer(path: string): string[] {
  return path
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
}

function child(value: unknown, part: string): unknown {
  if (Array.isArray(value)) return value[Number(part)] as unknown;
  return isRecord(value) ? value[part] : undefined;
}

export function jsonPatch(old: LiveObject, operations: readonly JsonPatchOperation[]): KubernetesObject {
  const root: unknown = structuredClone(old);
  for (const { op, path, value } of operations) {
    const parts = pointer(path);
    const last = parts.pop() ?? "";
    let parent: unknown = root;
    for (const part of parts) parent = child(parent, part);
    const refuse = (): never => {
      throw new ClusterError("invalid", "PATCH", `the server rejected our request due to an error in our request (${op} ${path})`, { status: 422 });
    };
    if (op === "test") {
      if (!isDeepStrictEqual(child(parent, last), value)) refuse();
    } else if (Array.isArray(parent)) {
      const at = last === "-" ? parent.length : Number(last);
      if (op === "add") parent.splice(at, 0, value);
      else if (at >= parent.length) refuse();
      else if (op === "remove") parent.splice(at, 1);
      else parent[at] = value;
    } else if (isRecord(parent)) {
      if (op !== "add" && !(last in parent)) refuse();
      if (op === "remove") Reflect.deleteProperty(parent, last);
      else parent[last] = value;
    } else {
      refuse();
    }
  }
  return checked(root);
}
