/** Reads one's own writes: what a write returned counts until the watch has caught up with it. */
import { keyOf, type LiveObject, qualifiedName, type ResourceKind } from "../../cluster/objects.ts";
import type { Stores } from "../runtime/reconciler.ts";

export class LatestObjects {
  readonly #stores: Stores;
  readonly #written = new Map<string, LiveObject>();

  constructor(stores: Stores) {
    this.#stores = stores;
  }

  get(kind: ResourceKind, key: string): LiveObject | undefined {
    const stored = this.#stores.of(kind).get(key);
    const id = `${qualifiedName(kind)} ${key}`;
    const written = this.#written.get(id);
    if (written === undefined) return stored;
    if (stored !== undefined && stored.metadata.uid === written.metadata.uid && isNewer(written, stored)) return written;
    this.#written.delete(id);
    return stored;
  }

  wrote(kind: ResourceKind, object: LiveObject): void {
    this.#written.set(`${qualifiedName(kind)} ${keyOf(object)}`, object);
  }
}

/** Resource versions of one kind are numbers that grow. Where they are not numbers, the watch is believed. */
function isNewer(written: LiveObject, stored: LiveObject): boolean {
  const [left, right] = [written.metadata.resourceVersion, stored.metadata.resourceVersion];
  return /^\d+$/.test(left) && /^\d+$/.test(right) && BigInt(left) > BigInt(right);
}
