/** How far a group has come: pure functions of what is there, for the wait and for the words of its time-out. */
import { conditionOf } from "../../capi/conditions.ts";
import type { Observation } from "../wait.ts";
import type { GroupMachine, GroupView, HostMachine } from "./observe.ts";

/** What every machine is to be made from. */
export interface Target {
  replicas: number;
  version: string;
  infrastructureTemplate: string;
  bootstrapTemplate: string;
}

const NO_CONTROLLER = "no inventory controller is running";

/** What a BaremetalMachine complains of, if it does. */
function complaint(on: HostMachine): string {
  const bad = on.conditions.find(({ status, message }) => status === "False" && message !== undefined && message !== "");
  return bad?.message === undefined ? "" : `: ${bad.message}`;
}

function describe(machine: GroupMachine, outdated: boolean): string {
  const { name, on } = machine;
  if (machine.deleting) {
    const step = on === undefined ? undefined : on.phase === undefined ? undefined : `host ${on.host ?? "?"} ${on.phase}${complaint(on)}`;
    return `${name}: being removed, ${step ?? conditionOf(machine.conditions, "Deleting")?.message ?? "waiting"}`.trimEnd();
  }
  if (outdated) return `${name}: waits to be replaced`;
  if (on === undefined) return machine.nodeName === undefined ? `${name}: ${machine.phase ?? "Pending"}` : `${name}: Node ${machine.nodeName} is not ready`;
  if (!on.takenUp) return `${name}: not taken up by any inventory controller`;
  if (on.host === undefined) return `${name}: waits for a free host${complaint(on)}`;
  if (on.phase !== "Running") return `${name}: host ${on.host} ${on.phase ?? "Pending"}${complaint(on)}`;
  return machine.nodeName === undefined
    ? `${name}: host ${on.host} runs, its Node has not joined`
    : `${name}: host ${on.host}, Node ${machine.nodeName} is not ready`;
}

function traceOf(view: GroupView): string {
  const machines = view.machines.map(({ name, phase, deleting, ready, nodeName, on }) =>
    [name, phase, deleting, ready, nodeName, on?.phase, on?.host, on?.takenUp].join(":"),
  );
  return [...machines, ...view.leftovers.map(({ name, phase }) => `${name}:${phase ?? ""}`)].join(" ");
}

/** Names of the MachineSets whose machines are as wanted. */
function currentSets(view: GroupView, target: Target): Set<string> {
  return new Set(
    view.sets
      .filter(
        (set) =>
          !set.deleting &&
          set.version === target.version &&
          set.infrastructure.name === target.infrastructureTemplate &&
          set.bootstrap?.name === target.bootstrapTemplate,
      )
      .map(({ name }) => name),
  );
}

/**
 * Finished only when the machines themselves say so. The counters of a MachineDeployment claim a finished rollout for a
 * moment after each change, before anything was replaced.
 */
export function rolloutProgress(view: GroupView, target: Target): Observation {
  const sets = currentSets(view, target);
  const isCurrent = (machine: GroupMachine): boolean => machine.setName !== undefined && sets.has(machine.setName) && machine.version === target.version;
  const good = view.machines.filter((machine) => machine.ready && isCurrent(machine));
  const { deployment } = view;
  const counted =
    deployment !== undefined &&
    deployment.observed &&
    deployment.replicas === target.replicas &&
    deployment.availableReplicas === target.replicas &&
    (deployment.updatedReplicas === undefined || deployment.updatedReplicas === target.replicas);
  const done = counted && view.machines.length === target.replicas && good.length === target.replicas;
  const lines = view.machines.filter((machine) => !good.includes(machine)).map((machine) => describe(machine, !isCurrent(machine)));
  const held = view.machines.length < target.replicas ? view.sets.find(({ name }) => sets.has(name)) : undefined;
  const blocked = held === undefined ? undefined : conditionOf(held.conditions, "ScalingUp");
  if (blocked?.status === "True" && blocked.message !== undefined && blocked.message !== "") lines.push(blocked.message);
  // Of a rollout, the machines that still run as they were are not the ones waited for.
  const what = view.machines.every(isCurrent) ? "machines ready" : "machines replaced and ready";
  return { done, line: [`${good.length} of ${target.replicas} ${what}`, ...lines].join("; "), progress: traceOf(view) };
}

/** Who would have to act, where machines wait for a controller that does not show itself. */
export function missingController(view: GroupView): string | undefined {
  const waiting = view.machines.filter(({ deleting, on }) => !deleting && on !== undefined && !on.takenUp);
  if (waiting.length === 0) return undefined;
  return `${NO_CONTROLLER}: nothing has taken up ${waiting.map(({ name }) => name).join(", ")}; deploy RemediationController with controllers: ["remediation", "inventory"], and look at its Pods`;
}

export function removalProgress(view: GroupView): Observation {
  const lines = [
    ...view.machines.map((machine) => describe(machine, false)),
    ...view.leftovers.map((on) => `${on.name}: host ${on.host ?? "?"} ${on.phase ?? ""}${complaint(on)}`),
  ];
  const done = view.deployment === undefined && lines.length === 0;
  return {
    done,
    line: lines.length === 0 ? "waiting for the MachineDeployment to go" : lines.join("; "),
    progress: `${view.deployment === undefined ? "gone" : "there"} ${traceOf(view)}`,
  };
}

/** Who would have to act, where a removal stands still. */
export function removalStall(view: GroupView): string {
  const held = [...view.machines.flatMap(({ on }) => (on === undefined ? [] : [on])), ...view.leftovers].filter(({ deleting }) => deleting);
  const unheard = held.filter(({ phase }) => phase !== "Preparing" && phase !== "Failed");
  if (unheard.length > 0)
    return `${NO_CONTROLLER}: nothing gives back the host of ${unheard.map(({ name }) => name).join(", ")}; it has to run until the last machine is gone`;
  const [first] = held;
  if (first !== undefined) {
    return `host ${first.host ?? "?"} of ${first.name} is not given back yet (${first.phase ?? "no phase"}${complaint(first)}): its agent has to apply the clean plan, or its BMC has to prove it off`;
  }
  return "nothing moves: Cluster API's controllers have to remove the Machines; look at their Pods and at the conditions of the Machines";
}
