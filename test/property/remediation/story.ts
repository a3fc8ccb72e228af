/** What happens in one run: passes of the controller, faults in them, time, and everything that others do. */
import fc from "fast-check";

import { writeHold } from "../../../provider/hosts/power-hold.ts";
import { ControllerProcess, type Decide, type Fault } from "./process.ts";
import { type BmcMode, type Violation, World } from "./world.ts";

export type Step =
  | { do: "work"; passes: number; pace: "asked" | "late" }
  | { do: "faulty"; fault: Fault }
  | { do: "tick"; ms: number }
  | { do: "event"; event: EventName; pick: number };

const modes: readonly BmcMode[] = ["ok", "dead", "refuses", "empty", "malformed"];
const lags = [0, 300, 1_500, 4_000, 11_000];

/** Everything that happens around the controller. `pick` chooses among the values of an event. */
const events = {
  /** MachineHealthCheck: an object for a Machine whose Node is not well. */
  remediationCreated(world: World) {
    const { machine, remediation } = world;
    if (remediation !== undefined || machine === undefined || machine.deleting) return;
    world.remediation = {
      version: world.next(),
      uid: world.serial("remediation"),
      machineUid: machine.uid,
      deleting: false,
      paused: false,
      finalizer: false,
      status: {},
    };
  },
  remediationDeleted(world: World) {
    const { remediation } = world;
    if (remediation === undefined) return;
    world.remediation = remediation.finalizer ? { ...remediation, deleting: true, version: world.next() } : undefined;
  },
  hostHangs(world: World) {
    world.hung = true;
    world.unready();
  },
  hostRecovers: (world: World) => world.recover(),
  hostDies(world: World) {
    if (world.power) world.goesDown("other");
  },
  machineDeleted(world: World) {
    if (world.machine !== undefined) world.machine = { ...world.machine, deleting: true, version: world.next() };
  },
  /** The inventory controller takes over what it may, and gives the host up as it must. */
  hostGivenUp(world: World) {
    const { machine, host } = world;
    if (machine?.deleting !== true || host === undefined || host.machineUid !== machine.uid) return;
    const hold = world.trueHold();
    if (hold !== undefined && (hold.by !== "remediation" || hold.purpose === "reboot")) return;
    if (hold === undefined && !world.power) return;
    world.host = { ...host, hold: undefined, machineUid: undefined, unhealthy: host.unhealthy || hold !== undefined, version: world.next() };
    world.machine = undefined;
    world.node = null;
    world.deletedNodeLabels = undefined;
    if (world.remediation !== undefined) events.remediationDeleted(world);
  },
  inventoryHolds(world: World) {
    const { machine, host } = world;
    if (host === undefined || machine === undefined || host.hold !== undefined) return;
    const at = new Date(world.now).toISOString();
    const reference = { namespace: "cpaas-system", name: "machine-a", uid: machine.uid };
    const hold = writeHold({
      by: "inventory",
      purpose: "replace",
      machine: reference,
      host: host.uid,
      cluster: { namespace: "cpaas-system", name: "edge" },
      wasOn: true,
      attempt: 0,
      askedAt: at,
      offBy: at,
    });
    world.host = { ...host, hold, version: world.next() };
  },
  inventoryLetsGo(world: World) {
    if (world.host !== undefined && world.trueHold()?.by === "inventory") world.host = { ...world.host, hold: undefined, version: world.next() };
  },
  holdRemovedByPerson(world: World) {
    if (world.host?.hold === undefined) return;
    world.host = { ...world.host, hold: undefined, version: world.next() };
    world.personTookOver = true;
    world.debtsForgotten = true;
  },
  /** Only where it is true: a person who confirms what is not so breaks what no software can mend. */
  confirmedOff(world: World) {
    if (!world.power && world.host !== undefined && world.machine !== undefined)
      world.host = { ...world.host, confirmedOff: world.machine.uid, version: world.next() };
  },
  hostPaused(world: World) {
    if (world.host !== undefined) world.host = { ...world.host, paused: !world.host.paused, version: world.next() };
  },
  machinePaused(world: World) {
    if (world.machine !== undefined) world.machine = { ...world.machine, paused: !world.machine.paused, version: world.next() };
  },
  remediationPaused(world: World) {
    if (world.remediation !== undefined) world.remediation = { ...world.remediation, paused: !world.remediation.paused, version: world.next() };
  },
  clusterPaused(world: World) {
    world.clusterPaused = !world.clusterPaused;
  },
  stopSwitch(world: World) {
    world.stop = world.stop === "on" ? "off" : "on";
  },
  viewStale(world: World) {
    world.fresh = !world.fresh;
  },
  workload(world: World, pick: number) {
    world.workload = (["reachable", "unreachable", "forbidden"] as const)[pick % 3] ?? "reachable";
  },
  version(world: World, pick: number) {
    world.version = ["v1.37.2", "v1.27.9", undefined, "v1.28.0+rke2"][pick % 4];
  },
  podsLeft(world: World, pick: number) {
    world.terminatingPods = pick % 3;
  },
  attachmentsLeft(world: World, pick: number) {
    world.attachments = pick % 2;
  },
  foreignTaint(world: World) {
    if (world.node?.taint === "none") world.node = { ...world.node, taint: "foreign", version: world.next() };
  },
  nodeWritten(world: World) {
    if (world.node !== null) world.node = { ...world.node, labels: { ...world.node.labels, other: world.serial("value") }, version: world.next() };
  },
  bmc(world: World, pick: number) {
    world.bmcMode = modes[pick % modes.length] ?? "ok";
  },
  bmcWell(world: World) {
    world.bmcMode = "ok";
    world.losesAnswers = world.stuckOff = world.stuckOn = false;
  },
  bmcLosesAnswers(world: World) {
    world.losesAnswers = true;
  },
  bmcStuck(world: World, pick: number) {
    world.stuckOff = pick % 2 === 0;
    world.stuckOn = !world.stuckOff;
  },
  bmcLags(world: World, pick: number) {
    world.offLagMs = lags[pick % lags.length] ?? 0;
    world.onLagMs = lags[Math.floor(pick / lags.length) % lags.length] ?? 0;
  },
  /** Off is said too early, or from a cache: both for less than the confirmation. */
  bmcLies(world: World, pick: number) {
    world.earlyOffMs = [0, 1_500, 1_900][pick % 3] ?? 0;
    world.cacheMs = [0, 1_000, 1_900][Math.floor(pick / 3) % 3] ?? 0;
  },
  bmcRemoved(world: World) {
    if (world.host !== undefined) world.host = { ...world.host, bmc: !world.host.bmc, version: world.next() };
  },
  /** The links lead to another Machine now. */
  hostMoved(world: World) {
    if (world.host !== undefined && world.machine !== undefined)
      world.host = { ...world.host, machineUid: world.host.machineUid === world.machine.uid ? "machine-other" : world.machine.uid, version: world.next() };
  },
} satisfies Record<string, (world: World, pick: number) => void>;

