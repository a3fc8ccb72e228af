/** Does the one step that was decided for a BaremetalMachine; each write holds only for the version that the decision saw. */
import type { Clock } from "../../clock.ts";
import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { secrets } from "../../cluster/kinds.ts";
import type { LiveObject } from "../../cluster/objects.ts";
import { BmcTargetError, bmcTargetOf } from "../../hosts/bmc-target.ts";
import { baremetalMachines } from "../../hosts/kinds.ts";
import { allocationAnnotations, POWER_HOLD_ANNOTATION } from "../../hosts/names.ts";
import { writeHold } from "../../hosts/power-hold.ts";
import { type Bmc, type BmcAccess, isBmcError } from "../../redfish/bmc.ts";
import type { Log } from "../runtime/reconciler.ts";
import { claimAnnotations } from "./allocation.ts";
import { type BoundInventory, machineUidOf, type Observed, type Step } from "./decide.ts";
import { type BaremetalMachine, MACHINE_FINALIZER } from "./machine.ts";
import { cleanPlan, type HostPlan, planPatch, reprovisionPlan } from "./plans.ts";
import { newPowerMemory, type PowerMemory, withAccepted, withFailure, withReading } from "./power-off.ts";
import { annotate, offered, quarantined } from "./writes.ts";

/** How long the hold says that waiting for off takes; it is asked for longer than that if need be. */
const OFF_TIMEOUT_MS = 300_000;

type Bound = BoundInventory & { found: true };

export interface ActorParts {
  cluster: Cluster;
  bmcs: BmcAccess;
  clock: Clock;
  log: Log;
  random?: () => number;
}

export class MachineActor {
  readonly #parts: ActorParts;
  readonly #power = new Map<string, PowerMemory>();

  constructor(parts: ActorParts) {
    this.#parts = parts;
  }

  /** What was heard from the BMC since the hold was written; nothing of an earlier hold counts. */
  powerOf(machine: BaremetalMachine, bound: BoundInventory | undefined): PowerMemory | undefined {
    if (bound?.found !== true || bound.hold.state !== "held") return undefined;
    const memory = this.#power.get(machine.uid);
    return memory?.askedAt === Date.parse(bound.hold.hold.askedAt) ? memory : undefined;
  }

  /** Returns the machine where that was written. `live`: the machine as it is after the last write. */
  async perform(step: Step, observed: Observed, live: LiveObject, signal: AbortSignal): Promise<LiveObject | undefined> {
    const { machine, bound } = observed;
    switch (step.type) {
      case "wait":
        return undefined;
      case "addFinalizer":
        return this.#patchMachine(live, { metadata: { finalizers: [...machine.finalizers, MACHINE_FINALIZER] } }, signal);
      case "setProviderId":
        return this.#patchMachine(live, { metadata: {}, spec: { providerID: step.providerId } }, signal);
      case "removeFinalizer":
        await this.#removeFinalizer(live, signal);
        this.#power.delete(machine.uid);
        return undefined;
      case "claim":
        await this.#annotate(bound, claimAnnotations(machine, step.pool), signal);
        return undefined;
      case "markPreparing":
        await this.#annotate(bound, { [allocationAnnotations.state]: "Preparing" }, signal);
        return undefined;
      case "offerInventory":
        await this.#annotate(bound, offered(found(bound).inventory, machineUidOf(machine)), signal);
        return undefined;
      case "quarantine": {
        const { inventory, hold } = found(bound);
        const now = this.#parts.clock.now();
        if (step.validUntil !== undefined && now > step.validUntil) return undefined;
        await this.#annotate(bound, quarantined(inventory, hold, machineUidOf(machine), step.reason, now), signal);
        return undefined;
      }
      case "writeReprovisionPlan":
        await this.#reprovision(observed, step.hostname, signal);
        return undefined;
      case "writeCleanPlan":
        await this.#writePlan(observed, cleanPlan(machineUidOf(machine)), signal);
        return undefined;
      case "takeHold":
        await this.#takeHold(observed, found(bound), signal);
        return undefined;
      case "askOff":
      case "readPower":
        await this.#touchPower(step.type, observed, found(bound), signal);
        return undefined;
    }
  }

