// mocha's "spec" output, and the counts in a file for the runner that adds up the stages.
const { writeFileSync } = require("node:fs");
const Mocha = require("mocha");

class CountingSpec extends Mocha.reporters.Spec {
  constructor(runner, options) {
    super(runner, options);
    runner.once(Mocha.Runner.constants.EVENT_RUN_END, () => {
      // A skipped case would be one that nobody is told of: it counts as failed.
      const { passes, failures, pending } = runner.stats;
      writeFileSync(options.reporterOption.counts, JSON.stringify({ passed: passes, failed: failures + pending }));
    });
  }
}

module.exports = CountingSpec;
