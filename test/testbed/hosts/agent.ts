/** The agent of a simulated host: looks at its plan Secret with the host's own credentials, and carries the plan out. */
import { setTimeout as pause } from "node:timers/promises";

import { ClusterClient } from "../../../provider/cluster/client.ts";
import type { Connection } from "../../../provider/cluster/connection.ts";
import { secrets } from "../../../provider/cluster/kinds.ts";
import { parsePlan } from "./plan.ts";
import type { HostPlan } from "./plan.ts";
import { decodedData, planStateOf } from "./registration.ts";

const LOOK_EVERY_MS = 500;

export type PlanOutcome = { applied: true } | { applied: false; output: string };

export interface AgentOptions {
  connection: Connection;
  namespace: string;
  /** Name of the inventory, which is that of its plan Secret. */
  inventory: string;
  /** Carries a plan out; rejects when the host goes down meanwhile. */
  carryOut: (plan: HostPlan) => Promise<PlanOutcome>;
  /** Called once the outcome is in the Secret. */
  carriedOut: (plan: HostPlan, outcome: PlanOutcome) => void;
  log: (line: string) => void;
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

async function look(client: ClusterClient, options: AgentOptions, signal: AbortSignal): Promise<void> {
  const key = { namespace: options.namespace, name: options.inventory };
  const secret = await client.get(secrets, key, { signal });
  const bytes = decodedData(secret).get("plan");
  if (bytes === undefined || planStateOf(secret) !== "") return;
  const plan = parsePlan(bytes);
  const outcome = await options.carryOut(plan);
  signal.throwIfAborted();
  const data: Record<string, string | null> = outcome.applied
    ? { "applied-checksum": base64(plan.checksum), "failed-checksum": null, "failed-output": null }
    : { "failed-checksum": base64(plan.checksum), "failed-output": base64(outcome.output) };
  await client.patch(secrets, key, "merge", { data }, { signal });
  options.carriedOut(plan, outcome);
}

/** Runs until the signal. */
export async function runAgent(options: AgentOptions, signal: AbortSignal): Promise<void> {
  const client = new ClusterClient(options.connection, { userAgent: "system-agent" });
  const ended = (): boolean => signal.aborted;
  try {
    while (!ended()) {
      try {
        await look(client, options, signal);
      } catch (error) {
        if (!ended()) options.log(`agent: ${error instanceof Error ? error.message : String(error)}`);
      }
      await pause(LOOK_EVERY_MS, undefined, { signal }).catch(() => undefined);
    }
  } finally {
    await client.close();
  }
}
