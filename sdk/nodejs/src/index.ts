export { MachineInventoryPool } from "./machineInventoryPool.ts";
export { RemediationController } from "./remediationController.ts";
export type { RemediationControllerArgs } from "./remediationController.ts";
export type { ControllerName } from "./controllerRules.ts";
export { RemediationPolicy } from "./remediationPolicy.ts";
export { WorkerGroup } from "./workerGroup.ts";
export * from "./types.generated.ts";
