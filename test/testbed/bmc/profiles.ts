/**
 * BMCs as they are met in the field. Each is made from what was reported of single machines and firmwares: it shows what can happen,
 * not what every BMC of that name does. None was recorded from hardware.
 */
import { clean, profile, vary } from "./profile.ts";
import type { BmcProfile } from "./profile.ts";

const dell = { identity: { vendor: "Dell", manufacturer: "Dell Inc.", redfishVersion: "1.17.0" } };
const dellTypes = ["On", "ForceOff", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PushPowerButton", "Nmi", "PowerCycle"];
const idracFull = { status: 503, messageId: "IDRAC.2.8.RAC0218" };

const idrac8 = profile("dell-idrac8", "Dell PowerEdge R730 on iDRAC 8 2.60: a graceful restart is a hard one, few sessions, no ETag", {
  identity: { ...dell.identity, product: "Integrated Dell Remote Access Controller", model: "PowerEdge R730", firmware: "2.60.60.60", redfishVersion: "1.4.0" },
  systems: { members: [{ id: "System.Embedded.1", serial: "CN0000001" }] },
  resets: { listed: "inline", types: ["On", "ForceOff", "GracefulRestart", "PushPowerButton", "Nmi"], managerTypes: ["GracefulRestart"] },
  authentication: { maxSessions: 4, fullTable: idracFull },
  tags: { form: "none" },
});

const idrac9 = profile(
  "dell-idrac9",
  "Dell PowerEdge R740xd on iDRAC 9: 409 for a state that is reached already, a table of eight sessions, a resource late by one reading",
  {
    identity: { ...dell.identity, product: "Integrated Dell Remote Access Controller", model: "PowerEdge R740xd", firmware: "6.10.80.00" },
    systems: { members: [{ id: "System.Embedded.1", serial: "CN0000002" }], lateBy: 1 },
    resets: { types: dellTypes.filter((type) => type !== "GracefulRestart"), managerTypes: ["GracefulRestart"] },
    power: { offMs: 3_000, onMs: 2_000, alreadyThere: { status: 409, messageId: "IDRAC.2.8.PSU501" } },
    authentication: { maxSessions: 8, fullTable: idracFull },
    tags: { form: "weak" },
  },
);

const idrac10 = profile("dell-idrac10", "Dell 17th generation on iDRAC 10: On is refused for a while after a power-off", {
  identity: {
    ...dell.identity,
    product: "Integrated Dell Remote Access Controller",
    model: "PowerEdge R770",
    firmware: "1.20.50.50",
    redfishVersion: "1.20.1",
  },
  systems: { members: [{ id: "System.Embedded.1", serial: "CN0000003" }] },
  resets: { types: dellTypes, managerTypes: ["GracefulRestart"] },
  power: { offMs: 1_000, onMs: 1_000, onRefused: { forMs: 5_500, status: 409, messageId: "Base.1.18.PropertyValueConflict" } },
  authentication: { fullTable: idracFull },
});

const c6420 = profile("dell-c6420", "Dell C6420: four sleds in a chassis whose own reset would take all of them", {
  identity: { ...dell.identity, model: "PowerEdge C6420", firmware: "5.10.50.00" },
  systems: { members: [{ id: "System.Embedded.1", serial: "CN0000004" }] },
  resets: { types: dellTypes, managerTypes: ["GracefulRestart"] },
});

const ilo4 = profile("hpe-ilo4", "HPE ProLiant Gen9 on iLO 4: tells no reset types at all, knows no ETag, its links end in a slash", {
  identity: {
    vendor: "HPE",
    manufacturer: "HPE",
    product: "ProLiant DL380 Gen9",
    model: "ProLiant DL380 Gen9",
    firmware: "iLO 4 v2.80",
    redfishVersion: "1.0.0",
  },
  systems: { members: [{ id: "1", serial: "CZ0000001" }], trailingSlash: true },
  resets: { listed: "nowhere", types: ["On", "ForceOff", "ForceRestart", "Nmi", "PushPowerButton"], managerTypes: ["ForceRestart"] },
  tags: { form: "none" },
});

const ilo5 = profile("hpe-ilo5", "HPE ProLiant Gen10 on iLO 5: 400 just after a change, a power button in place of a graceful shutdown", {
  identity: {
    vendor: "HPE",
    manufacturer: "HPE",
    product: "ProLiant DL360 Gen10",
    model: "ProLiant DL360 Gen10",
    firmware: "iLO 5 v2.72",
    redfishVersion: "1.13.0",
  },
  systems: { members: [{ id: "1", serial: "CZ0000002" }] },
  resets: {
    types: ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "PushPowerButton", "GracefulRestart"],
    managerTypes: ["ForceRestart", "GracefulRestart"],
  },
  power: { notReady: { forMs: 3_500, status: 400, messageId: "iLO.2.14.InvalidOperationForSystemState" } },
  tags: { form: "weak" },
});

