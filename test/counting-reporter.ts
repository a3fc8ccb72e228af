/** mocha's "spec" output, and the counts in a file for the runner that adds up the stages. */
import { writeFileSync } from "node:fs";

import Mocha from "mocha";

export default class CountingReporter extends Mocha.reporters.Spec {
  constructor(runner: Mocha.Runner, options: Mocha.MochaOptions) {
    super(runner, options);
    const { counts } = options.reporterOptions as { counts: string };
    runner.once(Mocha.Runner.constants.EVENT_RUN_END, () => {
      // A skipped case would be one that nobody is told of: it counts as failed.
      const { passes = 0, failures = 0, pending = 0 } = runner.stats ?? {};
      writeFileSync(counts, JSON.stringify({ passed: passes, failed: failures + pending }));
    });
  }
}
