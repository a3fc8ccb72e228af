import assert from "node:assert/strict";

import { everyPoint, KillStage, nameOf, samplePoints } from "./kill-points.ts";

const all = process.env["TEST_ALL"] === "1";
const SAMPLE = 2;
const seed = Number(process.env["KILL_SEED"] ?? Date.now() % 1_000_000);

/** A killed controller leads again at once, under the name of its Pod; what it had begun must end as if nothing had happened. */
describe("a controller that is killed", function () {
  this.timeout(all ? 4 * 3_600_000 : 900_000);
  let stage: KillStage | undefined;

  before(async () => {
    stage = await KillStage.set();
  });

  afterEach(function () {
    if (this.currentTest?.state === "failed") stage?.scene.bed.keep();
  });

  after(async () => {
    await stage?.scene.stop();
  });

  for (const story of ["repair", "machineLife"] as const) {
    it(`${story === "repair" ? "repairs a host" : "lets a machine come and go"} all the same, wherever it dies (seed ${seed})`, async () => {
      assert.ok(stage);
      const counts = await stage.count(stage[story]);
      const points = all ? everyPoint(counts) : samplePoints(counts, SAMPLE, seed);
      for (const point of points) {
        try {
          console.log(`      killed ${nameOf(await stage.killAt(point, stage[story]))} of ${counts[point.cluster]}`);
        } catch (error) {
          throw new Error(`killed ${nameOf(point)}: ${error instanceof Error ? error.message : String(error)}`, { cause: error });
        }
      }
    });
  }
});