const ilo6 = profile(
  "hpe-ilo6",
  "HPE ProLiant Gen11 on iLO 6: refuses to be asked for no compression, now and then refuses valid credentials, locks after three refusals",
  {
    identity: {
      vendor: "HPE",
      manufacturer: "HPE",
      product: "ProLiant DL380 Gen11",
      model: "ProLiant DL380 Gen11",
      firmware: "iLO 6 v1.58",
      redfishVersion: "1.18.0",
    },
    systems: { members: [{ id: "1", serial: "CZ0000003" }] },
    authentication: { refusesEvery: 5, lockAfter: 3, lockMs: 600_000 },
    tags: { form: "weak" },
    connection: { refusesIdentity: true },
  },
);

const xcc = profile("lenovo-xcc", "Lenovo ThinkSystem SR650 on an early XCC: an action needs the System's tag", {
  identity: {
    vendor: "Lenovo",
    manufacturer: "Lenovo",
    product: "XClarity Controller",
    model: "ThinkSystem SR650",
    firmware: "CDI3A4E",
    redfishVersion: "1.6.0",
  },
  systems: { members: [{ id: "1", serial: "J30000001" }] },
  tags: { form: "strong", wants: "a tag" },
});

const xcc2 = profile("lenovo-xcc2", "Lenovo ThinkSystem SR850 V3 on XCC2: a tag that is sent is a stale one, a forced restart may hang the host", {
  identity: {
    vendor: "Lenovo",
    manufacturer: "Lenovo",
    product: "XClarity Controller 2",
    model: "ThinkSystem SR850 V3",
    firmware: "ESX321O",
    redfishVersion: "1.15.0",
  },
  systems: { members: [{ id: "1", serial: "J30000002" }] },
  resets: { types: ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "GracefulRestart", "Nmi"], managerTypes: ["ForceRestart"] },
  tags: { form: "doubled", wants: "no tag" },
});

const xccDropsOn = profile("lenovo-xcc-drops-on", "Lenovo: On is accepted once and nothing happens", {
  identity: { vendor: "Lenovo", manufacturer: "Lenovo", model: "ThinkSystem SR650 V2", firmware: "AFBT30P", redfishVersion: "1.14.0" },
  systems: { members: [{ id: "1", serial: "J30000003" }] },
  power: { ignoresOn: 1 },
});

const supermicroX10 = profile("supermicro-x10", "Supermicro X10: Basic alone, slow, the connection closes after each answer", {
  identity: { manufacturer: "Supermicro", model: "X10DRT-P", firmware: "03.88", redfishVersion: "1.0.1" },
  systems: { members: [{ id: "1" }] },
  resets: { types: ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "ForceOn"], managerTypes: ["ForceRestart"] },
  authentication: { sessions: false },
  tags: { form: "none" },
  connection: { closes: true, latencyMs: 5 },
});

const supermicroX12 = profile("supermicro-x12", "Supermicro X12: reset types by ActionInfo, power state late by seconds", {
  identity: { vendor: "Supermicro", manufacturer: "Supermicro", model: "SYS-620P-TR", firmware: "01.03.11", redfishVersion: "1.9.0" },
  systems: { members: [{ id: "1", serial: "S00000001" }] },
  resets: {
    listed: "action info",
    types: ["On", "ForceOff", "GracefulShutdown", "GracefulRestart", "ForceRestart", "Nmi", "ForceOn"],
    managerTypes: ["GracefulRestart"],
  },
  power: { offMs: 500, lagMs: 3_000 },
});

