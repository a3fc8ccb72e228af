/** Sends one reset of one System. It is never sent a second time unless the BMC said that it did nothing with the first. */
import { isNotReady, messageIdsOf } from "./answers.ts";
import type { Answer } from "./answers.ts";
import type { AuthenticatedConnection } from "./authentication.ts";
import { BmcError, isBmcError } from "./bmc.ts";
import type { PowerReading } from "./bmc.ts";
import type { Exchange } from "./connection.ts";
import { readSystem, readingOf, resetTarget } from "./system.ts";
import type { SystemState } from "./system.ts";

/** ForceRestart, graceful ones and chassis actions are missing on purpose: off has to be seen before on is asked. */
export type ResetType = "ForceOff" | "On" | "PowerCycle";

const targetPower: Record<ResetType, PowerReading["power"] | undefined> = { ForceOff: "off", On: "on", PowerCycle: undefined };

/** The forms in which a tag may be wanted back: as given, as a weak one made strong, and without doubled quotes. */
function tagForms(etag: string | undefined): string[] {
  if (etag === undefined) return [];
  const strong = etag.replace(/^W\//, "").replace(/^"*(.*?)"*$/, '"$1"');
  return [...new Set([etag, strong])].filter((tag) => !/^(W\/)?"*$/.test(tag));
}

function wantsTag(answer: Answer): boolean {
  return answer.status === 412 || answer.status === 428;
}

interface Asked {
  connection: AuthenticatedConnection;
  state: SystemState;
  type: ResetType;
  now: () => number;
  signal: AbortSignal | undefined;
}

/** Whether the System reads what was wanted. */
async function isReached({ connection, state, type, now, signal }: Asked): Promise<{ reached: boolean; reading: PowerReading }> {
  const reading = readingOf(await readSystem(connection, state.path, undefined, signal), now());
  return { reached: reading.power === targetPower[type], reading };
}

/**
 * Asks. `undefined` once the BMC accepted it; an error that is returned says that it did nothing and is not ready yet.
 * `state` was read just before, in the same turn.
 */
export async function sendReset(
  connection: AuthenticatedConnection,
  state: SystemState,
  type: ResetType,
  now: () => number,
  signal?: AbortSignal,
): Promise<BmcError | undefined> {
  const asked: Asked = { connection, state, type, now, signal };
  const exchange: Exchange = { method: "POST", path: resetTarget(connection, state), body: { ResetType: type }, isAction: true };
  let answer: Answer;
  try {
    answer = await send(asked, exchange);
  } catch (error) {
    // It may have been carried out: only the state can tell, and where it does not, whoever asked has to know.
    if (isBmcError(error, "unreachable") && (await isReached(asked).catch(() => undefined))?.reached === true) return undefined;
    throw error;
  }
  if (answer.status >= 200 && answer.status < 300) return undefined;
  const error = connection.error(exchange, answer);
  // Refused, or the target was reached already: the state decides, not the status.
  if (answer.status !== 400 && answer.status !== 409) throw error;
  const { reached, reading } = await isReached(asked);
  if (reached) return undefined;
  const ids = messageIdsOf(answer.body);
  const shownIds = ids.length === 0 ? "" : ` (${[...new Set(ids)].slice(0, 2).join(", ")})`;
  const refusal = new BmcError(error.kind, error.address, `${error.message}${shownIds}; the System reads ${JSON.stringify(reading.literal)}`);
  // Some refuse On for a while after a power-off.
  if (isNotReady(answer) || (type === "On" && answer.status === 409)) return refusal;
  throw refusal;
}

/** Without a tag first: remembered ones go stale. Then in the forms in which it may be wanted. */
async function send({ connection, state, signal }: Asked, exchange: Exchange): Promise<Answer> {
  let answer = await connection.send(exchange, signal);
  if (!wantsTag(answer)) return answer;
  const fresh = await readSystem(connection, state.path, undefined, signal);
  for (const tag of tagForms(fresh.etag)) {
    answer = await connection.send({ ...exchange, headers: { "if-match": tag } }, signal);
    if (!wantsTag(answer)) break;
  }
  return answer;
}
