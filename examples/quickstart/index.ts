// A worker group on registered machines, repaired by power cycle when a Node stops answering.
//
// The management cluster is that of KUBECONFIG, or of `pulumi config set --secret baremetal:kubeconfig`; the objects go
// into the namespace of `pulumi config set baremetal:namespace`, else into `default`.
import * as pulumi from "@pulumi/pulumi";
import { MachineInventoryPool, RemediationController, RemediationPolicy, WorkerGroup } from "pulumi-baremetal";

/** One registered machine, as given by `pulumi config set hosts '[{"name": …}]'`. */
interface Host {
  /** Name of its MachineInventory. */
  name: string;
  /** Host name, and so Node name, of the machine. */
  hostname: string;
  bmc: {
    /** Redfish address, for example `https://10.0.7.7/redfish/v1/Systems/1`. */
    address: string;
    /** Secret with `username` and `password`. */
    secretName: string;
    /** Secret with `ca.crt`, where the BMC's certificate is from a CA of your own. */
    caSecretName?: string;
  };
}

const config = new pulumi.Config();
const clusterName = config.require("clusterName");

const controller = new RemediationController("controller", {
  // Both: nothing else in this cluster hands out registered machines.
  controllers: ["remediation", "inventory"],
  image: config.require("image"),
  replicas: config.getNumber("controllerReplicas") ?? 1,
});

const pool = new MachineInventoryPool(
  "workers",
  {
    clusterName,
    machineInventories: config.requireObject<Host[]>("hosts"),
  },
  { dependsOn: controller },
);

const workers = new WorkerGroup(
  "workers",
  {
    clusterName,
    version: config.require("version"),
    replicas: config.getNumber("replicas") ?? 3,
    removeMachines: config.getObject<string[]>("removeMachines"),
    infrastructure: { machineInventory: { pool } },
    bootstrap: {
      kubeadm: {
        users: [{ name: "boot", sudo: "ALL=(ALL) NOPASSWD:ALL", sshAuthorizedKeys: config.getObject<string[]>("sshAuthorizedKeys") ?? [] }],
        // A change of what a machine boots with replaces the machines one by one.
        files: [{ path: "/etc/motd", owner: "root:root", permissions: "0644", content: config.get("motd") ?? "Kept by Pulumi.\n" }],
      },
    },
    waitTimeout: config.get("waitTimeout") ?? "5m",
  },
  { dependsOn: controller },
);

const unhealthyAfter = config.get("unhealthyAfter") ?? "5m";

new RemediationPolicy(
  "workers",
  {
    workerGroup: workers,
    maxUnhealthy: 1,
    unhealthyNodeConditions: [
      { type: "Ready", status: "Unknown", timeout: unhealthyAfter },
      { type: "Ready", status: "False", timeout: unhealthyAfter },
    ],
    strategy: {
      type: "Reboot",
      retryLimit: 1,
      timeout: config.get("readyTimeout") ?? "10m",
      powerOffTimeout: "20s",
      powerOnTimeout: "20s",
    },
  },
  { dependsOn: controller },
);

export const poolName = pool.poolName;
export const machineDeployment = workers.machineDeployment;