const ibmOpenbmc = profile("ibm-openbmc", "IBM Power on OpenBMC: ActionInfo alone, without ForceRestart, and transitional states", {
  identity: { manufacturer: "IBM", model: "9105-22A", firmware: "fw1060.00", redfishVersion: "1.17.0" },
  systems: { members: [{ id: "system", serial: "I00000001" }] },
  resets: {
    listed: "action info",
    types: ["On", "ForceOff", "ForceOn", "GracefulRestart", "GracefulShutdown"],
    managerTypes: ["GracefulRestart", "ForceRestart"],
  },
  power: { offMs: 2_000, onMs: 2_000, transitional: true },
  tags: { form: "strong" },
});

const openbmc = profile("openbmc", "OpenBMC elsewhere: locks after five refusals and the longer the more is tried, a strict login", {
  identity: { manufacturer: "Quanta", model: "S6Q", firmware: "2.14.0", redfishVersion: "1.17.0" },
  systems: { members: [{ id: "system", serial: "Q00000001" }] },
  resets: {
    listed: "action info",
    types: ["On", "ForceOff", "ForceOn", "ForceRestart", "GracefulRestart", "GracefulShutdown", "PowerCycle", "Nmi"],
    managerTypes: ["GracefulRestart"],
  },
  authentication: { lockAfter: 5, lockMs: 300_000, strictLogin: true },
});

const sonic = profile("sonic-bmc", "SONiC's BMC: ForceOff is told and not understood", {
  identity: { manufacturer: "Nexthop", model: "Switch", firmware: "1.0", redfishVersion: "1.17.0" },
  systems: { members: [{ id: "System_0", serial: "N00000001" }] },
  resets: { types: ["On", "ForceOff", "PowerCycle"], understood: ["On", "PowerCycle"], managerTypes: ["GracefulRestart"] },
});

const megarac = profile("ami-megarac", "Gigabyte on AMI MegaRAC: tags in doubled quotes, every seventh valid request refused", {
  identity: { vendor: "AMI", manufacturer: "GIGABYTE", model: "R282-Z90", firmware: "12.60.39", redfishVersion: "1.11.0" },
  systems: { members: [{ id: "Self", serial: "G00000001" }] },
  resets: { listed: "action info", types: ["On", "ForceOff", "GracefulShutdown", "ForceRestart"], managerTypes: ["ForceRestart"] },
  authentication: { refusesEvery: 7 },
  tags: { form: "doubled", wants: "a tag" },
});

const irmcS5 = profile(
  "fujitsu-irmc-s5",
  "Fujitsu PRIMERGY on iRMC S5: the action is elsewhere than the standard's path, a soft off needs an agent in the host",
  {
    identity: { vendor: "Fujitsu", manufacturer: "FUJITSU", model: "PRIMERGY RX2540 M5", firmware: "3.37P", redfishVersion: "1.4.0" },
    systems: { members: [{ id: "0", serial: "F00000001" }] },
    resets: {
      types: ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "PushPowerButton"],
      target: "/redfish/v1/Systems/0/Actions/Oem/FTSComputerSystem.Reset",
      managerTypes: ["ForceRestart"],
    },
    tags: { form: "weak" },
  },
);

const irmcS6 = profile("fujitsu-irmc-s6", "Fujitsu on iRMC S6: the tag of a weak kind has to come back as a strong one", {
  identity: { vendor: "Fujitsu", manufacturer: "Fujitsu", model: "PRIMERGY RX2540 M7", firmware: "02.63c", redfishVersion: "1.17.0" },
  systems: { members: [{ id: "0", serial: "F00000002" }] },
  resets: { types: ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "PushPowerButton"], managerTypes: ["ForceRestart"] },
  tags: { form: "weak", wants: "a strong tag" },
});

const huawei = profile("huawei-2288h-v5", "Huawei 2288H V5 on iBMC: 428 without the System's tag", {
  identity: { vendor: "Huawei", manufacturer: "Huawei", model: "2288H V5", firmware: "6.41", redfishVersion: "1.0.2" },
  systems: { members: [{ id: "1", serial: "H00000001" }] },
  resets: { types: ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "Nmi", "ForcePowerCycle"], managerTypes: ["ForceRestart"] },
  tags: { form: "weak", wants: "a tag" },
});

const xfusion = profile("xfusion", "xFusion on iBMC: each answer brings another token", {
  identity: { vendor: "xFusion", manufacturer: "xFusion", model: "2288H V6", firmware: "3.03.10.21", redfishVersion: "1.0.2" },
  systems: { members: [{ id: "1", serial: "X00000001" }] },
  authentication: { renewsToken: true },
  tags: { form: "weak" },
});

