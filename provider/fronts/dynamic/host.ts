/** Entry of the bundle that stored providers load by name: `pulumi-baremetal/dynamic-host`. */
import { systemClock } from "../../clock.ts";
import { ClusterClient } from "../../cluster/client.ts";
import { inventoryCrds, remediationCrds } from "../../controller/crds/index.ts";
import { RedfishAccess } from "../../redfish/access.ts";
import { controllerDefinitions, definitionsInputs } from "../../resources/controller-definitions/lifecycle.ts";
import { removalInputs } from "../../resources/controller-removal/inputs.ts";
import { resources } from "../../resources/index.ts";
import { poolInputs } from "../../resources/machine-inventory-pool/inputs.ts";
import { policyInputs } from "../../resources/remediation-policy/inputs.ts";
import { groupInputs } from "../../resources/worker-group/inputs.ts";
import { dynamicFront } from "./front.ts";
import { connectionOf } from "./settings.ts";

const front = dynamicFront({
  resources: {
    MachineInventoryPool: { lifecycle: resources.MachineInventoryPool, inputKeys: Object.keys(poolInputs.shape) },
    WorkerGroup: { lifecycle: resources.WorkerGroup, inputKeys: Object.keys(groupInputs.shape) },
    RemediationPolicy: { lifecycle: resources.RemediationPolicy, inputKeys: Object.keys(policyInputs.shape) },
    ControllerDefinitions: {
      lifecycle: controllerDefinitions({ remediation: remediationCrds, inventory: inventoryCrds }),
      inputKeys: Object.keys(definitionsInputs.shape),
    },
    ControllerRemoval: { lifecycle: resources.ControllerRemoval, inputKeys: Object.keys(removalInputs.shape) },
  },
  openCluster: async (settings) => new ClusterClient(await connectionOf(settings, process.env), { userAgent: "pulumi-baremetal" }),
  bmcs: new RedfishAccess(),
  clock: systemClock,
  print: (line) => {
    console.log(line);
  },
});

export const call: typeof front.call = (kind, verb, args) => front.call(kind, verb, args);
