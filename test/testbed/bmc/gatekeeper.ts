/** Who is let in by a mock BMC: its account, its session table, its lockout. */
import { z } from "zod";

import type { Answer, Authentication } from "./profile.ts";

export const SESSIONS = "/redfish/v1/SessionService/Sessions";

export interface Session {
  path: string;
  context?: string | undefined;
  usedAt: number;
}

const loginBody = z.looseObject({ UserName: z.string(), Password: z.string(), Context: z.string().optional() });

export function failureBody(messageId: string, message = messageId): unknown {
  return { error: { code: messageId, message, "@Message.ExtendedInfo": [{ MessageId: messageId, Message: message }] } };
}

export class Gatekeeper {
  /** By token: path of the session. */
  readonly sessions = new Map<string, string>();
  username: string;
  password: string;
  readonly #rules: Authentication;
  readonly #details = new Map<string, { context?: string | undefined; usedAt: number }>();
  #logins = 0;
  #refusals = 0;
  #lastRefusalAt = Number.NEGATIVE_INFINITY;
  #valid = 0;

  constructor(rules: Authentication, username: string, password: string) {
    this.#rules = rules;
    this.username = username;
    this.password = password;
  }

  contextOf(path: string): string | undefined {
    for (const [token, session] of this.sessions) if (session === path) return this.#details.get(token)?.context;
    return undefined;
  }

  login(body: unknown, now: number): Answer {
    const given = loginBody.safeParse(body);
    if (!given.success) return { status: 400, body: failureBody("Base.1.18.PropertyMissing") };
    if (!this.#rules.sessions) return { status: 405 };
    if (this.#locked(now) || given.data.UserName !== this.username || given.data.Password !== this.password) return this.#refuse(now);
    this.#refusals = 0;
    if (this.#rules.strictLogin && Object.keys(given.data).some((name) => name !== "UserName" && name !== "Password"))
      return { status: 400, body: failureBody("Base.1.8.PropertyUnknown") };
    this.expire(now);
    if (this.sessions.size >= this.#rules.maxSessions) {
      const { status, messageId } = this.#rules.fullTable;
      return { status, body: failureBody(messageId) };
    }
    this.#logins += 1;
    const token = `token-${this.#logins}`;
    const path = `${SESSIONS}/${this.#logins}`;
    this.sessions.set(token, path);
    this.#details.set(token, { context: given.data.Context, usedAt: now });
    const expired = this.#rules.passwordExpired ? { "@Message.ExtendedInfo": [{ MessageId: "Base.1.18.PasswordChangeRequired" }] } : {};
    return {
      status: 201,
      headers: { "x-auth-token": token, location: path },
      body: { "@odata.id": path, "@odata.type": "#Session.v1_5_0.Session", Id: String(this.#logins), Name: "Session", UserName: this.username, ...expired },
    };
  }

  /** `undefined`: let in. */
  check(headers: Readonly<Record<string, unknown>>, now: number): Answer | undefined {
    const token = headers["x-auth-token"];
    this.expire(now);
    const bySession = typeof token === "string" && this.sessions.has(token);
    const basic = `Basic ${Buffer.from(`${this.username}:${this.password}`).toString("base64")}`;
    const byPassword = this.#rules.basic && headers["authorization"] === basic && !this.#locked(now);
    // An ended session says nothing about a password, nor does a request without any.
    if (!bySession && !byPassword) return headers["authorization"] === undefined ? { status: 401 } : this.#refuse(now);
    this.#refusals = 0;
    this.#valid += 1;
    if (this.#rules.refusesEvery > 0 && this.#valid % this.#rules.refusesEvery === 0) return { status: 401 };
    if (this.#rules.passwordExpired) return { status: 403, body: failureBody("Base.1.18.PasswordChangeRequired") };
    if (bySession) this.#details.set(token, { ...this.#details.get(token), usedAt: now });
    return undefined;
  }

  /** The token that takes the place of the one used, where tokens are renewed. */
  renewed(token: unknown): string | undefined {
    if (!this.#rules.renewsToken || typeof token !== "string") return undefined;
    const path = this.sessions.get(token);
    if (path === undefined) return undefined;
    const next = `${token}x`;
    this.sessions.delete(token);
    this.sessions.set(next, path);
    this.#details.set(next, this.#details.get(token) ?? { usedAt: 0 });
    this.#details.delete(token);
    return next;
  }

  end(path: string): void {
    for (const [token, session] of this.sessions) if (session === path) this.sessions.delete(token);
  }

  endAll(): void {
    this.sessions.clear();
  }

  expire(now: number): void {
    for (const [token, { usedAt }] of this.#details) {
      if (now - usedAt < this.#rules.sessionTtlMs) continue;
      this.sessions.delete(token);
      this.#details.delete(token);
    }
  }

  #locked(now: number): boolean {
    return this.#rules.lockAfter > 0 && this.#refusals >= this.#rules.lockAfter && now - this.#lastRefusalAt < this.#rules.lockMs;
  }

  #refuse(now: number): Answer {
    this.#refusals += 1;
    this.#lastRefusalAt = now;
    return { status: 401, body: failureBody("Base.1.18.ResourceAtUriUnauthorized") };
  }
}
