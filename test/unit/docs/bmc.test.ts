import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { resolve } from "node:path";

import { profiles } from "../../testbed/bmc/profiles.ts";

const root = resolve(import.meta.dirname, "../../..");

describe("docs/bmc.md", () => {
  const document = readFileSync(resolve(root, "docs/bmc.md"), "utf8");

  it("names each profile, and no profile that is not there", () => {
    const table = document.slice(document.indexOf("## Tested against what"), document.indexOf("## Errors"));
    const named = [...table.matchAll(/profiles? ((?:`[^`]+`(?:, )?)+)/g)].flatMap(([, list = ""]) =>
      [...list.matchAll(/`([^`]+)`/g)].map(([, name = ""]) => name),
    );
    assert.deepEqual(named.toSorted(), [...profiles.keys()].toSorted());
  });

  it("says what to do about each kind of error", () => {
    const source = readFileSync(resolve(root, "provider/redfish/bmc.ts"), "utf8");
    const union = source.slice(source.indexOf("export type BmcErrorKind"), source.indexOf("export class BmcError"));
    const kinds = [...union.matchAll(/\| "(\w+)"/g)].map(([, kind = ""]) => kind);
    assert.ok(kinds.length >= 12);
    for (const kind of kinds) assert.match(document, new RegExp(`^\\| \`${kind}\` +\\| [^|]+ \\| [^|]+ \\|$`, "m"));
  });
});
