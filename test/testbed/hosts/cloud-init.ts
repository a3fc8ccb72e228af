/** What cloud-init makes of the NoCloud seed on a host's disk: the files it writes and how the host joins its cluster. */
import { gunzipSync } from "node:zlib";

import { parse, parseAllDocuments } from "yaml";
import { z } from "zod";

export const USER_DATA_PATH = "/var/lib/cloud/seed/nocloud/user-data";
export const META_DATA_PATH = "/var/lib/cloud/seed/nocloud/meta-data";

const metaData = z.record(z.string(), z.union([z.string(), z.number(), z.boolean()]));
const cloudConfig = z.object({
  hostname: z.string().optional(),
  write_files: z.array(z.object({ path: z.string(), content: z.string().default(""), encoding: z.string().optional() })).default([]),
  runcmd: z.array(z.union([z.string(), z.array(z.string())])).default([]),
});

const argumentsOf = z
  .union([
    // kubeadm.k8s.io/v1beta4 has a list, older versions a map.
    z.array(z.object({ name: z.string(), value: z.string() })).transform((list) => Object.fromEntries(list.map(({ name, value }) => [name, value]))),
    z.record(z.string(), z.string()),
  ])
  .default({});

const taint = z.object({ key: z.string(), value: z.string().optional(), effect: z.string() });
export type Taint = z.infer<typeof taint>;

const joinConfiguration = z.object({
  kind: z.literal("JoinConfiguration"),
  discovery: z.object({
    bootstrapToken: z.object({ token: z.string(), apiServerEndpoint: z.string(), caCertHashes: z.array(z.string()).default([]) }),
  }),
  nodeRegistration: z
    .object({ name: z.string().optional(), kubeletExtraArgs: argumentsOf, taints: z.array(taint).nullish() })
    .default({ kubeletExtraArgs: {} }),
});

export interface Join {
  /** `https://host:port`. */
  server: string;
  token: string;
  caCertHashes: readonly string[];
  nodeName: string;
  providerId: string | undefined;
  labels: Record<string, string>;
  taints: readonly Taint[];
}

export interface Seed {
  instanceId: string;
  userData: string;
  metaData: Record<string, string>;
}

/** The seed on the disk, where there is one. */
export function seedOf(files: ReadonlyMap<string, string>): Seed | undefined {
  const userData = files.get(USER_DATA_PATH);
  if (userData === undefined) return undefined;
  const parsed = metaData.parse(parse(files.get(META_DATA_PATH) ?? "") ?? {});
  const values = Object.fromEntries(Object.entries(parsed).map(([key, value]) => [key, String(value)]));
  return { instanceId: values["instance-id"] ?? "", userData, metaData: values };
}

/** Replaces `{{ ds.meta_data.name }}` where the user-data says that it is a template; jinja writes `local-hostname` as `local_hostname`. */
function render(seed: Seed): string {
  if (!seed.userData.startsWith("## template: jinja")) return seed.userData;
  return seed.userData.replace(/\{\{\s*ds\.meta_data\.([\w-]+)\s*\}\}/g, (_placeholder, name: string) => {
    const value = seed.metaData[name] ?? seed.metaData[name.replaceAll("_", "-")];
    if (value === undefined) throw new Error(`the user-data asks for ds.meta_data.${name}, which the meta-data does not have`);
    return value;
  });
}

function decode(content: string, encoding: string | undefined): string {
  switch (encoding) {
    case undefined:
    case "text/plain":
      return content;
    case "b64":
    case "base64":
      return Buffer.from(content, "base64").toString("utf8");
    case "gz+b64":
    case "gz+base64":
    case "gzip+base64":
      return gunzipSync(Buffer.from(content, "base64")).toString("utf8");
    default:
      throw new Error(`the user-data has a file of encoding ${encoding}, which this host does not know`);
  }
}

function labelsOf(text: string | undefined): Record<string, string> {
  const pairs = (text ?? "").split(",").filter((pair) => pair !== "");
  return Object.fromEntries(pairs.map((pair): [string, string] => [pair.slice(0, pair.indexOf("=")), pair.slice(pair.indexOf("=") + 1)]));
}

/** What `kubeadm join` is run with by this seed; throws where it would not be run, or could not be. */
export function joinOf(seed: Seed): Join {
  const config = cloudConfig.parse(parse(render(seed)) ?? {});
  const files = new Map(config.write_files.map(({ path, content, encoding }) => [path, decode(content, encoding)]));
  const commands = config.runcmd.map((command) => (typeof command === "string" ? command : command.join(" ")));
  const command = commands.find((candidate) => candidate.includes("kubeadm join"));
  if (command === undefined) throw new Error("the user-data runs no kubeadm join");
  const path = /--config[= ](\S+)/.exec(command)?.[1] ?? "";
  const content = files.get(path);
  if (content === undefined) throw new Error(`the user-data runs ${JSON.stringify(command)} but writes no file ${path}`);
  const documents = parseAllDocuments(content).map((document) => document.toJS() as unknown);
  const join = documents.map((document) => joinConfiguration.safeParse(document)).find((parsed) => parsed.success)?.data;
  if (join === undefined) throw new Error(`${path} holds no JoinConfiguration with a bootstrap token`);
  const { bootstrapToken } = join.discovery;
  const { kubeletExtraArgs, name, taints } = join.nodeRegistration;
  return {
    server: `https://${bootstrapToken.apiServerEndpoint}`,
    token: bootstrapToken.token,
    caCertHashes: bootstrapToken.caCertHashes,
    nodeName: kubeletExtraArgs["hostname-override"] ?? name ?? seed.metaData["local-hostname"] ?? config.hostname ?? "",
    providerId: kubeletExtraArgs["provider-id"],
    labels: labelsOf(kubeletExtraArgs["node-labels"]),
    taints: taints ?? [],
  };
}
