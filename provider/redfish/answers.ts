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
  /** Milliseconds for which the BMC is left alone, where it said that it is busy. */
  leaveAloneMs?: number | undefined;
}

const RETRY_AFTER_MINIMUM_MS = 1_000;
const RETRY_AFTER_MAXIMUM_MS = 300_000;
const SHOWN_MESSAGE_LENGTH = 200;

/** Message ids with which a BMC says that the account has to change its password first. */
const passwordChangeIds = new Set(["PasswordChangeRequired"]);
/** Message ids with which a BMC says that it cannot do that just yet. */
const notReadyIds = new Set(["InvalidOperationForSystemState", "UnableToModifyDuringSystemPOST", "ResourceNotReady", "ServerNotReady"]);
/** Message ids with which a BMC says that what was asked has to be paid for first. */
const licenceIds = new Set(["LicenseRequired", "LicenseNotFound", "LicenseKeyRequired", "InsufficientLicense", "NotLicensed", "NotSupportedOnLicense"]);
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

/** Whether the same is worth asking again in a moment. */
export function isNotReady(answer: Answer): boolean {
  return messageIdsOf(answer.body).some((id) => notReadyIds.has(id));
}

export function wantsNewPassword(answer: Answer): boolean {
  return answer.status === 403 && messageIdsOf(answer.body).some((id) => passwordChangeIds.has(id));
}

function kindOf(status: number, ids: readonly string[]): BmcErrorKind {
  if (ids.some((id) => passwordChangeIds.has(id) || licenceIds.has(id))) return "forbidden";
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

/** What a person has to do, where that is known. */
function adviceFor(status: number, ids: readonly string[]): string {
  if (ids.some((id) => passwordChangeIds.has(id))) return "; the account must change its password first";
  if (ids.some((id) => licenceIds.has(id))) return "; the BMC lacks a licence for it";
  return status === 504 ? "; the BMC itself hangs, reset it by its own means if that goes on" : "";
}

/** `secrets` are blotted out should the BMC repeat one of them in what it says. */
export function errorOfAnswer(address: string, request: string, answer: Answer, secrets: readonly string[]): BmcError {
  const ids = messageIdsOf(answer.body);
  const said = messagesOf(answer.body).find(({ Message }) => Message !== undefined && Message !== "")?.Message;
  let text = said === undefined ? "" : `: ${said}`;
  for (const secret of secrets) if (secret !== "") text = text.replaceAll(secret, "***");
  text = text.replaceAll(/\p{Cc}+/gu, " ").slice(0, SHOWN_MESSAGE_LENGTH);
  return new BmcError(
    kindOf(answer.status, ids),
    address,
    `BMC ${address}: ${request} was answered ${answer.status}${text}${adviceFor(answer.status, ids)}`,
    answer.leaveAloneMs === undefined ? {} : { retryAfterMs: answer.leaveAloneMs },
  );
}