  async #patchMachine({ metadata }: LiveObject, patch: { metadata: object; spec?: object }, signal: AbortSignal): Promise<LiveObject> {
    const { namespace = "", name, resourceVersion } = metadata;
    const body = { ...patch, metadata: { ...patch.metadata, resourceVersion } };
    return this.#parts.cluster.patch(baremetalMachines, { namespace, name }, "merge", body, { signal });
  }

  async #removeFinalizer(live: LiveObject, signal: AbortSignal): Promise<void> {
    const finalizers = (live.metadata.finalizers ?? []).filter((finalizer) => finalizer !== MACHINE_FINALIZER);
    try {
      await this.#patchMachine(live, { metadata: { finalizers } }, signal);
    } catch (error) {
      if (!isClusterError(error, "notFound")) throw error;
    }
  }

  async #annotate(bound: BoundInventory | undefined, annotations: Readonly<Record<string, string | null>>, signal: AbortSignal): Promise<void> {
    await annotate(this.#parts.cluster, found(bound).inventory, annotations, signal);
  }

  async #reprovision(observed: Observed, hostname: string, signal: AbortSignal): Promise<void> {
    const { machine, owner, bootstrap } = observed;
    if (bootstrap === undefined || "problem" in bootstrap || owner?.dataSecretName === undefined) throw new TypeError("a reprovision plan needs user-data");
    // Shown beside the original, which stays as it is.
    const data = { "resolved-value": Buffer.from(bootstrap.userData, "utf8").toString("base64") };
    await this.#parts.cluster.patch(secrets, { namespace: machine.namespace, name: owner.dataSecretName }, "merge", { data }, { signal });
    await this.#writePlan(observed, reprovisionPlan(machineUidOf(machine), hostname, bootstrap.userData), signal);
  }

  async #writePlan({ bound, plan: before }: Observed, plan: HostPlan, signal: AbortSignal): Promise<void> {
    if (before === undefined || "problem" in before) throw new TypeError("a plan is written only over one that was read");
    await this.#parts.cluster.patch(secrets, found(bound).inventory.planSecret, "merge", planPatch(before.resourceVersion, plan), { signal });
  }

  async #takeHold({ machine, now }: Observed, { inventory, hold }: Bound, signal: AbortSignal): Promise<void> {
    const before = hold.state === "held" ? hold.hold : undefined;
    const value = writeHold({
      by: "inventory",
      purpose: "replace",
      machine: { namespace: machine.namespace, name: machine.machine?.name ?? machine.name, uid: machineUidOf(machine) },
      host: inventory.uid,
      cluster: { namespace: machine.namespace, name: machine.clusterName ?? "" },
      ...(before?.node === undefined ? {} : { node: before.node }),
      wasOn: before?.wasOn ?? null,
      attempt: 1,
      askedAt: new Date(now).toISOString(),
      offBy: new Date(now + OFF_TIMEOUT_MS).toISOString(),
    });
    await annotate(this.#parts.cluster, inventory, { [POWER_HOLD_ANNOTATION]: value }, signal);
    this.#parts.log.info("the host is held off so that its machine can go", { machine: `${machine.namespace}/${machine.name}`, inventory: inventory.name });
  }

  async #touchPower(what: "askOff" | "readPower", observed: Observed, { object, hold }: Bound, signal: AbortSignal): Promise<void> {
    if (hold.state !== "held") throw new TypeError("no power is touched without a hold");
    const { machine, offConfirmationMs } = observed;
    const { clock, log, random = Math.random } = this.#parts;
    const askedAt = Date.parse(hold.hold.askedAt);
    const known = this.#power.get(machine.uid);
    let memory = known?.askedAt === askedAt ? known : newPowerMemory(askedAt);
    try {
      const bmc = await this.#bmcOf(object, signal);
      if (what === "askOff") {
        await bmc.forceOff(signal);
        memory = withAccepted(memory, clock.now());
        log.info("power-off asked", { machine: `${machine.namespace}/${machine.name}`, inventory: object.metadata.name });
      } else {
        memory = withReading(memory, await bmc.readPower(signal), clock.now(), offConfirmationMs);
      }
    } catch (error) {
      if (!isBmcError(error) && !(error instanceof BmcTargetError) && !isClusterError(error, "forbidden")) throw error;
      memory = withFailure(memory, error.message, clock.now(), random());
    }
    this.#power.set(machine.uid, memory);
  }

  async #bmcOf(inventory: LiveObject, signal: AbortSignal): Promise<Bmc> {
    const target = await bmcTargetOf(inventory, this.#parts.cluster, { signal });
    if (target === undefined) throw new BmcTargetError(`MachineInventory ${inventory.metadata.name} names no BMC`);
    return this.#parts.bmcs.bmc(target);
  }
}

function found(bound: BoundInventory | undefined): Bound {
  if (bound?.found !== true) throw new TypeError("the step needs an inventory");
  return bound;
}
