/** Writes what is made from the resources' models; with `--check` only says whether it is up to date. */
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

import { format, resolveConfig } from "prettier";
import { z } from "zod";

import { packageSpec } from "./schema.ts";
import { typescriptTypes } from "./typescript.ts";

const root = new URL("../../", import.meta.url);

function pathOf(name: string): string {
  return fileURLToPath(new URL(name, root));
}

export async function generated(): Promise<Record<string, string>> {
  const { version } = z.object({ version: z.string() }).parse(JSON.parse(readFileSync(pathOf("package.json"), "utf8")));
  const schema = packageSpec(version);
  const types = "sdk/nodejs/src/types.generated.ts";
  const options = await resolveConfig(pathOf(types));
  return {
    "schema.json": `${JSON.stringify(schema, null, 2)}\n`,
    [types]: await format(typescriptTypes(schema), { printWidth: 160, ...options, filepath: pathOf(types) }),
  };
}

function current(name: string): string | undefined {
  try {
    return readFileSync(pathOf(name), "utf8");
  } catch {
    return undefined;
  }
}

async function main(check: boolean): Promise<void> {
  for (const [name, text] of Object.entries(await generated())) {
    if (current(name) === text) continue;
    if (check) {
      process.stderr.write(`${name} differs from the resources' models; run: node provider/schema/write.ts\n`);
      process.exitCode = 1;
    } else {
      writeFileSync(pathOf(name), text);
      process.stdout.write(`${name} written\n`);
    }
  }
}

if (import.meta.main) await main(process.argv.includes("--check"));