const gb200 = profile("nvidia-gb200", "NVIDIA GB200 compute tray: two Systems in no order that lasts, tasks, now and then a refusal of valid credentials", {
  identity: { vendor: "NVIDIA", manufacturer: "NVIDIA", model: "GB200 NVL", firmware: "GB200Nvl-25.01", redfishVersion: "1.17.0" },
  systems: {
    members: [
      { id: "System_0", serial: "V00000001" },
      { id: "HGX_Baseboard_0", serial: "V00000002" },
    ],
    reorders: true,
  },
  resets: { listed: "action info", types: ["On", "ForceOff", "ForceRestart", "GracefulShutdown", "PowerCycle"], managerTypes: ["GracefulRestart"] },
  authentication: { refusesEvery: 9 },
  tasks: { answer: "task", retryAfter: "5" },
});

const cisco = profile("cisco-cimc", "Cisco UCS C-series on CIMC: the System is named by its serial number, tasks that are gone when they are asked for", {
  identity: { vendor: "Cisco Systems Inc.", manufacturer: "Cisco Systems Inc.", model: "UCSC-C240-M5SX", firmware: "4.1(2b)", redfishVersion: "1.2.0" },
  systems: { members: [{ id: "WZP00000001", serial: "WZP00000001" }] },
  tasks: { answer: "task gone", retryAfter: "Wed, 21 Oct 2026 07:28:00 GMT" },
  tags: { form: "none" },
});

const intel = profile("intel-computer", "a generic one with the id Computer: 202 without a location, an hour ahead of the time", {
  identity: { manufacturer: "Intel Corporation", model: "S2600WFT", firmware: "2.48", redfishVersion: "1.1.0" },
  systems: { members: [{ id: "Computer", uuid: null }] },
  tasks: { answer: "no location" },
  clockSkewMs: 3_600_000,
});

const cycleOnly = profile("power-cycle-only", "a host that can only be cycled: never a fence", {
  identity: { manufacturer: "Acme", model: "Edge", redfishVersion: "1.6.0" },
  systems: { members: [{ id: "1", serial: "E00000001" }] },
  resets: { types: ["On", "PowerCycle", "GracefulShutdown"], managerTypes: [] },
});

const sessionsOnly = profile("sessions-only", "a hardened one: sessions alone, linked by the session service only, which is open", {
  identity: { manufacturer: "Acme", model: "Hardened", redfishVersion: "1.20.0" },
  authentication: { basic: false, linked: "service", serviceGuarded: false },
});

const http2Only = profile("http2-only", "a front of HTTP/2 alone", {
  identity: { manufacturer: "Acme", model: "Front", redfishVersion: "1.20.0" },
  connection: { http: "2" },
});

const lateOff = profile("late-off", "one that says Off twenty seconds after the truth, and stays on for a while first", {
  identity: { manufacturer: "Acme", model: "Slow", redfishVersion: "1.6.0" },
  power: { offMs: 8_000, onMs: 8_000, lagMs: 20_000 },
});

export const cleanWithoutSessions: BmcProfile = {
  ...vary(clean, { authentication: { sessions: false } }),
  name: "clean-basic",
  about: "as clean, with Basic alone",
};

/** All of them, by name. */
export const profiles: ReadonlyMap<string, BmcProfile> = new Map(
  [
    clean,
    cleanWithoutSessions,
    idrac8,
    idrac9,
    idrac10,
    c6420,
    ilo4,
    ilo5,
    ilo6,
    xcc,
    xcc2,
    xccDropsOn,
    supermicroX10,
    supermicroX12,
    ibmOpenbmc,
    openbmc,
    sonic,
    megarac,
    irmcS5,
    irmcS6,
    huawei,
    xfusion,
    gb200,
    cisco,
    intel,
    cycleOnly,
    sessionsOnly,
    http2Only,
    lateOff,
  ].map((entry) => [entry.name, entry]),
);

export function profileNamed(name: string): BmcProfile {
  const found = profiles.get(name);
  if (found === undefined) throw new Error(`there is no BMC profile ${JSON.stringify(name)}; there are ${[...profiles.keys()].join(", ")}`);
  return found;
}
