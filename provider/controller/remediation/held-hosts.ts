/** Which hosts carry a hold of which remediation; kept up by what the watch brings. */
import { keyOf, type LiveObject } from "../../cluster/objects.ts";
import { machineInventories } from "../../hosts/kinds.ts";
import { readHold } from "../../hosts/power-hold.ts";
import type { LatestObjects } from "./latest.ts";

export class HeldHosts {
  readonly #kind: string;
  readonly #latest: LatestObjects;
  readonly #hosts = new Map<string, Set<string>>();

  /** `kind`: of the remediations that are looked for. */
  constructor(kind: string, latest: LatestObjects) {
    this.#kind = kind;
    this.#latest = latest;
  }

  /** Takes note of a host as it was seen or written. Returns the key of the remediation that holds it. */
  note(host: LiveObject): string | undefined {
    const reading = readHold(host.metadata.annotations);
    if (reading.state !== "held" || reading.hold.remediation?.kind !== this.#kind) return undefined;
    const { namespace, name } = reading.hold.remediation;
    const key = `${namespace}/${name}`;
    this.#hosts.set(key, (this.#hosts.get(key) ?? new Set()).add(keyOf(host)));
    return key;
  }

  /** The hosts that a remediation of that key holds now. */
  of(key: string): LiveObject[] {
    const known = this.#hosts.get(key);
    const held: LiveObject[] = [];
    for (const hostKey of known ?? []) {
      const host = this.#latest.get(machineInventories, hostKey);
      if (host !== undefined && this.note(host) === key) held.push(host);
      else known?.delete(hostKey);
    }
    if (known?.size === 0) this.#hosts.delete(key);
    return held;
  }

  keys(): string[] {
    return [...this.#hosts.keys()];
  }
}
