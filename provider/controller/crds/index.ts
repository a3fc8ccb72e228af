/** The CustomResourceDefinitions that this project brings. */
export { inventoryCrds } from "./inventory.ts";
export { remediationCrds } from "./remediation.ts";
