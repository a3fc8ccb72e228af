/** Free ports of the loopback interface. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

// Below the range from which the kernel takes the ports of outgoing connections: one of those could take a port between its choice and its use.
const LOWEST = 10_000;
const HIGHEST = 30_000;
const ATTEMPTS = 200;

const given = new Set<number>();

async function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    // On all addresses: the Cluster API managers bind their webhook port on every interface.
    server.listen({ port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}

/** A random free port, given to nobody else in this process. */
export async function freePort(): Promise<number> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const port = randomInt(LOWEST, HIGHEST);
    if (given.has(port)) continue;
    given.add(port);
    if (await isFree(port)) return port;
    given.delete(port);
  }
  throw new Error(`no free port between ${LOWEST} and ${HIGHEST} in ${ATTEMPTS} attempts`);
}

export async function freePorts<const Name extends string>(...names: Name[]): Promise<Record<Name, number>> {
  const ports = await Promise.all(names.map(async (name): Promise<[Name, number]> => [name, await freePort()]));
  return Object.fromEntries(ports) as Record<Name, number>;
}

/** Lets ports be given again, once what listened on them has ended. */
export function releasePorts(ports: Iterable<number>): void {
  for (const port of ports) given.delete(port);
}
