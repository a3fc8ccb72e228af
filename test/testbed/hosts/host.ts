/** One simulated host: its power is its BMC's, all else follows from what is on its disk and whether it runs. */
import { randomUUID } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";

import type { EmulatedBmc } from "../bmc/bmcs.ts";
import { runAgent } from "./agent.ts";
import type { PlanOutcome } from "./agent.ts";
import { USER_DATA_PATH, joinOf, seedOf } from "./cloud-init.ts";
import type { Seed } from "./cloud-init.ts";
import { Disk } from "./disk.ts";
import { kubeadmJoin } from "./kubeadm-join.ts";
import { runKubelet } from "./kubelet.ts";
import type { KubeletState } from "./kubelet.ts";
import type { HostPlan } from "./plan.ts";
import type { HostStorage, Registration } from "./registration.ts";

const AGAIN_MS = 1_000;

/** How a host behaves; may be changed at any time and holds from the next boot, plan or join on. */
export interface HostBehaviour {
  /** Milliseconds from power to a running system. */
  bootMs: number;
  /** Milliseconds that the instructions of a plan take. */
  planMs: number;
  /** Milliseconds between the boot and `kubeadm join`; `never` leaves the host out of the cluster. */
  joinDelayMs: number | "never";
  /** Joins under this name in place of the one it is told. */
  wrongName: string | undefined;
  /** The version of the kubelet in the host's image. */
  kubeletVersion: string;
  /** What the next plans with instructions end with in place of success. */
  planFailure: string | undefined;
  storage: HostStorage | undefined;
}

export const defaultBehaviour: HostBehaviour = {
  bootMs: 1_000,
  planMs: 500,
  joinDelayMs: 0,
  wrongName: undefined,
  kubeletVersion: "v1.37.2",
  planFailure: undefined,
  storage: undefined,
};

export interface CarriedOut {
  instructions: readonly string[];
  applied: boolean;
}

/** What is true of a host, for tests to compare with what is said of it. */
export interface HostState {
  power: "On" | "Off";
  booted: boolean;
  hung: boolean;
  cutOff: boolean;
  registered: boolean;
  /** One a boot, the latest last. */
  bootIds: readonly string[];
  /** The Node as which it has joined, also while it is off. */
  nodeName: string | undefined;
  /** Whether a kubelet of it can write to the cluster now. */
  kubeletRuns: boolean;
  /** Instructions of the plans that were carried out, the latest last. */
  plans: readonly CarriedOut[];
}

export interface HostOptions {
  name: string;
  namespace: string;
  bmc: EmulatedBmc;
  registration: Registration;
  behaviour: HostBehaviour;
  log: (line: string) => void;
}

export class SimulatedHost {
  readonly name: string;
  readonly behaviour: HostBehaviour;
  readonly #options: HostOptions;
  readonly #disk = new Disk();
  readonly #systemUuid = randomUUID();
  readonly #bootIds: string[] = [];
  readonly #plans: CarriedOut[] = [];
  readonly #work = new Set<Promise<void>>();
  readonly #forgetBmc: () => void;
  #booted = false;
  #hung = false;
  #cutOff = false;
  #ended = false;
  /** From power to power-off, hang or reboot. */
  #run = new AbortController();
  /** What of the run needs the network. */
  #network = new AbortController();
  /** What of it belongs to the cluster: the join and the kubelet. */
  #membership = new AbortController();
  #kubelet: AbortSignal | undefined;

