/** The BMC journal: what was asked of the BMCs and what became of the true power, one JSON line each. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";

import { z } from "zod";

const entry = z.discriminatedUnion("event", [
  z.object({
    at: z.number(),
    event: z.literal("reset"),
    host: z.string().nullable(),
    resetType: z.string().nullable(),
    status: z.number(),
  }),
  z.object({ at: z.number(), event: z.literal("power"), host: z.string(), power: z.enum(["On", "Off"]) }),
]);

/**
 * - `reset`: a power action that was answered, with its HTTP status, in the order of the answers
 * - `power`: a change of the true power
 *
 * `at`: milliseconds since the epoch.
 */
export type JournalEntry = z.infer<typeof entry>;

/** All entries, or those of one host. */
export function readJournal(path: string, host?: string): JournalEntry[] {
  if (!existsSync(path)) return [];
  const lines = readFileSync(path, "utf8").split("\n");
  // The last one is empty, or still being written.
  const entries = lines.slice(0, -1).map((line) => entry.parse(JSON.parse(line)));
  return host === undefined ? entries : entries.filter((candidate) => candidate.host === host);
}

export function appendToJournal(path: string, added: JournalEntry): void {
  appendFileSync(path, `${JSON.stringify(added)}\n`);
}
