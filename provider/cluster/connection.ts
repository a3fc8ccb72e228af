/** How an API server is reached: address, trust and identity, whatever they came from. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";

import { KubeConfig } from "@kubernetes/client-node";
import { parse } from "yaml";
import { z } from "zod";

import { ClusterError } from "./errors.ts";

export interface Connection {
  /** `https://host:port`, without a trailing slash. */
  server: string;
  /** PEM bundle that the server certificate must chain to; the system's when absent. */
  certificateAuthority?: string;
  clientCertificate?: string;
  clientKey?: string;
  /** Name that the server certificate must carry, where it differs from the host of the address. */
  serverName?: string;
  insecureSkipTlsVerify?: boolean;
  /** Headers that authenticate one request; asked anew for each, so that rotated tokens are picked up. */
  authorize?: () => Promise<Record<string, string>>;
}

function unusable(reason: string, cause?: unknown): ClusterError {
  return new ClusterError("invalid", "read kubeconfig", reason, cause === undefined ? {} : { cause });
}

function text(value: unknown): string | undefined {
  return typeof value === "string" ? value : Buffer.isBuffer(value) ? value.toString("utf8") : undefined;
}

async function connectionOf(config: KubeConfig): Promise<Connection> {
  if (config.getContexts().length === 0) throw unusable("the kubeconfig has no contexts; a complete one names clusters, users and contexts");
  const cluster = config.getCurrentCluster();
  if (cluster === null) {
    const current = JSON.stringify(config.getCurrentContext());
    throw unusable(`the kubeconfig has no usable current context (current-context is ${current}); name one in the file, or set baremetal:context`);
  }
  const options = await credentialsOf(config);
  const certificateAuthority = text(options.ca);
  const clientCertificate = text(options.cert);
  const clientKey = text(options.key);
  const user = config.getCurrentUser();
  const rotates = user?.exec !== undefined || user?.authProvider !== undefined;
  return {
    server: cluster.server.replace(/\/+$/, ""),
    ...(certificateAuthority === undefined ? {} : { certificateAuthority }),
    ...(clientCertificate === undefined ? {} : { clientCertificate }),
    ...(clientKey === undefined ? {} : { clientKey }),
    ...(options.servername === undefined ? {} : { serverName: options.servername }),
    ...(cluster.skipTLSVerify ? { insecureSkipTlsVerify: true } : {}),
    authorize: async () => headersOf(rotates ? await credentialsOf(config) : options),
  };
}

interface Credentials {
  ca?: unknown;
  cert?: unknown;
  key?: unknown;
  servername?: string;
  headers?: Record<string, string>;
  auth?: string;
}

/** What the kubeconfig's user brings to a connection; for a plugin or a token file, asked anew. */
async function credentialsOf(config: KubeConfig): Promise<Credentials> {
  const credentials: Credentials = {};
  try {
    await config.applyToHTTPSOptions(credentials);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ClusterError("unauthorized", "read kubeconfig", `the kubeconfig gives no usable credentials (${reason})`, { cause: error });
  }
  return credentials;
}

function headersOf({ headers, auth }: Credentials): Record<string, string> {
  return { ...headers, ...(auth === undefined ? {} : { Authorization: `Basic ${Buffer.from(auth).toString("base64")}` }) };
}

const tokenFiles = z.object({ users: z.array(z.object({ name: z.string(), user: z.object({ tokenFile: z.string().optional() }).nullish() })).nullish() });

/** KubeConfig knows a user's `tokenFile` only as it writes it itself for a Pod, and would send no credentials at all. */
function readTokenFiles(config: KubeConfig, kubeconfig: string, directory: string): void {
  const named = tokenFiles.safeParse(parse(kubeconfig)).data?.users ?? [];
  config.users = config.users.map((user) => {
    const tokenFile = named.find(({ name }) => name === user.name)?.user?.tokenFile;
    return tokenFile === undefined ? user : { ...user, authProvider: { name: "tokenFile", config: { tokenFile: resolve(directory, tokenFile) } } };
  });
}

/**
 * A connection from the text of a kubeconfig. `context` selects another than its current one; paths in it are relative to
 * `directory`, by default the current one.
 */
export async function connectionFromKubeconfig(kubeconfig: string, context?: string, directory = "."): Promise<Connection> {
  const config = new KubeConfig();
  try {
    config.loadFromString(kubeconfig);
    config.makePathsAbsolute(resolve(directory));
    readTokenFiles(config, kubeconfig, directory);
  } catch (error) {
    // Only the first line: the rest of a YAML error quotes the text around it, and with it perhaps a credential.
    const reason = (error instanceof Error ? error.message : String(error)).split("\n")[0];
    throw unusable(`the kubeconfig is not valid YAML or lacks clusters, users or contexts (${reason})`);
  }
  if (context !== undefined) {
    if (config.getContextObject(context) === null) {
      const known = config.getContexts().map((candidate) => candidate.name);
      throw unusable(`the kubeconfig has no context ${JSON.stringify(context)}; it has ${known.join(", ") || "none"}`);
    }
    config.setCurrentContext(context);
  }
  return connectionOf(config);
}

function readKubeconfig(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw unusable(`the kubeconfig file ${path} cannot be read`, error);
  }
}

/** A connection from a kubeconfig file. */
export async function connectionFromFile(path: string, context?: string): Promise<Connection> {
  return connectionFromKubeconfig(readKubeconfig(path), context, dirname(path));
}

/** The connection of a process that runs as a Pod; its token file is read anew as Kubernetes rotates it. */
export async function connectionInCluster(): Promise<Connection> {
  const config = new KubeConfig();
  config.loadFromCluster();
  return connectionOf(config);
}
