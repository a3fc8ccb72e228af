/** What a mock BMC answers by its profile alone: its resources, its account, its power. */
import { z } from "zod";

import { Gatekeeper, SESSIONS, failureBody } from "./gatekeeper.ts";
import { HostPower } from "./host-power.ts";
import type { Answer, BmcProfile } from "./profile.ts";
import { SYSTEMS, resourcesOf } from "./resource-tree.ts";

export interface Asked {
  method: string;
  path: string;
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Parsed JSON, or `undefined`. */
  body: unknown;
}

export interface BehaviourOptions {
  profile: BmcProfile;
  username: string;
  password: string;
  /** In place of the profile's. */
  resources?: Record<string, unknown>;
  now: () => number;
}

export const resetBody = z.looseObject({ ResetType: z.string() });
const members = z.looseObject({ Members: z.array(z.unknown()) });
const TASK = "/redfish/v1/TaskService/Tasks/1";

export class Behaviour {
  readonly profile: BmcProfile;
  readonly gatekeeper: Gatekeeper;
  readonly resources: Record<string, unknown>;
  readonly #now: () => number;
  readonly #hosts = new Map<string, HostPower>();
  #reads = 0;
  #listings = 0;
  /** Part of each ETag; grows with each action. */
  #version = 1;

  constructor({ profile, username, password, resources, now }: BehaviourOptions) {
    this.profile = profile;
    this.gatekeeper = new Gatekeeper(profile.authentication, username, password);
    this.resources = resources ?? resourcesOf(profile);
    this.#now = now;
  }

  /** The host behind a System; the first one where none is named. */
  host(id = this.profile.systems.members[0]?.id ?? "1"): HostPower {
    let host = this.#hosts.get(id);
    if (host === undefined) this.#hosts.set(id, (host = new HostPower(this.profile.power)));
    return host;
  }

