/** The long-running process: reads its arguments, connects, and runs the chosen controllers while it holds the Lease. */
import { hostname } from "node:os";
import { parseArgs } from "node:util";

import { systemClock } from "../clock.ts";
import { ClusterClient } from "../cluster/client.ts";
import { type Connection, connectionFromFile, connectionInCluster } from "../cluster/connection.ts";
import { createBmcAccess } from "../redfish/index.ts";
import { type Arguments, ArgumentsError, argumentsOf } from "./arguments.ts";
import { ControllerProcess } from "./process.ts";
import { JsonLog } from "./runtime/log.ts";

const HEALTH_PORT = 8080;
const EXIT_BAD_ARGUMENTS = 2;

function connect(env: NodeJS.ProcessEnv): Promise<Connection> {
  const file = env["KUBECONFIG"];
  return file === undefined || file === "" ? connectionInCluster() : connectionFromFile(file);
}

async function main(): Promise<number> {
  const log = new JsonLog(systemClock, (line) => process.stdout.write(line));
  let settings: Arguments;
  try {
    const { values } = parseArgs({ options: { controllers: { type: "string" }, namespaces: { type: "string" }, settings: { type: "string" } } });
    settings = argumentsOf(values, process.env, hostname());
  } catch (error) {
    // parseArgs names the option that it does not know.
    if (!(error instanceof ArgumentsError || error instanceof TypeError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return EXIT_BAD_ARGUMENTS;
  }
  const cluster = new ClusterClient(await connect(process.env), { userAgent: "pulumi-baremetal-controller" });
  const bmcs = createBmcAccess({ clock: systemClock });
  const stop = new AbortController();
  for (const signal of ["SIGTERM", "SIGINT"] as const) {
    process.once(signal, () => {
      log.info("stopping", { signal });
      stop.abort();
    });
  }
  const controller = new ControllerProcess({ cluster, bmcs, clock: systemClock, log, arguments: settings, healthPort: HEALTH_PORT });
  try {
    await controller.run(stop.signal);
  } finally {
    await bmcs.close();
    await cluster.close();
  }
  log.info("stopped");
  return 0;
}

// Without exit an answer that never comes would keep the process; output is flushed before.
main().then(
  (code) => process.stdout.write("", () => process.exit(code)),
  (error: unknown) => {
    process.stderr.write(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`, () => process.exit(1));
  },
);
