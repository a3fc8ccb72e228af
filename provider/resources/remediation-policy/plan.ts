/** What a policy means for the machines that it watches: pure, with the wording of it. */
import type { CountOrPercent } from "../../capi/machine-deployment.ts";
import type { Json } from "../inputs.ts";
import type { PolicyInputs } from "./inputs.ts";

/** How many machines may be unhealthy at once while repairs still begin; a percentage is rounded down, as Cluster API does. */
export function repairsUpTo(maxUnhealthy: CountOrPercent, replicas: number): number {
  return typeof maxUnhealthy === "number" ? maxUnhealthy : Math.floor((Number.parseInt(maxUnhealthy, 10) * replicas) / 100);
}

/** What in a policy looks right and does not do what is expected of it. */
export function policyWarnings(policy: Pick<PolicyInputs, "maxUnhealthy">, replicas: number | undefined, joining: number): string[] {
  const { maxUnhealthy } = policy;
  if (replicas === undefined || replicas === 0) return [];
  const limit = repairsUpTo(maxUnhealthy, replicas);
  if (limit < 1) return [`maxUnhealthy ${maxUnhealthy} of ${replicas} machines is rounded down to 0: nothing would ever be repaired; use a number, such as 1`];
  if (joining >= limit)
    return [
      `${joining} of ${replicas} machines are still being provisioned and count as unhealthy: with maxUnhealthy ${maxUnhealthy} nothing is repaired until they have joined`,
    ];
  return [];
}

export function policyLines(policy: PolicyInputs, kind: string): string[] {
  const { strategy } = policy;
  const conditions = policy.unhealthyNodeConditions.map(({ type, status, timeout }) => `${type}=${status} for ${timeout}`).join(" or ");
  const cycles = strategy.retryLimit + 1;
  return [
    `a node of ${policy.workerGroup.machineDeployment} with ${conditions} is repaired by at most ${cycles} power cycles of its host (${kind}), while at most ${policy.maxUnhealthy} machines are unhealthy; then it is replaced`,
  ];
}

/** The group's size is only there to warn by: a group that grows changes no policy. */
export function comparable(inputs: Json): Json {
  const group = inputs["workerGroup"];
  if (typeof group !== "object" || group === null) return inputs;
  return { ...inputs, workerGroup: Object.fromEntries(Object.entries(group).filter(([key]) => key !== "replicas")) };
}