export type EventName = keyof typeof events;
const isEventName = (name: string): name is EventName => name in events;
const names = Object.keys(events).filter(isEventName);

const pick = fc.nat({ max: 100 });
const fault: fc.Arbitrary<Fault> = fc.record({ kind: fc.constantFrom("crashBefore", "crashAfter", "lostAnswer"), at: fc.nat({ max: 4 }) });

export const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        do: fc.constant("work" as const),
        passes: fc.integer({ min: 1, max: 12 }),
        pace: fc.constantFrom("asked" as const, "asked" as const, "late" as const),
      }),
    },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("faulty" as const), fault }) },
    { weight: 3, arbitrary: fc.record({ do: fc.constant("tick" as const), ms: fc.constantFrom(100, 1_000, 2_000, 5_000, 15_000, 25_000, 130_000) }) },
    { weight: 5, arbitrary: fc.record({ do: fc.constant("event" as const), event: fc.constantFrom(...names), pick }) },
    {
      weight: 1,
      arbitrary: fc.record({
        do: fc.constant("event" as const),
        event: fc.constantFrom("remediationCreated" as const, "bmcWell" as const, "hostHangs" as const),
        pick,
      }),
    },
  ),
  { minLength: 8, maxLength: 80 },
);

/** What is the case from the start. */
export interface Setup {
  lags: number;
  lies: number;
  version: number;
  stuck: "nothing" | "off" | "on";
  mode: BmcMode;
}

export const setups: fc.Arbitrary<Setup> = fc.record({
  lags: pick,
  lies: pick,
  version: pick,
  stuck: fc.constantFrom("nothing", "nothing", "nothing", "off", "on"),
  mode: fc.constantFrom("ok", "ok", "ok", "ok", ...modes),
});

/** Longer than all waits of all attempts together. */
const SETTLE_MS = 20 * 60_000;
const LATE_MS = 7_000;
const HEALED_PASSES = 60;

export class Story {
  readonly world = new World();
  readonly process: ControllerProcess;
  stepsTaken = 0;

  constructor(decide: Decide) {
    this.process = new ControllerProcess(this.world, decide);
  }

