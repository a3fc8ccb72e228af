/** Bootstrap user-data as it goes to the host: with the host's own name, its provider id and a CRI socket, and otherwise as it was. */
import { type Document, isMap, isScalar, isSeq, parseAllDocuments, parseDocument, Scalar, YAMLMap, YAMLSeq } from "yaml";

export const DEFAULT_CRI_SOCKET = "unix:///var/run/containerd/containerd.sock";
const JOIN_FILE = "kubeadm-join-config.yaml";

/** User-data that cannot be normalised; the message says what is wrong with it. */
export class UserDataError extends Error {
  override readonly name = "UserDataError";
}

export interface HostIdentity {
  hostname: string;
  providerId: string;
}

// cloud-init and kubeadm's users of these files read YAML 1.1: "yes" must stay quoted.
const reading = { version: "1.1", keepSourceTokens: false, strict: false, uniqueKeys: false } as const;
const writing = { lineWidth: 0 } as const;

function refuse(document: Document, what: string): void {
  const [problem] = document.errors;
  if (problem !== undefined) throw new UserDataError(`${what} is not valid YAML: ${problem.message.split("\n")[0] ?? ""}`);
}

function joinFile(cloudConfig: Document): YAMLMap {
  const files = cloudConfig.get("write_files");
  if (isSeq(files)) {
    for (const entry of files.items) {
      if (!isMap(entry)) continue;
      const path = entry.get("path");
      if (typeof path === "string" && path.endsWith(`/${JOIN_FILE}`)) return entry;
    }
  }
  throw new UserDataError(`the user-data writes no ${JOIN_FILE}; machines of a pool join by kubeadm: use a KubeadmConfigTemplate as bootstrap template`);
}

function child(parent: YAMLMap, key: string): YAMLMap {
  const existing = parent.get(key);
  if (isMap(existing)) return existing;
  const made = new YAMLMap();
  parent.set(key, made);
  return made;
}

/** kubeadm v1beta4 has a list of `{name, value}` where older versions have a map. */
function setKubeletArgument(registration: YAMLMap, listForm: boolean, name: string, value: string): void {
  const existing = registration.get("kubeletExtraArgs");
  if (isSeq(existing) || (listForm && !isMap(existing))) {
    const list = isSeq(existing) ? existing : new YAMLSeq();
    list.items = list.items.filter((item) => !(isMap(item) && item.get("name") === name));
    const argument = new YAMLMap();
    argument.set("name", name);
    argument.set("value", value);
    list.add(argument);
    registration.set("kubeletExtraArgs", list);
  } else {
    child(registration, "kubeletExtraArgs").set(name, value);
  }
}

function normaliseJoin(text: string, host: HostIdentity): string {
  const documents = parseAllDocuments(text, reading);
  if (!Array.isArray(documents)) throw new UserDataError(`${JOIN_FILE} is empty`);
  let found = false;
  for (const document of documents) {
    refuse(document, JOIN_FILE);
    if (document.get("kind") !== "JoinConfiguration" || !isMap(document.contents)) continue;
    found = true;
    const version = document.get("apiVersion");
    const listForm = typeof version === "string" && !/\/v1beta[123]$/.test(version);
    const registration = child(document.contents, "nodeRegistration");
    registration.set("name", host.hostname);
    const socket = registration.get("criSocket");
    if (typeof socket !== "string" || socket === "") registration.set("criSocket", DEFAULT_CRI_SOCKET);
    setKubeletArgument(registration, listForm, "provider-id", host.providerId);
  }
  if (!found) throw new UserDataError(`${JOIN_FILE} holds no JoinConfiguration; only workers that join an existing cluster can be provisioned`);
  return documents.map((document) => document.toString(writing)).join("");
}

/**
 * Normalises cloud-init user-data as Cluster API's kubeadm bootstrap provider writes it. The head of comment lines, `## template: jinja`
 * among them, stays as it is.
 */
export function normaliseUserData(userData: string, host: HostIdentity): string {
  const lines = userData.split("\n");
  const body = lines.findIndex((line) => line.trim() !== "" && !line.startsWith("#"));
  const head = body < 0 ? lines : lines.slice(0, body);
  if (!head.some((line) => line.trim() === "#cloud-config")) {
    throw new UserDataError(
      "the bootstrap data is not cloud-init user-data (no #cloud-config line); set the format of the KubeadmConfigTemplate to cloud-config",
    );
  }
  const cloudConfig = parseDocument(body < 0 ? "" : lines.slice(body).join("\n"), reading);
  refuse(cloudConfig, "the user-data");
  const file = joinFile(cloudConfig);
  if (file.get("encoding") !== undefined) throw new UserDataError(`${JOIN_FILE} is encoded; it must be plain text`);
  const content = file.get("content", true);
  if (!isScalar(content) || typeof content.value !== "string") throw new UserDataError(`${JOIN_FILE} has no text as its content`);
  const text = new Scalar(normaliseJoin(content.value, host));
  text.type = Scalar.BLOCK_LITERAL;
  file.set("content", text);
  for (const key of ["hostname", "fqdn"]) cloudConfig.set(key, host.hostname);
  // An image may keep the name that it came with.
  cloudConfig.set("preserve_hostname", false);
  return `${head.filter((line, index) => line !== "" || index < head.length - 1).join("\n")}\n${cloudConfig.toString(writing)}`;
}
