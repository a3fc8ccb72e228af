/** A decision while it is being made: a working copy of the status, and the actions so far. */
import { isDeepStrictEqual } from "node:util";

import { owedOf, type PowerHold } from "../../hosts/power-hold.ts";
import type { Action, Decision, HoldIntent, HostRecord, Reason } from "./decision.ts";
import type { Policy } from "./policy.ts";
import type { HostView, MachineView, Snapshot } from "./snapshot.ts";
import { type AttemptRecord, type Condition, HISTORY_LIMIT, type Phase, type RemediationStatus } from "./status.ts";

export const POLL_MS = 1_000;
export const NODE_POLL_MS = 2_000;
export const IDLE_CHECK_MS = 30_000;

export function iso(milliseconds: number): string {
  return new Date(milliseconds).toISOString();
}

export class Draft {
  readonly snapshot: Snapshot;
  readonly policy: Policy;
  readonly now: number;
  readonly status: RemediationStatus;
  readonly #actions: Action[] = [];
  readonly #reasons: Reason[] = [];
  #nextCheckAt: number | undefined;

  constructor(snapshot: Snapshot, policy: Policy, now: number) {
    this.snapshot = snapshot;
    this.policy = policy;
    this.now = now;
    this.status = structuredClone(snapshot.remediation.status);
  }

  act(...actions: Action[]): void {
    this.#actions.push(...actions);
  }

  /** Puts the write of the status here in the order of actions; it carries whatever the status holds at the end. */
  commitStatus(): void {
    this.#actions.push({ type: "writeStatus", status: this.status });
  }

  checkAt(at: number): void {
    this.#nextCheckAt = this.#nextCheckAt === undefined ? at : Math.min(this.#nextCheckAt, at);
  }

  checkIn(milliseconds: number): void {
    this.checkAt(this.now + milliseconds);
  }

  set phase(phase: Phase | undefined) {
    if (phase === undefined) delete this.status.phase;
    else this.status.phase = phase;
  }

  /** Something happened: remembered in the history and told as an Event. */
  step(reason: string, message: string, warning = false): void {
    const attempt = this.status.attempt?.number;
    const history = this.status.history ?? [];
    history.push({ at: iso(this.now), ...(attempt === undefined ? {} : { attempt }), reason, message });
    this.status.history = history.slice(-HISTORY_LIMIT);
    this.#reasons.push({ reason, message, warning });
  }

  condition(type: string, status: Condition["status"], reason: string, message: string): void {
    const conditions = this.status.conditions ?? [];
    const before = conditions.find((candidate) => candidate.type === type);
    const { generation } = this.snapshot.remediation;
    const next: Condition = {
      type,
      status,
      reason,
      message,
      lastTransitionTime: before?.status === status ? before.lastTransitionTime : iso(this.now),
      ...(generation === undefined ? {} : { observedGeneration: generation }),
    };
    this.status.conditions = [...conditions.filter((candidate) => candidate.type !== type), next].sort((a, b) => (a.type < b.type ? -1 : 1));
  }

  /** What is going on right now. A change of the reason is told as an Event. */
  progress(going: boolean, reason: string, message: string): void {
    const before = this.snapshot.remediation.status.conditions?.find(({ type }) => type === "Progressing");
    if (before?.reason !== reason && !going) this.#reasons.push({ reason, message, warning: true });
    this.condition("Progressing", going ? "True" : "False", reason, message);
  }

  finish(): Decision {
    const { generation, status: observed, deleting } = this.snapshot.remediation;
    const actions = this.#actions;
    const committed = actions.some(({ type }) => type === "writeStatus");
    const leaving = deleting && actions.some(({ type }) => type === "removeFinalizer");
    if (generation !== undefined && (committed || !isDeepStrictEqual(this.status, observed))) this.status.observedGeneration = generation;
    if (!committed && !leaving && !isDeepStrictEqual(this.status, observed)) {
      // The last write of an object that stays: the finalizer goes after what it stood for is told.
      const last = actions.findIndex(({ type }) => type === "removeFinalizer");
      actions.splice(last < 0 ? actions.length : last, 0, { type: "writeStatus", status: this.status });
    }
    return { actions, status: this.status, reasons: this.#reasons, ...(this.#nextCheckAt === undefined ? {} : { nextCheckAt: this.#nextCheckAt }) };
  }

  /** Machine and host, which every step past the gates has. */
  parts(): { machine: MachineView; host: HostView } {
    const { machine, host } = this.snapshot;
    if (machine === undefined || host === undefined) throw new TypeError(`remediation ${this.snapshot.remediation.name}: acted upon without Machine or host`);
    return { machine, host };
  }

  attempt(): AttemptRecord {
    const { attempt } = this.status;
    if (attempt === undefined) throw new TypeError(`remediation ${this.snapshot.remediation.name}: no attempt under way`);
    return attempt;
  }
}

/** The hold on the host, where it is this remediation's. */
export function ownHold(snapshot: Snapshot): PowerHold | undefined {
  const reading = snapshot.host?.hold;
  if (reading?.state !== "held") return undefined;
  const { hold } = reading;
  return hold.by === "remediation" && hold.remediation?.uid === snapshot.remediation.uid ? hold : undefined;
}

/** A hold of this Machine that an earlier remediation left behind: the next one takes it over with all that is owed. */
export function orphanHold(snapshot: Snapshot): PowerHold | undefined {
  const { host, machine } = snapshot;
  if (host?.hold.state !== "held" || host.holderExists) return undefined;
  const { hold } = host.hold;
  return hold.by === "remediation" && hold.remediation?.uid !== snapshot.remediation.uid && hold.machine.uid === machine?.uid ? hold : undefined;
}

export function intentOf(hold: PowerHold): HoldIntent {
  const intent: HoldIntent & Partial<PowerHold> = { ...hold };
  delete intent.owed;
  return intent;
}

/** The Node that is dealt with: the Machine's, or where that is gone the one that it had. */
export function nodeNameOf({ machine, remediation }: Snapshot): string | undefined {
  if (machine !== undefined && machine.uid === remediation.machineUid) return machine.nodeName;
  return remediation.status.attempt?.nodeBefore?.name;
}

/** Whether our own hold still stands for work on the Node that only a new boot allows. */
export function nodeOwed(hold: PowerHold | HoldIntent): boolean {
  return owedOf(hold).some((owed) => owed !== "on");
}

/** The Node work that an attempt still owes. */
export function attemptOwesNode(attempt: AttemptRecord | undefined): boolean {
  return attempt?.fenceIntent !== undefined && attempt.clearedAt === undefined;
}

export function hostRecord(draft: Draft, outcome: string): HostRecord {
  const { machine } = draft.parts();
  const attempt = draft.attempt();
  return {
    at: iso(draft.now),
    machine: `${machine.namespace}/${machine.name}`,
    attempt: attempt.number,
    outcome,
    offAskedAt: attempt.offAskedAt,
    ...(attempt.offProvenAt === undefined ? {} : { offProvenAt: attempt.offProvenAt }),
    ...(attempt.nodeBefore?.bootID === undefined ? {} : { bootBefore: attempt.nodeBefore.bootID }),
  };
}
