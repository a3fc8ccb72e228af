/** The controller's settings: one ConfigMap beside it, read again every few seconds. */
import { z } from "zod";

import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { configMaps } from "../../cluster/kinds.ts";
import type { ObjectKey } from "../../cluster/objects.ts";
import type { Log } from "./reconciler.ts";

export interface Settings {
  /** Whether nothing new may be started: the stop switch is on, or the settings have not been read yet. */
  stopped(): boolean;
  /** The value of a key as it was last read. */
  value(key: string): string | undefined;
  /** A whole number at or above `least`; `fallback` where the key is absent or holds anything else. */
  number(key: string, fallback: number, least?: number): number;
}

export const STOP_KEY = "stop";
const POLL_INTERVAL_MS = 3_000;

const configMap = z.object({ data: z.record(z.string(), z.string()).optional() });

/** Settings out of values that are at hand. */
export function settingsOf(values: Readonly<Record<string, string>>): Settings {
  return {
    stopped: () => values[STOP_KEY] === "true",
    value: (key) => values[key],
    number: (key, fallback, least = 0) => {
      const text = values[key];
      const parsed = text === undefined || text.trim() === "" ? Number.NaN : Number(text);
      return Number.isInteger(parsed) && parsed >= least ? parsed : fallback;
    },
  };
}

/** Follows the ConfigMap. Without one all settings are their defaults; while it cannot be read the last reading stands. */
export class PolledSettings implements Settings {
  readonly #cluster: Cluster;
  readonly #key: ObjectKey;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #changed: () => void;
  #current: Settings | undefined;
  #text = "";

  /** `changed` is called whenever a reading differs from the one before. */
  constructor(parts: { cluster: Cluster; key: ObjectKey; clock: Clock; log: Log; changed: () => void }) {
    this.#cluster = parts.cluster;
    this.#key = parts.key;
    this.#clock = parts.clock;
    this.#log = parts.log;
    this.#changed = parts.changed;
  }

  stopped(): boolean {
    return this.#current?.stopped() ?? true;
  }

  value(key: string): string | undefined {
    return this.#current?.value(key);
  }

  number(key: string, fallback: number, least = 0): number {
    return this.#current?.number(key, fallback, least) ?? fallback;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.read(signal);
      await this.#clock.sleep(POLL_INTERVAL_MS, signal).catch(() => undefined);
    }
  }

  async read(signal?: AbortSignal): Promise<void> {
    let values: Record<string, string> = {};
    try {
      values = configMap.parse(await this.#cluster.get(configMaps, this.#key, signal === undefined ? {} : { signal })).data ?? {};
    } catch (error) {
      if (!isClusterError(error, "notFound")) {
        if (signal?.aborted !== true)
          this.#log.warn("the settings cannot be read; the last ones stand", { configMap: `${this.#key.namespace ?? ""}/${this.#key.name}`, error });
        return;
      }
    }
    const text = JSON.stringify(values);
    if (this.#current !== undefined && text === this.#text) return;
    this.#text = text;
    this.#current = settingsOf(values);
    this.#log.info("settings read", { stopped: this.#current.stopped() });
    this.#changed();
  }
}
