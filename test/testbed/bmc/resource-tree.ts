/** The Redfish resources of a mock BMC, as its profile has them. */
import { createHash } from "node:crypto";

import { SESSIONS } from "./gatekeeper.ts";
import type { BmcProfile, SystemProfile } from "./profile.ts";

export const SYSTEMS = "/redfish/v1/Systems";
const MANAGER = "/redfish/v1/Managers/bmc";
const CHASSIS = "/redfish/v1/Chassis";
const ACCOUNTS = "/redfish/v1/AccountService";

const link = (path: string): { "@odata.id": string } => ({ "@odata.id": path });

export function uuidOf(text: string): string {
  const hex = createHash("sha256").update(text).digest("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-8${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

function collection(path: string, type: string, name: string, members: readonly string[]): Record<string, unknown> {
  return {
    "@odata.id": path,
    "@odata.type": `#${type}.${type}`,
    Name: name,
    "Members@odata.count": members.length,
    Members: members.map(link),
  };
}

function resetAction(profile: BmcProfile, path: string): Record<string, unknown> {
  const { listed, types, target } = profile.resets;
  return {
    target: target ?? `${path}/Actions/ComputerSystem.Reset`,
    ...(listed === "inline" ? { "ResetType@Redfish.AllowableValues": types } : {}),
    ...(listed === "action info" ? { "@Redfish.ActionInfo": `${path}/ResetActionInfo` } : {}),
  };
}

function system(profile: BmcProfile, { id, uuid, serial }: SystemProfile): Record<string, unknown> {
  const path = `${SYSTEMS}/${id}`;
  const { manufacturer, model } = profile.identity;
  return {
    "@odata.id": path,
    "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
    Id: id,
    Name: `System ${id}`,
    SystemType: "Physical",
    ...(uuid === null ? {} : { UUID: uuid ?? uuidOf(`${profile.name}/${id}`) }),
    ...(serial === undefined ? {} : { SerialNumber: serial }),
    ...(manufacturer === undefined ? {} : { Manufacturer: manufacturer }),
    ...(model === undefined ? {} : { Model: model }),
    Status: { State: "Enabled", Health: "OK" },
    PowerState: "On",
    Links: { ManagedBy: [link(MANAGER)], Chassis: [link(`${CHASSIS}/1`)] },
    Actions: { "#ComputerSystem.Reset": resetAction(profile, path) },
  };
}

function accounts(): Record<string, unknown> {
  return {
    [ACCOUNTS]: {
      "@odata.id": ACCOUNTS,
      "@odata.type": "#AccountService.v1_15_0.AccountService",
      Id: "AccountService",
      Name: "Account Service",
      ServiceEnabled: true,
      HTTPBasicAuth: "Enabled",
      Accounts: link(`${ACCOUNTS}/Accounts`),
      Roles: link(`${ACCOUNTS}/Roles`),
    },
    [`${ACCOUNTS}/Accounts`]: collection(`${ACCOUNTS}/Accounts`, "ManagerAccountCollection", "Accounts", [`${ACCOUNTS}/Accounts/1`]),
    [`${ACCOUNTS}/Accounts/1`]: {
      "@odata.id": `${ACCOUNTS}/Accounts/1`,
      "@odata.type": "#ManagerAccount.v1_10_0.ManagerAccount",
      Id: "1",
      Name: "Account of the operator",
      UserName: "operator",
      Password: null,
      RoleId: "Administrator",
      AccountTypes: ["Redfish"],
      Enabled: true,
      Locked: false,
      Links: { Role: link(`${ACCOUNTS}/Roles/Administrator`) },
    },
    [`${ACCOUNTS}/Roles`]: collection(`${ACCOUNTS}/Roles`, "RoleCollection", "Roles", [`${ACCOUNTS}/Roles/Administrator`]),
    [`${ACCOUNTS}/Roles/Administrator`]: {
      "@odata.id": `${ACCOUNTS}/Roles/Administrator`,
      "@odata.type": "#Role.v1_3_0.Role",
      Id: "Administrator",
      Name: "Administrator",
      RoleId: "Administrator",
      IsPredefined: true,
      AssignedPrivileges: ["Login", "ConfigureManager", "ConfigureUsers", "ConfigureSelf", "ConfigureComponents"],
    },
  };
}

function manager(profile: BmcProfile): Record<string, unknown> {
  const { managerTypes } = profile.resets;
  return {
    "@odata.id": MANAGER,
    "@odata.type": "#Manager.v1_19_0.Manager",
    Id: "bmc",
    Name: "Manager",
    ManagerType: "BMC",
    ...(profile.identity.firmware === undefined ? {} : { FirmwareVersion: profile.identity.firmware }),
    UUID: uuidOf(`${profile.name}/manager`),
    Status: { State: "Enabled", Health: "OK" },
    Links: { ManagerForServers: profile.systems.members.map(({ id }) => link(`${SYSTEMS}/${id}`)), ManagerForChassis: [link(`${CHASSIS}/1`)] },
    Actions: { "#Manager.Reset": { target: `${MANAGER}/Actions/Manager.Reset`, "ResetType@Redfish.AllowableValues": managerTypes } },
  };
}

function chassis(profile: BmcProfile): Record<string, unknown> {
  return {
    "@odata.id": `${CHASSIS}/1`,
    "@odata.type": "#Chassis.v1_25_0.Chassis",
    Id: "1",
    Name: "Chassis",
    ChassisType: "RackMount",
    PowerState: "On",
    Status: { State: "Enabled", Health: "OK" },
    Links: { ComputerSystems: profile.systems.members.map(({ id }) => link(`${SYSTEMS}/${id}`)), ManagedBy: [link(MANAGER)] },
    Actions: { "#Chassis.Reset": { target: `${CHASSIS}/1/Actions/Chassis.Reset`, "ResetType@Redfish.AllowableValues": ["PowerCycle"] } },
  };
}

function serviceRoot({ name, identity, authentication }: BmcProfile): Record<string, unknown> {
  const { sessions, linked } = authentication;
  return {
    "@odata.id": "/redfish/v1/",
    "@odata.type": "#ServiceRoot.v1_16_0.ServiceRoot",
    Id: "RootService",
    Name: "Root Service",
    RedfishVersion: identity.redfishVersion,
    UUID: uuidOf(name),
    ...(identity.vendor === undefined ? {} : { Vendor: identity.vendor }),
    ...(identity.product === undefined ? {} : { Product: identity.product }),
    Systems: link(SYSTEMS),
    Managers: link("/redfish/v1/Managers"),
    Chassis: link(CHASSIS),
    AccountService: link(ACCOUNTS),
    ...(sessions ? { SessionService: link("/redfish/v1/SessionService") } : {}),
    ...(sessions && linked === "root" ? { Links: { Sessions: link(SESSIONS) } } : {}),
  };
}

/** All resources, by path without a slash at the end. Power states and sessions are the server's. */
export function resourcesOf(profile: BmcProfile): Record<string, unknown> {
  const { members } = profile.systems;
  const paths = members.map(({ id }) => `${SYSTEMS}/${id}`);
  return {
    "/redfish": { v1: "/redfish/v1/" },
    "/redfish/v1": serviceRoot(profile),
    "/redfish/v1/SessionService": {
      "@odata.id": "/redfish/v1/SessionService",
      "@odata.type": "#SessionService.v1_1_9.SessionService",
      Id: "SessionService",
      Name: "Session Service",
      ServiceEnabled: true,
      SessionTimeout: 1800,
      Sessions: link(SESSIONS),
    },
    ...accounts(),
    [SYSTEMS]: collection(SYSTEMS, "ComputerSystemCollection", "Systems", paths),
    ...Object.fromEntries(members.map((member) => [`${SYSTEMS}/${member.id}`, system(profile, member)])),
    ...(profile.resets.listed === "action info" ? Object.fromEntries(paths.map((path) => [`${path}/ResetActionInfo`, actionInfo(path, profile)])) : {}),
    "/redfish/v1/Managers": collection("/redfish/v1/Managers", "ManagerCollection", "Managers", [MANAGER]),
    [MANAGER]: manager(profile),
    [CHASSIS]: collection(CHASSIS, "ChassisCollection", "Chassis", [`${CHASSIS}/1`]),
    [`${CHASSIS}/1`]: chassis(profile),
  };
}

function actionInfo(path: string, profile: BmcProfile): Record<string, unknown> {
  return {
    "@odata.id": `${path}/ResetActionInfo`,
    "@odata.type": "#ActionInfo.v1_4_0.ActionInfo",
    Id: "ResetActionInfo",
    Name: "Reset",
    Parameters: [{ Name: "ResetType", Required: true, DataType: "String", AllowableValues: profile.resets.types }],
  };
}

/** One System as most BMCs show it. */
export function systemResource(id: string, fields: Record<string, unknown> = {}): Record<string, unknown> {
  const path = `${SYSTEMS}/${id}`;
  return {
    "@odata.id": path,
    "@odata.type": "#ComputerSystem.v1_20_0.ComputerSystem",
    Id: id,
    UUID: `00000000-0000-4000-8000-${Buffer.from(id).toString("hex").padStart(12, "0").slice(-12)}`,
    Manufacturer: "Acme",
    Model: "M1",
    PowerState: "On",
    Actions: {
      "#ComputerSystem.Reset": { target: `${path}/Actions/ComputerSystem.Reset`, "ResetType@Redfish.AllowableValues": ["On", "ForceOff", "ForceRestart"] },
    },
    ...fields,
  };
}

/** The fewest resources that a BMC with these Systems can have. */
export function standardResources(sessions: boolean, ids: readonly string[] = ["1"]): Record<string, unknown> {
  return {
    "/redfish/v1": {
      "@odata.id": "/redfish/v1/",
      RedfishVersion: "1.15.0",
      Vendor: "Acme",
      Systems: link(SYSTEMS),
      ...(sessions ? { Links: { Sessions: link(SESSIONS) } } : {}),
    },
    [SYSTEMS]: { Members: ids.map((id) => link(`${SYSTEMS}/${id}`)) },
    ...Object.fromEntries(ids.map((id) => [`${SYSTEMS}/${id}`, systemResource(id)])),
  };
}
