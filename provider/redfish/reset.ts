/** Sends one reset of one System. It is never sent a second time unless the BMC said that it did nothing with the first. */
import { messageIdsOf } from "./answers.ts";
import type { Answer } from "./answers.ts";
import type { AuthenticatedConnection } from "./authentication.ts";
import { BmcError } from "./bmc.ts";
import type { PowerReading } from "./bmc.ts";
import { readSystem, readingOf, resetTarget } from "./system.ts";
import type { SystemState } from "./system.ts";

/** ForceRestart and chassis actions are missing on purpose: off has to be seen before on is asked. */
export type FencingReset = "ForceOff" | "On";

const targetPower: Record<FencingReset, PowerReading["power"]> = { ForceOff: "off", On: "on" };

/** The forms in which a tag may be wanted back: as given, as a weak one made strong, and without doubled quotes. */
function tagForms(etag: string | undefined): string[] {
  if (etag === undefined) return [];
  const strong = etag.replace(/^W\//, "").replace(/^"*(.*?)"*$/, '"$1"');
  return [...new Set([etag, strong])].filter((tag) => !/^(W\/)?"*$/.test(tag));
}

function wantsTag(answer: Answer): boolean {
  return answer.status === 412 || answer.status === 428;
}

/** Asks, and returns once the BMC accepted it. `state` was read just before, in the same turn. */
export async function sendReset(
  connection: AuthenticatedConnection,
  state: SystemState,
  type: FencingReset,
  now: () => number,
  signal?: AbortSignal,
): Promise<void> {
  const exchange = { method: "POST", path: resetTarget(connection, state), body: { ResetType: type } } as const;
  let answer = await connection.send(exchange, signal);
  if (wantsTag(answer)) {
    const fresh = await readSystem(connection, state.path, signal);
    for (const tag of tagForms(fresh.etag)) {
      answer = await connection.send({ ...exchange, headers: { "if-match": tag } }, signal);
      if (!wantsTag(answer)) break;
    }
  }
  if (answer.status >= 200 && answer.status < 300) return;
  const error = connection.error(exchange, answer);
  // Refused, or the target was reached already: the state decides, not the status.
  if (answer.status !== 400 && answer.status !== 409) throw error;
  const reached = readingOf(await readSystem(connection, state.path, signal), now());
  if (reached.power === targetPower[type]) return;
  const ids = messageIdsOf(answer.body);
  throw new BmcError(
    error.kind,
    error.address,
    `${error.message}${ids.length === 0 ? "" : ` (${ids.slice(0, 2).join(", ")})`}; the System reads ${JSON.stringify(reached.literal)}`,
  );
}
