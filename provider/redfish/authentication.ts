/** Requests with credentials: a session where the BMC offers sessions, Basic where it does not or its session table is full. */
import type { z } from "zod";

import type { Clock } from "../clock.ts";
import { errorOfAnswer, wantsNewPassword } from "./answers.ts";
import type { Answer } from "./answers.ts";
import { BmcError } from "./bmc.ts";
import type { AuthenticationMode } from "./bmc.ts";
import { digest } from "./breaker.ts";
import type { AuthenticationBreaker, Credentials } from "./breaker.ts";
import type { BmcConnection, ConnectionFacts, Exchange } from "./connection.ts";
import { serviceRoot } from "./models.ts";
import { endLeftSessions, keepsContext, newSessionContext } from "./left-sessions.ts";
import { login, sessionsPath } from "./session.ts";
import type { LoginAnswer, Session } from "./session.ts";

/** The one path that the standard fixes. */
export const SERVICE_ROOT = "/redfish/v1/";

/** Pause before credentials that were refused are tried the second time. */
const AGAIN_AFTER_MS = 1_000;
/** How long Basic is used after a login that failed for another reason than the credentials. */
const NO_LOGIN_MS = 60_000;
/** How often sessions that were left behind are looked for at most; two processes must not take turns in ending each other's. */
const TIDY_EVERY_MS = 600_000;
const REQUESTS_UNTIL_REFUSED = 2;

export type Root = z.infer<typeof serviceRoot>;

type Authorization = { mode: "session"; session: Session; fresh: boolean } | { mode: "basic"; loginFailure?: BmcError } | { mode: "refused" };

/** What is known of how a BMC lets us in. */
export interface AuthenticationFacts {
  /** The way that was let in last. */
  used: "session" | "basic" | undefined;
  /** A login failed, as with a full session table, and Basic took its place. */
  loginFailed: boolean;
  basicRefused: boolean;
}

export class AuthenticatedConnection {
  readonly #connection: BmcConnection;
  readonly #credentials: Credentials;
  readonly #digest: string;
  readonly #basic: string;
  readonly #breaker: AuthenticationBreaker;
  readonly #clock: Clock;
  readonly #mode: AuthenticationMode;
  readonly #context = newSessionContext();
  #sendsContext = true;
  #root: Root | undefined;
  #sessionsPath: { path: string | undefined } | undefined;
  #session: Session | undefined;
  #noLoginUntil = Number.NEGATIVE_INFINITY;
  #tidiedAt = Number.NEGATIVE_INFINITY;
  #basicRefused = false;
  #loginFailed = false;
  #used: AuthenticationFacts["used"];

  constructor(connection: BmcConnection, credentials: Credentials, breaker: AuthenticationBreaker, clock: Clock, mode: AuthenticationMode = "auto") {
    this.#connection = connection;
    this.#credentials = credentials;
    this.#digest = digest(credentials);
    this.#basic = basic(credentials);
    this.#breaker = breaker;
    this.#clock = clock;
    this.#mode = mode;
  }

  get address(): string {
    return this.#connection.address.shown;
  }

