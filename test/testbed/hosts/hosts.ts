/** The simulated hosts of a test bed, one a BMC. */
import { appendFileSync } from "node:fs";
import { join } from "node:path";

import type { Bmcs } from "../bmc/bmcs.ts";
import { SimulatedHost, defaultBehaviour } from "./host.ts";
import type { HostBehaviour, HostState } from "./host.ts";
import { Registration } from "./registration.ts";
import type { RegistrationOptions } from "./registration.ts";

export type { HostBehaviour, HostState, SimulatedHost };

export interface HostsOptions extends RegistrationOptions {
  bmcs: Bmcs;
  /** Which of the BMCs get a host; all of them by default. A host, its BMC and its inventory have the same name. */
  names?: readonly string[];
  behaviour?: Partial<HostBehaviour>;
  /** Where `hosts.log` goes; nothing is logged without it. */
  directory?: string;
}

export interface Hosts {
  readonly all: readonly SimulatedHost[];
  host(name: string): SimulatedHost;
  /** Ends the simulation of all hosts; BMCs and inventories stay. */
  stop(): Promise<void>;
}

/** Hosts whose power is on boot at once; wait for their inventories in the cluster. */
export function startHosts(options: HostsOptions): Hosts {
  const { bmcs, directory, namespace } = options;
  const log = (who: string) => (line: string) => {
    if (directory !== undefined) appendFileSync(join(directory, "hosts.log"), `${new Date().toISOString()} ${who} ${line}\n`);
  };
  const registration = new Registration(options);
  const ending = new AbortController();
  const following = registration.followPlans(ending.signal, log("registration"));
  const names = options.names ?? bmcs.all.map(({ host }) => host);
  const all = names.map(
    (name) =>
      new SimulatedHost({ name, namespace, bmc: bmcs.bmc(name), registration, behaviour: { ...defaultBehaviour, ...options.behaviour }, log: log(name) }),
  );
  return {
    all,
    host: (name) => {
      const found = all.find((host) => host.name === name);
      if (found === undefined) throw new Error(`there is no host ${name}; there are ${names.join(", ")}`);
      return found;
    },
    stop: async () => {
      await Promise.all(all.map((host) => host.stop()));
      ending.abort();
      await following;
    },
  };
}
