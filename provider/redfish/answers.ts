/** What an answer that is not a success means. */
import { BmcError } from "./bmc.ts";
import type { BmcErrorKind } from "./bmc.ts";
import { errorBody } from "./models.ts";

export interface Answer {
  status: number;
  /** Lower-case names; the first value of each. */
  headers: Readonly<Record<string, string>>;
  /** Path that answered, after redirects. */
  path: string;
  /** Parsed JSON, or `undefined` where the body is none. */
  body: unknown;
}

const RETRY_AFTER_MINIMUM_MS = 1_000;
const RETRY_AFTER_MAXIMUM_MS = 300_000;
const SHOWN_MESSAGE_LENGTH = 200;

/** Message ids with which a BMC says that the account has to change its password first. */
const passwordChangeIds = new Set(["PasswordChangeRequired"]);
/** Message ids with which a BMC says that it does not know the value of ResetType. */
const unsupportedIds = new Set([
  "ActionNotSupported",
  "ActionParameterNotSupported",
  "ActionParameterUnknown",
  "ActionParameterValueError",
  "ActionParameterValueFormatError",
  "ActionParameterValueNotInList",
  "PropertyValueNotInList",
]);

/** The wait that the BMC asked for, seconds or an HTTP date, between one second and five minutes. */
export function retryAfterMs(header: string | undefined, now: number): number | undefined {
  if (header === undefined || header.trim() === "") return undefined;
  const seconds = Number(header);
  const wait = Number.isFinite(seconds) ? seconds * 1_000 : Date.parse(header) - now;
  if (Number.isNaN(wait)) return undefined;
  return Math.min(Math.max(wait, RETRY_AFTER_MINIMUM_MS), RETRY_AFTER_MAXIMUM_MS);
}

/** Message ids without registry and version: `Base.1.18.PasswordChangeRequired` becomes `PasswordChangeRequired`. */
export function messageIdsOf(body: unknown): string[] {
  return messagesOf(body).flatMap(({ MessageId }) => (MessageId === undefined ? [] : [MessageId.split(".").pop() ?? MessageId]));
}

function messagesOf(body: unknown): { MessageId?: string | undefined; Message?: string | undefined }[] {
  const parsed = errorBody.safeParse(body);
  if (!parsed.success) return [];
  const { error } = parsed.data;
  const own = error === undefined ? [] : [{ MessageId: error.code, Message: error.message }];
  return [...(error?.["@Message.ExtendedInfo"] ?? []), ...(parsed.data["@Message.ExtendedInfo"] ?? []), ...own];
}

function kindOf(status: number, ids: readonly string[]): BmcErrorKind {
  if (ids.some((id) => passwordChangeIds.has(id))) return "forbidden";
  switch (status) {
    case 400:
      return ids.some((id) => unsupportedIds.has(id)) ? "unsupported" : "conflict";
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
    case 410:
      return "notFound";
    case 405:
    case 501:
      return "unsupported";
    case 409:
    case 412:
    case 428:
      return "conflict";
    case 429:
    case 503:
      return "busy";
    default:
      return status >= 500 ? "server" : "invalid";
  }
}

/** `secrets` are blotted out should the BMC repeat one of them in what it says. */
export function errorOfAnswer(address: string, request: string, answer: Answer, now: number, secrets: readonly string[]): BmcError {
  const ids = messageIdsOf(answer.body);
  const said = messagesOf(answer.body).find(({ Message }) => Message !== undefined && Message !== "")?.Message;
  let text = said === undefined ? "" : `: ${said}`;
  for (const secret of secrets) if (secret !== "") text = text.replaceAll(secret, "***");
  text = text.replaceAll(/\p{Cc}+/gu, " ").slice(0, SHOWN_MESSAGE_LENGTH);
  const kind = kindOf(answer.status, ids);
  const advice = kind === "forbidden" && ids.some((id) => passwordChangeIds.has(id)) ? "; the account must change its password first" : "";
  const wait = retryAfterMs(answer.headers["retry-after"], now);
  return new BmcError(
    kind,
    address,
    `BMC ${address}: ${request} was answered ${answer.status}${text}${advice}`,
    wait === undefined ? {} : { retryAfterMs: wait },
  );
}