  tell(setup: Setup, steps: readonly Step[]): readonly Violation[] {
    events.bmcLags(this.world, setup.lags);
    events.bmcLies(this.world, setup.lies);
    events.version(this.world, setup.version);
    this.world.bmcMode = setup.mode;
    this.world.stuckOff = setup.stuck === "off";
    this.world.stuckOn = setup.stuck === "on";
    events.hostHangs(this.world);
    events.remediationCreated(this.world);
    this.process.sync();
    for (const step of steps) this.#take(step);
    this.#settleWithFaults();
    this.#settleHealed();
    return this.world.violations;
  }

  #take(step: Step): void {
    const { world, process } = this;
    this.stepsTaken++;
    switch (step.do) {
      case "work":
        for (let pass = 0; pass < step.passes; pass++) this.#pass(step.pace === "late" ? LATE_MS : 0);
        break;
      case "faulty":
        // The watch is not always up to date when a pass begins.
        if (step.fault.at % 2 === 0) process.sync();
        process.pass(step.fault);
        break;
      case "tick":
        world.advance(step.ms);
        break;
      case "event":
        events[step.event](world, step.pick);
    }
    world.check();
  }

  #pass(late: number): void {
    const { world, process } = this;
    this.stepsTaken++;
    process.sync();
    const next = process.pass();
    world.check();
    world.advance(Math.max(1, Math.min(30_000, (next ?? world.now + 5_000) - world.now)) + late);
    world.check();
  }

  /** Whatever is broken stays broken, but nobody interferes: every wait has to end, or to be held with a reason. */
  #settleWithFaults(): void {
    const { world } = this;
    this.#calm();
    const since = world.now;
    while (world.now - since < SETTLE_MS) this.#pass(LATE_MS);
    this.#expectSettled();
  }

  /** Everything is mended: no debt may be left. */
  #settleHealed(): void {
    const { world, process } = this;
    events.bmcWell(world);
    world.workload = "reachable";
    world.version = "v1.37.2";
    world.terminatingPods = world.attachments = 0;
    world.hung = false;
    if (world.host !== undefined) world.host = { ...world.host, bmc: true, version: world.next() };
    for (let round = 0; round < 3; round++) {
      world.recover();
      for (let pass = 0; pass < HEALED_PASSES; pass++) this.#pass(round === 2 ? LATE_MS : 0);
      // MachineHealthCheck removes what it made once the Node is well; what was given up it leaves.
      if (world.node?.ready === true || world.machine?.deleting === true || round === 1) events.remediationDeleted(world);
    }
    process.sync();
    this.#expectNothingOwed();
  }

  #calm(): void {
    const { world } = this;
    world.clusterPaused = false;
    world.stop = "off";
    world.fresh = true;
    if (world.remediation !== undefined) world.remediation = { ...world.remediation, paused: false, version: world.next() };
    if (world.machine !== undefined) world.machine = { ...world.machine, paused: false, version: world.next() };
    if (world.host !== undefined) world.host = { ...world.host, paused: false, version: world.next() };
  }

  #expectSettled(): void {
    const { remediation } = this.world;
    if (remediation === undefined) return;
    const progressing = remediation.status.conditions?.find(({ type }) => type === "Progressing");
    if (progressing === undefined) this.world.violate(8, "a remediation says nothing of itself");
    else if (progressing.status === "True") this.world.violate(8, `still ${progressing.reason} long after every deadline: ${progressing.message}`);
    else if (progressing.message === "") this.world.violate(8, `${progressing.reason} without a message`);
  }

  #expectNothingOwed(): void {
    const { world } = this;
    const { host, machine, node } = world;
    const hold = world.trueHold();
    const givenUp = host?.unhealthy === true && machine?.uid !== host.machineUid;
    const waitsForOwner = (host?.unhealthy === true && machine?.offered === true) || (hold?.purpose === "replace" && machine?.deleting === true);
    if (hold?.by === "remediation" && !givenUp && !waitsForOwner && host?.machineUid === machine?.uid)
      world.violate(2, `a hold is left for ever: owed ${hold.owed.join(", ")}`);
    if (machine === undefined || machine.offered || hold !== undefined || host?.machineUid !== machine.uid) return;
    if (!world.power && world.offBecause === "us" && !host.unhealthy && !world.personTookOver) world.violate(2, "the host stays off");
    if (world.debtsForgotten) return;
    if (node !== null && node.taint === "ours" && world.power) world.violate(6, "our taint is left on a Node that has booted");
    const lost = Object.keys(world.deletedNodeLabels ?? {}).filter((label) => node !== null && !(label in node.labels));
    if (lost.length > 0) world.violate(6, `labels of the Node are lost: ${lost.join(", ")}`);
  }
}
