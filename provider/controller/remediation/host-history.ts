/** What a host remembers of the repairs it went through; it outlives the Machines. */
import { z } from "zod";

import type { HostRecord } from "./decision.ts";

/** Of an annotation that everybody who lists hosts has to carry. */
const LIMIT_BYTES = 4096;

const history = z.array(z.looseObject({}));

/** The annotation's value with the record added; the oldest go first where it gets too long. */
export function withRecord(text: string | undefined, record: HostRecord): string {
  let records: object[] = [];
  try {
    records = history.parse(JSON.parse(text ?? "[]"));
  } catch {
    // What somebody else wrote there is no history.
  }
  records.push(record);
  while (records.length > 1 && Buffer.byteLength(JSON.stringify(records)) > LIMIT_BYTES) records.shift();
  return JSON.stringify(records);
}
