/** Why nothing may be started or advanced, and why what was begun must be undone. */
import { ownHold, orphanHold } from "./draft.ts";
import type { Snapshot } from "./snapshot.ts";

export interface Gate {
  /** `Failed`: the phase says so; `held`: only the condition does. */
  as: "Failed" | "held";
  reason: string;
  message: string;
}

export type UndoCause = "Deleted" | "Stopped" | "MachineDeleting" | "MachineGone" | "HostMismatch";

/** What is paused, or undefined. */
export function pausedBy(snapshot: Snapshot): string | undefined {
  if (snapshot.cluster.paused) return `Cluster ${snapshot.cluster.name}`;
  if (snapshot.remediation.paused) return "this remediation";
  if (snapshot.machine?.paused === true) return `Machine ${snapshot.machine.name}`;
  if (snapshot.host?.paused === true) return `host ${snapshot.host.name}`;
  return undefined;
}

export function undoCause(snapshot: Snapshot): UndoCause | undefined {
  const { remediation, machine, own, chain, host } = snapshot;
  if (remediation.deleting) return "Deleted";
  if (machine === undefined || machine.uid !== remediation.machineUid) return "MachineGone";
  if (machine.deleting) return "MachineDeleting";
  if (own.stop === "on") return "Stopped";
  if (ownHold(snapshot) !== undefined && !(chain.ok && chain.hostUid === host?.uid)) return "HostMismatch";
  return undefined;
}

/** Why the remediation may not go on, with everything else in order. Pause and undoing come before. */
export function gateOf(snapshot: Snapshot): Gate | undefined {
  const { chain, host, machine, own, workload } = snapshot;
  if (own.stop === "unknown") return { as: "held", reason: "SettingsUnknown", message: "the controller has not read its settings yet" };
  if (!chain.ok) return { as: "Failed", reason: chain.reason, message: chain.message };
  if (host === undefined) return { as: "Failed", reason: "HostMismatch", message: "the host of the Machine is gone" };
  if (host.deleting) return { as: "held", reason: "HostDeleting", message: `host ${host.name} is being deleted` };
  const held = ownHold(snapshot) !== undefined;
  if (!held && own.nodeName !== undefined && own.nodeName === machine?.nodeName) {
    return { as: "Failed", reason: "OwnHost", message: `this controller runs on Node ${own.nodeName}; move it to another and the repair starts` };
  }
  if (host.hold.state === "unreadable")
    return { as: "held", reason: "HeldByOther", message: `host ${host.name}: ${host.hold.problem}; a person has to remove or mend it` };
  if (host.hold.state === "held" && !held && orphanHold(snapshot) === undefined) {
    const { hold } = host.hold;
    const holder =
      hold.remediation === undefined ? `the ${hold.by} controller` : `${hold.remediation.kind} ${hold.remediation.namespace}/${hold.remediation.name}`;
    return { as: "held", reason: "HeldByOther", message: `host ${host.name} is held by ${holder}` };
  }
  if (!host.bmc) return { as: "Failed", reason: "NoPowerDriver", message: `host ${host.name} names no BMC` };
  const node = workload.state === "read" ? workload.node : null;
  if (node?.providerID !== undefined && machine?.providerID !== undefined && node.providerID !== machine.providerID) {
    return { as: "Failed", reason: "HostMismatch", message: `Node ${node.name} has the provider id ${node.providerID}, the Machine ${machine.providerID}` };
  }
  return undefined;
}
