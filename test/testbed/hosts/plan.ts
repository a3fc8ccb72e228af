/** The plan in a host's Secret, as the system-agent reads it. */
import { createHash } from "node:crypto";

import { z } from "zod";

const planBody = z.object({
  files: z
    .array(z.object({ path: z.string(), content: z.string().default(""), permissions: z.string().optional() }))
    .nullish()
    .transform((files) => files ?? []),
  instructions: z
    .array(z.object({ name: z.string().default(""), command: z.string().optional(), args: z.array(z.string()).nullish() }))
    .nullish()
    .transform((instructions) => instructions ?? []),
});

export interface HostPlan {
  /** sha256 of the exact bytes, in hex. */
  checksum: string;
  /** By path: decoded content. */
  files: ReadonlyMap<string, string>;
  /** Names, in order. */
  instructions: readonly string[];
}

export function checksumOf(bytes: Buffer): string {
  return createHash("sha256").update(bytes).digest("hex");
}

/** Throws where the plan is not JSON of the system-agent's form. */
export function parsePlan(bytes: Buffer): HostPlan {
  const { files, instructions } = planBody.parse(JSON.parse(bytes.toString("utf8")));
  return {
    checksum: checksumOf(bytes),
    files: new Map(files.map(({ path, content }) => [path, Buffer.from(content, "base64").toString("utf8")])),
    instructions: instructions.map(({ name }) => name),
  };
}
