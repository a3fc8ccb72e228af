/** Everything of the quick start around the program itself: bed, servers with their BMCs, a kubelet for Pods, and the Pulumi project. */
import { join, resolve } from "node:path";

import { secrets } from "../../provider/cluster/kinds.ts";
import { PulumiProject } from "../e2e/pulumi-cli.ts";
import { issueClientCertificate, startBed } from "./bed.ts";
import type { Bed, BedOptions } from "./bed.ts";
import { startBmcs } from "./bmc/bmcs.ts";
import type { Bmcs } from "./bmc/bmcs.ts";
import { createCertificateAuthority } from "./certificates.ts";
import { startHosts } from "./hosts/hosts.ts";
import type { HostBehaviour, Hosts } from "./hosts/hosts.ts";
import { Observer } from "./observe.ts";
import { startPodRunner } from "./pod-runner.ts";
import type { PodRunner } from "./pod-runner.ts";

const repository = resolve(import.meta.dirname, "../..");

/** Namespace that the component makes for the controller. */
export const CONTROLLER_NAMESPACE = "pulumi-baremetal-system";
const BMC_CA_SECRET = "bmc-ca";

export interface SceneOptions {
  /** Servers in the rack; 7 by default. */
  servers?: number;
  bed?: BedOptions;
  behaviour?: Partial<HostBehaviour>;
  /** Milliseconds between a power command and its effect; 1,000 by default. */
  powerDelayMs?: number;
  /** Lets the controller's Pods reach the management API through its fault proxy. */
  controllerThroughProxy?: boolean;
  /** Awaited before the project is made, where the Pulumi CLI may still be building. */
  pulumi?: Promise<void>;
}

export interface Scene {
  bed: Bed;
  bmcs: Bmcs;
  hosts: Hosts;
  pods: PodRunner;
  project: PulumiProject;
  observe: Observer;
  /** A pool entry of the quick start for a server. */
  poolEntry(server: string): object;
  stop(): Promise<void>;
}

export function serverName(number: number): string {
  return `rack1-${String(number).padStart(2, "0")}`;
}

/** Sets the stage: BMC Secrets written, servers on and registering, the quick start configured with the first six servers in its pool. */
export async function setScene(options: SceneOptions = {}): Promise<Scene> {
  const ends: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (const end of ends.reverse()) await end();
  };
  try {
    const bed = await startBed(options.bed);
    ends.push(() => bed.stop());
    const names = Array.from({ length: options.servers ?? 7 }, (_, index) => serverName(index + 1));
    const bmcs = await startBmcs({ directory: bed.directory, certificateAuthority: await createCertificateAuthority("bmc-ca"), hosts: names });
    ends.push(() => bmcs.stop());
    const delayMs = options.powerDelayMs ?? 1000;
    await Promise.all(bmcs.all.map((bmc) => bmc.setPower({ offMs: delayMs, onMs: delayMs })));
    const secret = async (name: string, stringData: Record<string, string>): Promise<unknown> =>
      bed.management.cluster.create(secrets, { apiVersion: "v1", kind: "Secret", metadata: { namespace: bed.namespace, name }, stringData });
    await secret(BMC_CA_SECRET, { "ca.crt": bmcs.certificateAuthority });
    for (const { host, username, password } of bmcs.all) await secret(`${host}-bmc`, { username, password });
    const hosts = startHosts({
      bmcs,
      cluster: bed.management.cluster,
      namespace: bed.namespace,
      directory: bed.directory,
      behaviour: options.behaviour ?? {},
      issueClientCertificate: (user, groups) => issueClientCertificate(bed.management, { user, groups }),
    });
    ends.push(() => hosts.stop());
    const pods = await startPodRunner(bed, {
      namespaces: [CONTROLLER_NAMESPACE],
      files: { "/app/controller.cjs": join(repository, "sdk/nodejs/dist/controller.cjs") },
      ...(options.controllerThroughProxy === true ? { server: bed.management.proxy.server } : {}),
    });
    await options.pulumi;
    const project = await PulumiProject.create({ directory: repository, env: { KUBECONFIG: bed.management.kubeconfigPath } });
    ends.push(() => {
      project.close();
      return Promise.resolve();
    });
    const poolEntry = (server: string): object => ({
      name: server,
      hostname: `${bed.clusterName}-w${Number(server.slice(-2))}`,
      bmc: { address: bmcs.bmc(server).address, secretName: `${server}-bmc`, caSecretName: BMC_CA_SECRET },
    });
    await project.config({
      "baremetal:namespace": bed.namespace,
      clusterName: bed.clusterName,
      version: "v1.37.2",
      image: "pulumi-baremetal-controller:of-the-bed",
      hosts: names.slice(0, 6).map(poolEntry),
      replicas: 3,
      unhealthyAfter: "5s",
      readyTimeout: "100s",
    });
    return { bed, bmcs, hosts, pods, project, observe: new Observer(bed), poolEntry, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
