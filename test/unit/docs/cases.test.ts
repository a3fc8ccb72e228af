import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { promisify } from "node:util";

import { z } from "zod";

const root = resolve(import.meta.dirname, "../../..");
const run = promisify(execFile);

interface Row {
  section: string;
  case: string;
  file: string;
  title: string;
}

const report = z.object({
  tests: z.array(z.object({ fullTitle: z.string(), file: z.string() })),
  pending: z.array(z.object({ fullTitle: z.string() })),
});

/** The rows of all tables that have the columns case, file and test, in whatever section. */
function rowsOf(document: string): Row[] {
  const rows: Row[] = [];
  let section = "";
  let inTable = false;
  for (const line of document.split("\n")) {
    const heading = /^##\s+(.+)$/.exec(line)?.[1];
    if (heading !== undefined) section = heading;
    const cells = line.startsWith("|")
      ? line
          .slice(1)
          .replace(/\|\s*$/, "")
          .split(/(?<!\\)\|/)
          .map((cell) => cell.trim().replaceAll("\\|", "|"))
      : [];
    if (cells.join() === "case,file,test") inTable = true;
    else if (cells.length === 0) inTable = false;
    else if (inTable && !/^[-:]+$/.test(cells[0] ?? "")) {
      const [name = "", file = "", title = ""] = cells;
      rows.push({ section, case: name, file: file.replaceAll("`", ""), title });
    }
  }
  return rows;
}

/** Complaints about rows whose test does not run. Nothing is run for it: mocha only lists. */
async function complaintsOn(rows: readonly Row[], folder: string): Promise<string[]> {
  const missing = rows.filter(({ file }) => !existsSync(join(folder, file)));
  const files = [...new Set(rows.filter((row) => !missing.includes(row)).map(({ file }) => join(folder, file)))];
  const titles = new Set<string>();
  const pending = new Set<string>();
  if (files.length > 0) {
    const { stdout } = await run(
      process.execPath,
      [join(root, "node_modules/mocha/bin/mocha.js"), "--dry-run", "--forbid-only", "--reporter", "json", ...files],
      {
        cwd: root,
        maxBuffer: 64 * 1024 * 1024,
      },
    );
    const listed = report.parse(JSON.parse(stdout.slice(stdout.indexOf("{"))));
    for (const { fullTitle } of listed.pending) pending.add(fullTitle);
    for (const { fullTitle, file } of listed.tests) titles.add(`${file} ${fullTitle}`);
  }
  return rows.flatMap((row) => {
    const where = `${row.section}, ${row.case}`;
    if (row.case === "" || row.title === "") return [`${where}: a row without a case or a test`];
    if (missing.includes(row)) return [`${where}: there is no file ${row.file}`];
    if (!titles.has(`${join(folder, row.file)} ${row.title}`)) return [`${where}: ${row.file} has no test ${JSON.stringify(row.title)}`];
    return pending.has(row.title) ? [`${where}: the test ${JSON.stringify(row.title)} is pending or skipped`] : [];
  });
}

describe("docs/cases.md", function () {
  // Loads every test file that it names, in a process of its own.
  this.timeout(60_000);

  it("names only tests that run", async () => {
    const rows = rowsOf(readFileSync(join(root, "docs/cases.md"), "utf8"));
    assert.deepEqual(await complaintsOn(rows, root), []);
  });

  it("has a row for each quirk of Redfish that asks something of us", () => {
    const quirks = [
      1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15, 16, 17, 18, 20, 21, 22, 23, 24, 25, 27, 28, 29, 30, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 44, 45, 46,
      47, 48, 49, 51, 52, 53,
    ];
    const cases = new Set(
      rowsOf(readFileSync(join(root, "docs/cases.md"), "utf8"))
        .filter(({ section }) => section === "Redfish")
        .map((row) => row.case),
    );
    assert.deepEqual(
      quirks.map((number) => `Q${String(number).padStart(2, "0")}`).filter((name) => !cases.has(name)),
      [],
    );
  });

  it("would not pass with a title that is gone, skipped or in no file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "cases-"));
    try {
      writeFileSync(
        join(folder, "some.test.mjs"),
        'describe("a", () => {\n  it("runs", () => {});\n  it.skip("is skipped", () => {});\n  it("is pending");\n});\n',
      );
      const row = (title: string, file = "some.test.mjs"): string => `| C1 | \`${file}\` | ${title} |\n`;
      const table = `## Some\n\n| case | file | test |\n|---|---|---|\n${row("a runs")}${row("a is skipped")}${row("a is pending")}${row("a gone")}${row("a runs", "gone.test.mjs")}${row("")}`;
      assert.deepEqual(await complaintsOn(rowsOf(table), folder), [
        'Some, C1: the test "a is skipped" is pending or skipped',
        'Some, C1: the test "a is pending" is pending or skipped',
        'Some, C1: some.test.mjs has no test "a gone"',
        "Some, C1: there is no file gone.test.mjs",
        "Some, C1: a row without a case or a test",
      ]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
