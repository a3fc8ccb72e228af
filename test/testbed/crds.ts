/** Applying CRDs and waiting until their kinds can be used. */
import { z } from "zod";

import type { ClusterClient } from "../../provider/cluster/client.ts";
import { customResourceDefinitions } from "../../provider/cluster/kinds.ts";
import type { KubernetesObject } from "../../provider/cluster/objects.ts";
import { BED_USER } from "./control-plane.ts";
import { retryTransient } from "./retry.ts";
import { until } from "./wait.ts";

const status = z.looseObject({ conditions: z.array(z.looseObject({ type: z.string(), status: z.string() })).optional() }).optional();
const APPLY_TIMEOUT_MS = 60_000;

async function isEstablished(client: ClusterClient, name: string): Promise<boolean> {
  const live = await client.get(customResourceDefinitions, { name });
  return status.parse(live["status"])?.conditions?.some((condition) => condition.type === "Established" && condition.status === "True") ?? false;
}

/** Server-side apply with the bed as field manager; returns when all are established. */
export async function applyCrds(client: ClusterClient, crds: readonly KubernetesObject[]): Promise<void> {
  await Promise.all(
    crds.map(async (crd) => retryTransient(async () => client.apply(customResourceDefinitions, crd, { fieldManager: BED_USER, timeoutMs: APPLY_TIMEOUT_MS }))),
  );
  await Promise.all(crds.map(async ({ metadata: { name } }) => until(`CRD ${name} to be established`, async () => isEstablished(client, name))));
}