  get facts(): ConnectionFacts & AuthenticationFacts {
    return { ...this.#connection.facts, used: this.#used, loginFailed: this.#loginFailed, basicRefused: this.#basicRefused };
  }

  pathOf(link: string, base?: string): string {
    return this.#connection.pathOf(link, base);
  }

  /** The service root, asked without credentials as the standard allows; read once until `forgetRoot`. */
  async root(signal?: AbortSignal): Promise<Root> {
    if (this.#root !== undefined) return this.#root;
    this.#breaker.check(this.#digest);
    const exchange: Exchange = { method: "GET", path: SERVICE_ROOT };
    let answer = await this.#connection.send(exchange, signal);
    const guarded = answer.status === 401 || answer.status === 403;
    if (guarded && this.#mode !== "session") answer = await this.#sendWith(exchange, () => Promise.resolve({ mode: "basic" }), signal);
    const parsed = serviceRoot.safeParse(answer.body);
    if (answer.status !== 200 || !parsed.success) throw this.error(exchange, answer);
    this.#root = parsed.data;
    return parsed.data;
  }

  /** Path of the sessions; `undefined` where the BMC shows none. */
  async sessionsPath(signal?: AbortSignal): Promise<string | undefined> {
    const root = await this.root(signal);
    this.#sessionsPath ??= { path: await sessionsPath(this.#connection, root, signal) };
    return this.#sessionsPath.path;
  }

  forgetRoot(): void {
    this.#root = undefined;
    this.#sessionsPath = undefined;
  }

  /** Sends with credentials. Refused ones are tried at most twice, and then left alone as the breaker says. */
  async send(exchange: Exchange, signal?: AbortSignal): Promise<Answer> {
    this.#breaker.check(this.#digest);
    if (this.#root === undefined) await this.root(signal);
    return this.#sendWith(exchange, () => this.#authorization(signal), signal);
  }

  error(exchange: Exchange, answer: Answer): BmcError {
    const { username, password } = this.#credentials;
    const secrets = [password, this.#basic, ...(this.#session === undefined ? [] : [this.#session.token])];
    return errorOfAnswer(this.address, `${exchange.method} ${exchange.path}`, answer, password === username ? secrets.slice(1) : secrets);
  }

  /** Ends the session, where there is one; a BMC that does not answer ends it by itself in time. */
  async logout(signal?: AbortSignal): Promise<void> {
    const session = this.#session;
    this.#session = undefined;
    if (session?.path === undefined) return;
    await this.#connection.send({ method: "DELETE", path: session.path, headers: { "x-auth-token": session.token } }, signal);
  }

  async #sendWith(exchange: Exchange, authorize: () => Promise<Authorization>, signal: AbortSignal | undefined): Promise<Answer> {
    for (let attempt = 1; ; attempt += 1) {
      this.#breaker.check(this.#digest);
      const authorization = await authorize();
      if (authorization.mode !== "refused") {
        const answer = await this.#connection.send({ ...exchange, headers: { ...exchange.headers, ...this.#headers(authorization) } }, signal);
        if (answer.status !== 401) {
          this.#accepted(authorization, answer);
          return answer;
        }
        this.#refused(authorization);
      }
      if (attempt === REQUESTS_UNTIL_REFUSED || this.#breaker.isOpen(this.#digest)) throw this.#breaker.error(this.#digest);
      if (authorization.mode !== "session" || authorization.fresh) await this.#pause(signal);
    }
  }

  async #pause(signal: AbortSignal | undefined): Promise<void> {
    await this.#clock.sleep(AGAIN_AFTER_MS, signal).catch(() => undefined);
  }

  #headers(authorization: Exclude<Authorization, { mode: "refused" }>): Record<string, string> {
    return authorization.mode === "session" ? { "x-auth-token": authorization.session.token } : { authorization: `Basic ${this.#basic}` };
  }

  #accepted(authorization: Exclude<Authorization, { mode: "refused" }>, answer: Answer): void {
    this.#used = authorization.mode;
    if (wantsNewPassword(answer)) this.#breaker.passwordExpired(this.#digest);
    else this.#breaker.accepted(this.#digest);
    const renewed = answer.headers["x-auth-token"];
    if (authorization.mode === "session" && renewed !== undefined && renewed !== "") authorization.session.token = renewed;
  }

  #refused(authorization: Authorization): void {
    if (authorization.mode === "session") this.#session = undefined;
    // An ended session says nothing about the credentials; a session that was opened just now does.
    if (authorization.mode === "basic" || (authorization.mode === "session" && authorization.fresh)) this.#breaker.refused(this.#digest);
    if (authorization.mode === "basic" && authorization.loginFailure !== undefined) {
      this.#basicRefused = true;
      throw authorization.loginFailure;
    }
  }

  async #authorization(signal: AbortSignal | undefined): Promise<Authorization> {
    if (this.#session !== undefined) return { mode: "session", session: this.#session, fresh: false };
    if (this.#mode === "basic") return { mode: "basic" };
    const path = await this.sessionsPath(signal);
    if (path === undefined && this.#mode === "session")
      throw new BmcError("unsupported", this.address, `BMC ${this.address}: it offers no sessions; let Basic authentication be used`);
    const basicInstead = this.#mode === "auto" && this.#clock.now() < this.#noLoginUntil && !this.#basicRefused;
    if (path === undefined || basicInstead) return { mode: "basic" };
    return this.#login(path, signal);
  }

  async #login(path: string, signal: AbortSignal | undefined): Promise<Authorization> {
    let answer = await this.#tryLogin(path, signal);
    const mayBeFull = answer.outcome === "failed" && answer.answer.status !== 403 && this.#mode === "auto" && !this.#basicRefused;
    const now = this.#clock.now();
    if (mayBeFull && this.#sendsContext && keepsContext(this.#root) && now - this.#tidiedAt >= TIDY_EVERY_MS) {
      this.#tidiedAt = now;
      const headers = { authorization: `Basic ${this.#basic}` };
      const tidied = await endLeftSessions(this.#connection, path, headers, this.#context, signal);
      if (tidied === "ended") answer = await this.#tryLogin(path, signal);
      if (tidied === "refused") {
        this.#basicRefused = true;
        this.#breaker.refused(this.#digest);
      }
    }
    switch (answer.outcome) {
      case "session":
        this.#session = answer.session;
        return { mode: "session", session: answer.session, fresh: true };
      case "refused":
        this.#breaker.refused(this.#digest);
        return { mode: "refused" };
      case "failed": {
        const failure = this.error({ method: "POST", path }, answer.answer);
        if (wantsNewPassword(answer.answer)) this.#breaker.passwordExpired(this.#digest);
        if (answer.answer.status === 403 || this.#basicRefused || this.#mode === "session") throw failure;
        this.#loginFailed = true;
        this.#noLoginUntil = this.#clock.now() + NO_LOGIN_MS;
        return { mode: "basic", loginFailure: failure };
      }
    }
  }

  async #tryLogin(path: string, signal: AbortSignal | undefined): Promise<LoginAnswer> {
    const withContext = this.#sendsContext && keepsContext(this.#root);
    const answer = await login(this.#connection, path, this.#credentials, withContext ? this.#context : undefined, signal);
    if (!withContext || answer.outcome !== "failed" || answer.answer.status !== 400) return answer;
    // It does not know the member after all, whatever version it claims.
    this.#sendsContext = false;
    return login(this.#connection, path, this.#credentials, undefined, signal);
  }
}

function basic(credentials: Credentials): string {
  return Buffer.from(`${credentials.username}:${credentials.password}`).toString("base64");
}
