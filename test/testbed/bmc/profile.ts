/** What one kind of BMC is like, as data: what it says of itself, and how it misbehaves. */

export type Json = unknown;

export interface Identity {
  vendor?: string;
  product?: string;
  redfishVersion: string;
  manufacturer?: string;
  model?: string;
  firmware?: string;
}

export interface SystemProfile {
  id: string;
  /** Made from the id where absent; `null` leaves it out. */
  uuid?: string | null;
  serial?: string;
}

export interface Systems {
  members: readonly SystemProfile[];
  /** Whether the collection lists its members the other way round at each second reading. */
  reorders: boolean;
  /** Links end in a slash, and a path without it is answered 404. */
  trailingSlash: boolean;
  /** Statuses with which a System is answered the first times; a resource that comes into sight late. */
  lateBy: number;
}

export interface Resets {
  /** Where the reset types are told. */
  listed: "inline" | "action info" | "nowhere";
  types: readonly string[];
  /** What is really understood, where that is not what is told. */
  understood?: readonly string[];
  /** Path of the action; the standard's where absent. */
  target?: string;
  /** Reset types of the Manager, which are none of the System's. */
  managerTypes: readonly string[];
}

export interface Power {
  /** Milliseconds from an accepted command to its effect. */
  offMs: number;
  onMs: number;
  /** Shows PoweringOff and PoweringOn meanwhile. */
  transitional: boolean;
  /** Milliseconds by which what is shown is late. */
  lagMs: number;
  /** So many commands are accepted and have no effect. */
  ignoresOff: number;
  ignoresOn: number;
  /** How a command is answered whose state is reached already; `undefined`: as any other. */
  alreadyThere?: { status: number; messageId: string };
  /** On is refused for so many milliseconds after off. */
  onRefused?: { forMs: number; status: number; messageId: string };
  /** Any command is refused for so many milliseconds after a change. */
  notReady?: { forMs: number; status: number; messageId: string };
}

export interface Authentication {
  basic: boolean;
  sessions: boolean;
  /** Whether the service root links the sessions, or only the session service. */
  linked: "root" | "service";
  /** The session service itself wants credentials. */
  serviceGuarded: boolean;
  maxSessions: number;
  sessionTtlMs: number;
  fullTable: { status: number; messageId: string };
  /** Each answer brings a new token, and the old one ends. */
  renewsToken: boolean;
  /** Each so-manieth request with valid credentials is answered 401; 0 for never. */
  refusesEvery: number;
  /** After so many refusals in a row nobody is let in for `lockMs`, and each try begins that anew; 0 for never. */
  lockAfter: number;
  lockMs: number;
  /** The account has to change its password before anything else. */
  passwordExpired: boolean;
  /** Refuses a login with members that it does not know. */
  strictLogin: boolean;
}

export interface Tags {
  /** In which form the System's ETag is given. */
  form: "none" | "strong" | "weak" | "doubled" | "empty";
  /** What an action must carry: whatever, a tag (else 428), a strong tag (else 412), or no tag at all (else 412). */
  wants: "anything" | "a tag" | "a strong tag" | "no tag";
}

export interface Connection {
  /** Milliseconds until an answer. */
  latencyMs: number;
  /** Closes the connection after each answer. */
  closes: boolean;
  /** Answers 406 to a client that wants no compression. */
  refusesIdentity: boolean;
  http: "1.1" | "2";
}

export interface Tls {
  certificate: "trusted" | "self-signed" | "expired" | "wrong name";
  /** Speaks TLS 1.1 and nothing newer. */
  old: boolean;
}

export interface Tasks {
  /** How an action is answered: at once, or with 202 and a task that may not be there. */
  answer: "none" | "task" | "no location" | "task gone";
  /** As a header, `undefined` for none. */
  retryAfter?: string;
}

/** Answers the `nth` (from 1; all where absent) request of that method whose path ends so. */
export interface Scripted {
  method: string;
  pathEnd: string;
  nth?: readonly number[];
  answer: Answer;
}

export interface Answer {
  status: number;
  headers?: Readonly<Record<string, string>>;
  /** A string is sent as it is, anything else as JSON. */
  body?: Json;
  /** What happens to the connection in place of an answer: cut before, cut after the headers and half the body, or silence. */
  instead?: "reset" | "cut" | "never";
  /** The request is carried out all the same. */
  effective?: boolean;
  /** The answer waits for it. */
  after?: Promise<unknown>;
}

export interface BmcProfile {
  name: string;
  /** What it stands for, and what is known of it. */
  about: string;
  identity: Identity;
  systems: Systems;
  resets: Resets;
  power: Power;
  authentication: Authentication;
  tags: Tags;
  connection: Connection;
  tls: Tls;
  tasks: Tasks;
  /** Milliseconds by which its clock is ahead. */
  clockSkewMs: number;
  script: readonly Scripted[];
}

/** What a profile differs in from the clean one, section by section. */
export type Variation = { [Section in Exclude<keyof BmcProfile, "name" | "about" | "clockSkewMs" | "script">]?: Partial<BmcProfile[Section]> } & {
  clockSkewMs?: number;
  script?: readonly Scripted[];
};

/** A BMC that does all as the standard has it. */
export const clean: BmcProfile = {
  name: "clean",
  about: "what DMTF's own validator has nothing against",
  identity: { vendor: "Acme", product: "Acme BMC", redfishVersion: "1.20.0", manufacturer: "Acme", model: "M1", firmware: "1.0.0" },
  systems: { members: [{ id: "1", serial: "SN-1" }], reorders: false, trailingSlash: false, lateBy: 0 },
  resets: { listed: "inline", types: ["On", "ForceOff", "GracefulShutdown", "ForceRestart", "PowerCycle"], managerTypes: ["GracefulRestart"] },
  power: { offMs: 0, onMs: 0, transitional: false, lagMs: 0, ignoresOff: 0, ignoresOn: 0 },
  authentication: {
    basic: true,
    sessions: true,
    linked: "root",
    serviceGuarded: true,
    maxSessions: 8,
    sessionTtlMs: 1_800_000,
    fullTable: { status: 503, messageId: "Base.1.18.SessionLimitExceeded" },
    renewsToken: false,
    refusesEvery: 0,
    lockAfter: 0,
    lockMs: 0,
    passwordExpired: false,
    strictLogin: false,
  },
  tags: { form: "strong", wants: "anything" },
  connection: { latencyMs: 0, closes: false, refusesIdentity: false, http: "1.1" },
  tls: { certificate: "trusted", old: false },
  tasks: { answer: "none" },
  clockSkewMs: 0,
  script: [],
};

export function vary(from: BmcProfile, variation: Variation): BmcProfile {
  return {
    ...from,
    identity: { ...from.identity, ...variation.identity },
    systems: { ...from.systems, ...variation.systems },
    resets: { ...from.resets, ...variation.resets },
    power: { ...from.power, ...variation.power },
    authentication: { ...from.authentication, ...variation.authentication },
    tags: { ...from.tags, ...variation.tags },
    connection: { ...from.connection, ...variation.connection },
    tls: { ...from.tls, ...variation.tls },
    tasks: { ...from.tasks, ...variation.tasks },
    clockSkewMs: variation.clockSkewMs ?? from.clockSkewMs,
    script: variation.script ?? from.script,
  };
}

export function profile(name: string, about: string, variation: Variation): BmcProfile {
  return { ...vary(clean, variation), name, about };
}
