import assert from "node:assert/strict";

import { LinePrinter } from "../../../provider/fronts/dynamic/report.ts";

describe("lines of the dynamic front", () => {
  it("name the resource and are not repeated", () => {
    const lines: string[] = [];
    const printer = new LinePrinter((line) => lines.push(line));
    const workers = printer.reporter("WorkerGroup", "workers");
    const others = printer.reporter("WorkerGroup", "others");
    workers.info("takes rack1-07");
    printer.reporter("WorkerGroup", "workers").info("takes rack1-07");
    others.info("takes rack1-07");
    workers.warn("pool is empty");
    workers.status("1/3 ready");
    workers.status("1/3 ready");
    others.status("1/3 ready");
    workers.status("2/3 ready");
    workers.status("1/3 ready");
    assert.deepEqual(lines, [
      "pulumi-baremetal: WorkerGroup workers: takes rack1-07",
      "pulumi-baremetal: WorkerGroup others: takes rack1-07",
      "pulumi-baremetal: WorkerGroup workers: warning: pool is empty",
      "pulumi-baremetal: WorkerGroup workers: 1/3 ready",
      "pulumi-baremetal: WorkerGroup others: 1/3 ready",
      "pulumi-baremetal: WorkerGroup workers: 2/3 ready",
      "pulumi-baremetal: WorkerGroup workers: 1/3 ready",
    ]);
  });
});
