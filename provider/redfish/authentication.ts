/** Requests with credentials: a session where the BMC offers sessions, Basic where it does not or its session table is full. */
import { z } from "zod";

import type { Clock } from "../clock.ts";
import { errorOfAnswer } from "./answers.ts";
import type { Answer } from "./answers.ts";
import type { BmcError } from "./bmc.ts";
import type { AuthenticationBreaker, Credentials } from "./breaker.ts";
import type { BmcConnection, Exchange } from "./connection.ts";
import { serviceRoot } from "./models.ts";

/** The one path that the standard fixes. */
export const SERVICE_ROOT = "/redfish/v1/";

/** Pause before credentials that were refused are tried the second time. */
const AGAIN_AFTER_MS = 1_000;
/** How long Basic is used after a login that failed for another reason than the credentials. */
const NO_LOGIN_MS = 60_000;
const REQUESTS_UNTIL_REFUSED = 2;

type Root = z.infer<typeof serviceRoot>;

interface Session {
  token: string;
  /** Path of the session, where the BMC told it. */
  path?: string;
}

type Authorization = { mode: "session"; session: Session; fresh: boolean } | { mode: "basic"; loginFailure?: BmcError } | { mode: "refused" };

export class AuthenticatedConnection {
  readonly #connection: BmcConnection;
  readonly #credentials: Credentials;
  readonly #breaker: AuthenticationBreaker;
  readonly #clock: Clock;
  #root: Root | undefined;
  #session: Session | undefined;
  #noLoginUntil = Number.NEGATIVE_INFINITY;
  #basicRefused = false;

  constructor(connection: BmcConnection, credentials: Credentials, breaker: AuthenticationBreaker, clock: Clock) {
    this.#connection = connection;
    this.#credentials = credentials;
    this.#breaker = breaker;
    this.#clock = clock;
  }

  get address(): string {
    return this.#connection.address.shown;
  }

  pathOf(link: string, base?: string): string {
    return this.#connection.pathOf(link, base);
  }

  /** The service root, asked without credentials as the standard allows; read once until `forgetRoot`. */
  async root(signal?: AbortSignal): Promise<Root> {
    if (this.#root !== undefined) return this.#root;
    const exchange: Exchange = { method: "GET", path: SERVICE_ROOT };
    let answer = await this.#connection.send(exchange, signal);
    if (answer.status === 401 || answer.status === 403) answer = await this.#sendWith(exchange, () => Promise.resolve({ mode: "basic" }), signal);
    const parsed = serviceRoot.safeParse(answer.body);
    if (answer.status !== 200 || !parsed.success) throw this.error(exchange, answer);
    this.#root = parsed.data;
    return parsed.data;
  }

  forgetRoot(): void {
    this.#root = undefined;
  }

  /** Sends with credentials. Refused ones are tried at most twice, and then left alone as the breaker says. */
  async send(exchange: Exchange, signal?: AbortSignal): Promise<Answer> {
    this.#breaker.check(this.#credentials);
    await this.root(signal);
    return this.#sendWith(exchange, () => this.#authorization(signal), signal);
  }

  error(exchange: Exchange, answer: Answer): BmcError {
    const { username, password } = this.#credentials;
    const secrets = [password, basic(this.#credentials), ...(this.#session === undefined ? [] : [this.#session.token])];
    return errorOfAnswer(this.address, `${exchange.method} ${exchange.path}`, answer, this.#clock.now(), password === username ? secrets.slice(1) : secrets);
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
      this.#breaker.check(this.#credentials);
      const authorization = await authorize();
      if (authorization.mode !== "refused") {
        const answer = await this.#connection.send({ ...exchange, headers: { ...exchange.headers, ...this.#headers(authorization) } }, signal);
        if (answer.status !== 401) {
          this.#accepted(authorization, answer);
          return answer;
        }
        this.#refused(authorization);
      }
      if (attempt === REQUESTS_UNTIL_REFUSED || this.#breaker.isOpen(this.#credentials)) throw this.#breaker.error();
      if (authorization.mode !== "session" || authorization.fresh) await this.#pause(signal);
    }
  }

  async #pause(signal: AbortSignal | undefined): Promise<void> {
    await this.#clock.sleep(AGAIN_AFTER_MS, signal).catch(() => undefined);
  }

  #headers(authorization: Exclude<Authorization, { mode: "refused" }>): Record<string, string> {
    return authorization.mode === "session" ? { "x-auth-token": authorization.session.token } : { authorization: `Basic ${basic(this.#credentials)}` };
  }

  #accepted(authorization: Authorization, answer: Answer): void {
    this.#breaker.accepted(this.#credentials);
    const renewed = answer.headers["x-auth-token"];
    if (authorization.mode === "session" && renewed !== undefined && renewed !== "") authorization.session.token = renewed;
  }

  #refused(authorization: Authorization): void {
    if (authorization.mode === "session") this.#session = undefined;
    // An ended session says nothing about the credentials; a session that was opened just now does.
    if (authorization.mode === "basic" || (authorization.mode === "session" && authorization.fresh)) this.#breaker.refused(this.#credentials);
    if (authorization.mode === "basic" && authorization.loginFailure !== undefined) {
      this.#basicRefused = true;
      throw authorization.loginFailure;
    }
  }

  async #authorization(signal: AbortSignal | undefined): Promise<Authorization> {
    if (this.#session !== undefined) return { mode: "session", session: this.#session, fresh: false };
    const link = (await this.root(signal)).Links?.Sessions?.["@odata.id"];
    if (link === undefined || (this.#clock.now() < this.#noLoginUntil && !this.#basicRefused)) return { mode: "basic" };
    return this.#login(this.pathOf(link), signal);
  }

  async #login(path: string, signal: AbortSignal | undefined): Promise<Authorization> {
    const exchange: Exchange = { method: "POST", path, body: { UserName: this.#credentials.username, Password: this.#credentials.password } };
    const answer = await this.#connection.send(exchange, signal);
    const token = answer.headers["x-auth-token"];
    if (answer.status < 300 && token !== undefined && token !== "") {
      const location = answer.headers["location"] ?? sessionBody.safeParse(answer.body).data?.["@odata.id"];
      this.#session = { token, ...(location === undefined ? {} : { path: this.pathOf(location, path) }) };
      return { mode: "session", session: this.#session, fresh: true };
    }
    if (answer.status === 401) {
      this.#breaker.refused(this.#credentials);
      return { mode: "refused" };
    }
    const failure = this.error(exchange, answer);
    if (answer.status === 403 || this.#basicRefused) throw failure;
    this.#noLoginUntil = this.#clock.now() + NO_LOGIN_MS;
    return { mode: "basic", loginFailure: failure };
  }
}

const sessionBody = z.object({ "@odata.id": z.string().optional() });

function basic(credentials: Credentials): string {
  return Buffer.from(`${credentials.username}:${credentials.password}`).toString("base64");
}
