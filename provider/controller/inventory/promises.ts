/** Inventories that machines have chosen and are about to claim, so that machines that come at once choose different ones. */
import type { Clock } from "../../clock.ts";
import type { BaremetalMachine } from "./machine.ts";

/** Until then a choice is remembered that the views do not show; afterwards they do. */
const PROMISE_MS = 10_000;

export class Promises {
  readonly #clock: Clock;
  readonly #promises = new Map<string, { uid: string; until: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A machine has one promise at most; none once it has forgotten its choice or is gone. */
  set(machine: BaremetalMachine, inventory: string | undefined): void {
    for (const [key, { uid }] of this.#promises) if (uid === machine.uid) this.#promises.delete(key);
    if (inventory === undefined) return;
    this.#promises.set(`${machine.namespace}/${inventory}`, { uid: machine.uid, until: this.#clock.now() + PROMISE_MS });
  }

  /** Whether another machine has chosen an inventory, as far as this process and the machines in view know. */
  toOthers(machine: BaremetalMachine, machines: Iterable<BaremetalMachine>): (inventory: string) => boolean {
    const chosen = new Set<string>();
    for (const other of machines) {
      if (other.inventory !== undefined && other.namespace === machine.namespace && other.uid !== machine.uid && !other.deleting)
        chosen.add(other.inventory.name);
    }
    return (inventory) => {
      const promise = this.#promises.get(`${machine.namespace}/${inventory}`);
      return chosen.has(inventory) || (promise !== undefined && promise.uid !== machine.uid && promise.until > this.#clock.now());
    };
  }
}
