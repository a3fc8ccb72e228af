/** Forms in which the address of a BMC may be given, and what they mean. */
import { BmcError } from "./bmc.ts";

export interface BmcAddress {
  /** `https://host[:port]`, lower case; what session, spacing and breaker are shared by. */
  origin: string;
  /** Path of the System, where the address names one. */
  systemPath?: string;
  /** The address without user information, for messages. */
  shown: string;
}

/** Schemes of baremetal-operator that are Redfish underneath. */
const redfishSchemes = new Set([
  "redfish",
  "redfish-virtualmedia",
  "redfish-uefihttp",
  "idrac-redfish",
  "idrac-virtualmedia",
  "ilo5-redfish",
  "ilo5-virtualmedia",
]);
const ROOT_PATHS = new Set(["", "/redfish", "/redfish/v1"]);
const EXAMPLE = "write https://<host>[:port][/redfish/v1/Systems/<id>]";

function protocolOf(scheme: string): "https" | "http" | undefined {
  if (scheme === "https" || scheme === "http") return scheme;
  const [base, transport] = scheme.split("+");
  if (base === undefined || !redfishSchemes.has(base)) return undefined;
  if (transport === undefined || transport === "https") return "https";
  return transport === "http" ? "http" : undefined;
}

/** Reads an address, or throws `BmcError` of kind `invalid` that says what to write instead. */
export function parseBmcAddress(address: string, options: { insecure?: boolean } = {}): BmcAddress {
  const shown = address.trim().replace(/[^/@:]*(:[^/@]*)?@/, "");
  const refuse = (reason: string): BmcError => new BmcError("invalid", shown, `BMC address ${JSON.stringify(shown)}: ${reason}; ${EXAMPLE}`);

  const parts = /^([a-z][a-z0-9+-]*):(?:\/\/)?(.*)$/i.exec(address.trim());
  const scheme = parts?.[1]?.toLowerCase();
  const protocol = scheme === undefined ? undefined : protocolOf(scheme);
  if (parts === null || protocol === undefined) throw refuse("it does not name a Redfish service");
  const text = `${protocol}://${parts[2] ?? ""}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined) throw refuse("host or port is not valid");
  if (url.username !== "" || url.password !== "") throw refuse("credentials do not belong into the address, give them as username and password");
  if (url.search !== "" || url.hash !== "") throw refuse("it must not have a query or a fragment");
  if (protocol === "http" && options.insecure !== true) {
    throw refuse("plain HTTP would send the password in the clear; use https, or set insecure where that is meant");
  }
  const path = url.pathname.replace(/\/+$/, "");
  if (ROOT_PATHS.has(path)) return { origin: url.origin, shown };
  if (!path.startsWith("/redfish/v1/")) throw refuse("the path is not one of a Redfish service");
  return { origin: url.origin, systemPath: path, shown };
}
