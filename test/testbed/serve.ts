/** `make testbed`: a bed with registered hosts, left running to look around in until Ctrl-C. `--hosts=N` says how many; 7 by default. */
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";

import { machineInventories } from "../../provider/hosts/kinds.ts";
import { issueClientCertificate, startBed } from "./bed.ts";
import type { Bed } from "./bed.ts";
import { startBmcs } from "./bmc/bmcs.ts";
import { createCertificateAuthority } from "./certificates.ts";
import { startHosts } from "./hosts/hosts.ts";
import { startPodRunner } from "./pod-runner.ts";
import { until } from "./wait.ts";

const DEFAULT_HOSTS = 7;
const MOST_HOSTS = 100;
const REGISTRATION_TIMEOUT_MS = 60_000;
const bundle = fileURLToPath(new URL("../../sdk/nodejs/dist/controller.cjs", import.meta.url));

function hostCount(): number {
  const { values } = parseArgs({ options: { hosts: { type: "string", default: String(DEFAULT_HOSTS) } } });
  const count = Number(values.hosts);
  if (!Number.isInteger(count) || count < 0 || count > MOST_HOSTS) {
    throw new Error(`--hosts=${values.hosts}: give a whole number from 0 to ${MOST_HOSTS}`);
  }
  return count;
}

async function addHosts(bed: Bed, count: number): Promise<void> {
  const names = Array.from({ length: count }, (_, index) => `rack1-${String(index + 1).padStart(2, "0")}`);
  const certificateAuthority = await createCertificateAuthority("bmc-ca");
  const bmcs = await startBmcs({ directory: bed.directory, certificateAuthority, hosts: names });
  bed.beforeStop(async () => bmcs.stop());
  const hosts = startHosts({
    bmcs,
    cluster: bed.management.cluster,
    namespace: bed.namespace,
    directory: bed.directory,
    issueClientCertificate: async (user, groups) => issueClientCertificate(bed.management, { user, groups }),
  });
  bed.beforeStop(async () => hosts.stop());
  await until(
    `${count} registered hosts`,
    async () => (await bed.management.cluster.list(machineInventories, { namespace: bed.namespace })).items.length === count,
    { timeoutMs: REGISTRATION_TIMEOUT_MS },
  );
  console.log(`\n${count} hosts are registered in namespace ${bed.namespace}, each with its BMC:`);
  for (const { host, address, username, password } of bmcs.all) console.log(`  ${host}  ${address}  ${username} / ${password}`);
  console.log(`power actions are written to ${bmcs.journalPath}`);
}

function describe(bed: Bed): void {
  console.log(`
The management cluster:  export KUBECONFIG=${bed.management.kubeconfigPath}
The workload cluster:    export KUBECONFIG=${bed.workload.kubeconfigPath}

  kubectl -n ${bed.namespace} get clusters,machinedeployments,machines,machinehealthchecks,machineinventories
  kubectl --kubeconfig ${bed.workload.kubeconfigPath} get nodes

Pods of the management cluster run the controller bundle ${bundle}${existsSync(bundle) ? "" : " (not built yet: make build)"}
Logs:        ${bed.directory}
Audit logs:  ${bed.management.auditLogPath}
             ${bed.workload.auditLogPath}

Ctrl-C ends it all.`);
}

async function serve(): Promise<void> {
  const count = hostCount();
  // No process outlives this one, so leaving before there is a bed, or in the middle of its end, leaves nothing behind either.
  let leave = (): void => process.exit(130);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => leave());
  const bed = await startBed({ progress: (what, elapsedMs) => console.log(`${(elapsedMs / 1000).toFixed(1).padStart(6)} s  ${what}`) });
  leave = () => {
    leave = () => process.exit(130);
    console.log("\nstopping");
    void bed.stop().then(() => process.exit(0));
  };
  try {
    await startPodRunner(bed, { files: { "/app/controller.cjs": bundle } });
    if (count > 0) await addHosts(bed, count);
    describe(bed);
  } catch (error) {
    bed.keep();
    await bed.stop();
    throw error;
  }
}

await serve().catch((error: unknown) => {
  console.error(error instanceof Error ? error.message : error);
  process.exit(1);
});
