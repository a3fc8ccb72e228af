import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

import { RedfishAccess } from "../../../provider/redfish/access.ts";
import { startBmcs } from "../../testbed/bmc/bmcs.ts";
import type { Bmcs } from "../../testbed/bmc/bmcs.ts";
import { contract } from "../../testbed/bmc/contract.ts";
import type { Subject } from "../../testbed/bmc/contract.ts";
import { createCertificateAuthority } from "../../testbed/certificates.ts";
import type { KeyPair } from "../../testbed/certificates.ts";
import { until } from "../../testbed/wait.ts";

const LOOK_MS = 20;

describe("a BMC of the real emulator", function () {
  // Covers making the Python environment where there is none yet.
  this.timeout(180_000);
  let directory: string;
  let bmcs: Bmcs;
  let stranger: KeyPair;
  const opened: RedfishAccess[] = [];

  before(async () => {
    directory = mkdtempSync(join(tmpdir(), "bmc-contract-"));
    stranger = await createCertificateAuthority("someone-else");
    bmcs = await startBmcs({ directory, certificateAuthority: await createCertificateAuthority("bmc-ca"), hosts: ["rack1-01", "rack1-02"] });
  });

  afterEach(async () => {
    for (const access of opened.splice(0)) await access.close();
  });

  after(async () => {
    await bmcs.stop();
    rmSync(directory, { recursive: true, force: true });
  });

  const begin = async (): Promise<Subject> => {
    const bmc = bmcs.bmc("rack1-01");
    await bmc.pressPower("On");
    await until("the host to be on", () => bmc.power() === "On", { intervalMs: LOOK_MS });
    const access = new RedfishAccess({ spacingMs: 0, actionSpacingMs: 0 });
    opened.push(access);
    let taken = bmc.journal().length;
    return {
      access,
      target: { address: bmc.address, username: bmc.username, password: bmc.password, certificateAuthority: bmcs.certificateAuthority },
      power: () => bmc.power(),
      takeActions: () => {
        const journal = bmc.journal();
        const fresh = journal.slice(taken);
        taken = journal.length;
        return fresh.flatMap((entry) => (entry.event === "reset" ? [{ type: entry.resetType, status: entry.status }] : []));
      },
      settle: () => pause(LOOK_MS),
      strangeAuthority: stranger.certificate,
      requests: () => undefined,
      openSessions: () => undefined,
    };
  };

  contract(begin, true);
});
