import { RedfishAccess } from "../../../provider/redfish/access.ts";
import type { BmcTarget } from "../../../provider/redfish/bmc.ts";
import { createCertificateAuthority } from "../../testbed/certificates.ts";
import { contract } from "../../testbed/bmc/contract.ts";
import type { Subject } from "../../testbed/bmc/contract.ts";
import { MockBmc } from "../../testbed/bmc/mock-bmc.ts";
import type { BmcProfile } from "../../testbed/bmc/profile.ts";
import { profiles } from "../../testbed/bmc/profiles.ts";
import { FastClock, PASSWORD, USERNAME, certificates } from "./mock.ts";

/** A BMC of that profile, and an access to it; both end with `stop`. */
async function begin(profile: BmcProfile, started: (() => Promise<void>)[]): Promise<Subject> {
  const { ca, server } = await certificates();
  const clock = new FastClock();
  const mock = new MockBmc({ certificate: server, username: USERNAME, password: PASSWORD, profile, now: () => clock.now() });
  await mock.start();
  const access = new RedfishAccess({ clock, random: () => 0 });
  started.push(
    () => access.close(),
    () => mock.stop(),
  );
  const [first] = profile.systems.members;
  // Several Systems have to be told apart.
  const address = profile.systems.members.length > 1 ? `${mock.origin}/redfish/v1/Systems/${first?.id ?? ""}` : mock.origin;
  const target: BmcTarget = { address, username: USERNAME, password: PASSWORD, certificateAuthority: ca.certificate };
  let taken = 0;
  return {
    access,
    target,
    power: () => mock.host().truth(clock.now()),
    takeActions: () => {
      const { actions } = mock;
      const fresh = actions.slice(taken).map(({ body, status }) => ({ type: (body as { ResetType?: unknown }).ResetType, status }));
      taken = actions.length;
      return fresh;
    },
    settle: () => {
      clock.time += 2_000;
      return Promise.resolve();
    },
    strangeAuthority: (await strange()).certificate,
    requests: () => mock.requests.length,
    openSessions: () => mock.sessions.size,
  };
}

let stranger: ReturnType<typeof createCertificateAuthority> | undefined;
function strange(): ReturnType<typeof createCertificateAuthority> {
  stranger ??= createCertificateAuthority("someone-else");
  return stranger;
}

for (const profile of profiles.values()) {
  describe(`a BMC like ${profile.name}`, () => {
    const started: (() => Promise<void>)[] = [];
    afterEach(async () => {
      for (const stop of started.splice(0)) await stop();
    });
    contract(() => begin(profile, started), (profile.resets.understood ?? profile.resets.types).includes("ForceOff"));
  });
}