  /** What it answers where no script has it otherwise. */
  answerTo(request: Asked): Answer {
    const { method } = request;
    const path = request.path.replace(/(.)\/$/, "$1");
    const { connection, authentication } = this.profile;
    if (connection.refusesIdentity && request.headers["accept-encoding"] === "identity") return { status: 406 };
    if (method === "POST" && path === SESSIONS) return this.gatekeeper.login(request.body, this.#now());
    const open = path === "/redfish" || path === "/redfish/v1" || (path === "/redfish/v1/SessionService" && !authentication.serviceGuarded);
    const refused = open ? undefined : this.gatekeeper.check(request.headers, this.#now());
    if (refused !== undefined) return refused;
    if (method === "DELETE" && path.startsWith(`${SESSIONS}/`)) {
      this.gatekeeper.end(path);
      return { status: 204 };
    }
    if (method === "POST" && path.includes("/Actions/")) return this.#act(request, path);
    if (method !== "GET" && method !== "HEAD") return { status: 405, headers: { allow: "GET, HEAD" } };
    return this.#read(request, path);
  }

  #read(request: Asked, path: string): Answer {
    const { systems } = this.profile;
    if (path === SESSIONS || path.startsWith(`${SESSIONS}/`)) return this.#sessionResource(path);
    const resource = this.resources[path];
    if (resource === undefined) return { status: 404, body: failureBody("Base.1.18.ResourceMissingAtURI") };
    if (path === SYSTEMS) return this.#collection(resource);
    const id = systemIdOf(path);
    if (id === undefined || typeof resource !== "object" || resource === null) return { status: 200, headers: { allow: "GET, HEAD" }, body: resource };
    if (systems.trailingSlash && !request.path.endsWith("/")) return { status: 404, body: failureBody("Base.1.18.ResourceMissingAtURI") };
    this.#reads += 1;
    if (this.#reads <= systems.lateBy) return { status: 404, body: failureBody("Base.1.18.ResourceMissingAtURI") };
    if (!("PowerState" in resource)) return { status: 200, body: resource };
    const tag = this.#tag();
    const power = this.host(id).shown(this.#now());
    return { status: 200, headers: { allow: "GET, HEAD", ...(tag === undefined ? {} : { etag: tag }) }, body: { ...resource, PowerState: power } };
  }

  #collection(resource: unknown): Answer {
    this.#listings += 1;
    const { reorders, trailingSlash } = this.profile.systems;
    const list = members.safeParse(resource);
    if (!list.success) return { status: 200, body: resource };
    const ordered = reorders && this.#listings % 2 === 0 ? list.data.Members.toReversed() : list.data.Members;
    const slashed = trailingSlash
      ? ordered.map((member) => ({ "@odata.id": `${z.object({ "@odata.id": z.string() }).parse(member)["@odata.id"]}/` }))
      : ordered;
    return { status: 200, headers: { allow: "GET, HEAD" }, body: { ...list.data, Members: slashed } };
  }

  #sessionResource(path: string): Answer {
    const paths = [...this.gatekeeper.sessions.values()];
    if (path === SESSIONS) {
      const body = {
        "@odata.id": SESSIONS,
        "@odata.type": "#SessionCollection.SessionCollection",
        Name: "Sessions",
        "Members@odata.count": paths.length,
        Members: paths.map((member) => ({ "@odata.id": member })),
      };
      return { status: 200, headers: { allow: "GET, HEAD, POST" }, body };
    }
    if (!paths.includes(path)) return { status: 404, body: failureBody("Base.1.18.ResourceMissingAtURI") };
    const context = this.gatekeeper.contextOf(path);
    const body = {
      "@odata.id": path,
      "@odata.type": "#Session.v1_5_0.Session",
      Id: path.split("/").at(-1),
      Name: "Session",
      UserName: this.gatekeeper.username,
      ...(context === undefined ? {} : { Context: context }),
    };
    return { status: 200, headers: { allow: "GET, HEAD, DELETE" }, body };
  }

  #act(request: Asked, path: string): Answer {
    const { resets, tasks } = this.profile;
    const type = resetBody.safeParse(request.body).data?.ResetType;
    if (type === undefined) return { status: 400, body: failureBody("Base.1.18.ActionParameterMissing") };
    const untagged = this.#tagRefusal(request.headers["if-match"]);
    if (untagged !== undefined) return { status: untagged, body: failureBody("Base.1.18.PreconditionFailed") };
    if (!(resets.understood ?? resets.types).includes(type)) return { status: 400, body: failureBody("Base.1.18.ActionParameterNotSupported") };
    const host = this.host(systemIdOf(path));
    const now = this.#now();
    const refusal = host.refusal(type, now);
    if (refusal !== undefined) return { status: refusal.status, body: failureBody(refusal.messageId) };
    host.command(type, now);
    this.#version += 1;
    if (tasks.answer === "none") return { status: 204 };
    return {
      status: 202,
      headers: {
        ...(tasks.answer === "no location" ? {} : { location: TASK }),
        ...(tasks.retryAfter === undefined ? {} : { "retry-after": tasks.retryAfter }),
      },
      body:
        tasks.answer === "no location" ? undefined : { "@odata.id": TASK, "@odata.type": "#Task.v1_7_0.Task", Id: "1", Name: "Reset", TaskState: "Running" },
    };
  }

  #tag(): string | undefined {
    switch (this.profile.tags.form) {
      case "none":
        return undefined;
      case "strong":
        return `"${this.#version}"`;
      case "weak":
        return `W/"${this.#version}"`;
      case "doubled":
        return `""${this.#version}""`;
      case "empty":
        return '""';
    }
  }

  #tagRefusal(given: string | string[] | undefined): number | undefined {
    switch (this.profile.tags.wants) {
      case "anything":
        return undefined;
      case "a tag":
        return given === undefined ? 428 : given === this.#tag() ? undefined : 412;
      case "a strong tag":
        return given === `"${this.#version}"` ? undefined : 412;
      case "no tag":
        return given === undefined ? undefined : 412;
    }
  }
}

function systemIdOf(path: string): string | undefined {
  return path.startsWith(`${SYSTEMS}/`) ? path.slice(SYSTEMS.length + 1).split("/")[0] : undefined;
}