  constructor(options: HostOptions) {
    this.name = options.name;
    this.behaviour = options.behaviour;
    this.#options = options;
    this.#forgetBmc = options.bmc.onPowerChange((power) => {
      options.log(`is ${power.toLowerCase()}`);
      if (power === "On") this.#start();
      else this.#halt();
    });
    if (options.bmc.power() === "On") this.#start();
  }

  /** The system stands still until the power is cycled; the BMC goes on. */
  hang(): void {
    this.#options.log("hangs");
    this.#halt();
    this.#hung = true;
  }

  /** The host runs on without a network, through boots as well, until `reconnect`. */
  cutOff(): void {
    this.#options.log("is cut off");
    this.#cutOff = true;
    this.#network.abort();
  }

  reconnect(): void {
    this.#options.log("is connected again");
    this.#cutOff = false;
    if (this.#booted) this.#connect();
  }

  /** Another phase of its managed volumes, shown in the inventory. */
  async setStoragePhase(phase: string): Promise<void> {
    this.behaviour.storage = { volumes: this.behaviour.storage?.volumes ?? [], phase };
    await this.#options.registration.setStorage(this.name, phase);
  }

  trueState(): HostState {
    return {
      power: this.#options.bmc.power(),
      booted: this.#booted,
      hung: this.#hung,
      cutOff: this.#cutOff,
      registered: this.#disk.agent !== undefined,
      bootIds: [...this.#bootIds],
      nodeName: this.#disk.kubelet?.nodeName,
      kubeletRuns: this.#kubelet?.aborted === false,
      plans: [...this.#plans],
    };
  }

  /** Ends the simulation; the BMC is left as it is. */
  async stop(): Promise<void> {
    this.#ended = true;
    this.#forgetBmc();
    this.#halt();
    while (this.#work.size > 0) await Promise.all([...this.#work]);
  }

  #halt(): void {
    this.#booted = false;
    this.#hung = false;
    this.#run.abort();
  }

  #start(): void {
    this.#halt();
    if (this.#ended) return;
    this.#run = new AbortController();
    this.#spawn(this.#boot(this.#run.signal));
  }

  async #boot(run: AbortSignal): Promise<void> {
    await pause(this.behaviour.bootMs, undefined, { signal: run });
    this.#booted = true;
    this.#bootIds.push(randomUUID());
    this.#options.log(`has booted, boot ${this.#bootIds.at(-1) ?? ""}`);
    if (!this.#cutOff) this.#connect();
  }

  #connect(): void {
    this.#network.abort();
    this.#network = new AbortController();
    this.#membership = new AbortController();
    const connected = AbortSignal.any([this.#run.signal, this.#network.signal]);
    this.#spawn(this.#runAgent(connected));
    this.#spawn(this.#joinOrResume(AbortSignal.any([connected, this.#membership.signal])));
  }

  async #runAgent(signal: AbortSignal): Promise<void> {
    const { registration, namespace, log } = this.#options;
    while (this.#disk.agent === undefined) {
      try {
        this.#disk.agent = await registration.register(this.name, this.behaviour.storage);
        log("has registered");
      } catch (error) {
        log(`registration: ${String(error)}`);
        await pause(AGAIN_MS, undefined, { signal });
      }
    }
    const carryOut = (plan: HostPlan): Promise<PlanOutcome> => this.#carryOut(plan, signal);
    const carriedOut = (plan: HostPlan, outcome: PlanOutcome): void => this.#afterPlan(plan, outcome);
    await runAgent({ connection: this.#disk.agent, namespace, inventory: this.name, carryOut, carriedOut, log }, signal);
  }

  async #carryOut(plan: HostPlan, signal: AbortSignal): Promise<PlanOutcome> {
    if (plan.instructions.length > 0) {
      await pause(this.behaviour.planMs, undefined, { signal });
      if (this.behaviour.planFailure !== undefined) return { applied: false, output: this.behaviour.planFailure };
    }
    if (plan.files.has(USER_DATA_PATH)) {
      this.#membership.abort();
      this.#disk.reprovision(plan.files);
    } else {
      this.#disk.write(plan.files);
      if (plan.instructions.includes("clean")) {
        this.#membership.abort();
        this.#disk.clean();
      }
    }
    return { applied: true };
  }

  #afterPlan(plan: HostPlan, outcome: PlanOutcome): void {
    const { instructions, files, checksum } = plan;
    this.#options.log(`plan ${checksum.slice(0, 8)} (${instructions.join(", ")}) ${outcome.applied ? "applied" : `failed: ${outcome.output}`}`);
    this.#plans.push({ instructions, applied: outcome.applied });
    // The new system is booted into.
    if (outcome.applied && files.has(USER_DATA_PATH)) this.#start();
  }

  /** A host that has joined is the same Node after each boot; one with a seed that has not run yet joins by it. */
  async #joinOrResume(signal: AbortSignal): Promise<void> {
    const { joinDelayMs } = this.behaviour;
    const seed = seedOf(this.#disk.files);
    if (this.#disk.kubelet === undefined) {
      if (seed === undefined || seed.instanceId === this.#disk.cloudInitDone || joinDelayMs === "never") return;
      await pause(joinDelayMs, undefined, { signal });
      this.#disk.kubelet = await this.#join(seed, signal);
      this.#disk.cloudInitDone = seed.instanceId;
    }
    this.#kubelet = signal;
    const boot = { bootId: this.#bootIds.at(-1) ?? "", systemUuid: this.#systemUuid, kubeletVersion: this.behaviour.kubeletVersion };
    await runKubelet(this.#disk.kubelet, boot, signal, this.#options.log);
  }

  async #join(seed: Seed, signal: AbortSignal): Promise<KubeletState> {
    for (;;) {
      try {
        const told = joinOf(seed);
        const join = { ...told, nodeName: this.behaviour.wrongName ?? told.nodeName };
        const connection = await kubeadmJoin(join, signal);
        // What was cleaned meanwhile stays clean.
        signal.throwIfAborted();
        const { nodeName, providerId, labels, taints } = join;
        return { connection, nodeName, providerId, labels, taints };
      } catch (error) {
        if (signal.aborted) throw error;
        this.#options.log(`kubeadm join: ${error instanceof Error ? error.message : String(error)}`);
        await pause(AGAIN_MS, undefined, { signal });
      }
    }
  }

  #spawn(work: Promise<void>): void {
    const settled = work
      .catch((error: unknown) => {
        if (!(error instanceof Error && error.name === "AbortError")) this.#options.log(String(error));
      })
      .finally(() => this.#work.delete(settled));
    this.#work.add(settled);
  }
}
