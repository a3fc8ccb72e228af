/** Which management cluster is meant, and as whom: stack configuration first, then what kubectl would use. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join, resolve } from "node:path";

import { connectionFromFile, connectionFromKubeconfig } from "../../cluster/connection.ts";
import type { Connection } from "../../cluster/connection.ts";
import { ClusterError } from "../../cluster/errors.ts";

/** A stack's configuration, by full key. */
export interface StackConfig {
  get(key: string): string | undefined;
}

export interface Settings {
  /** Contents of a kubeconfig, or the path of one. */
  kubeconfig: string | undefined;
  context: string | undefined;
  namespace: string;
}

const DEFAULT_NAMESPACE = "default";

function given(value: string | undefined): string | undefined {
  const text = value?.trim();
  return text === undefined || text === "" ? undefined : text;
}

export function settingsOf(config: StackConfig): Settings {
  return {
    kubeconfig: given(config.get("baremetal:kubeconfig")),
    context: given(config.get("baremetal:context")),
    namespace: given(config.get("baremetal:namespace")) ?? DEFAULT_NAMESPACE,
  };
}

/** A path has neither line breaks nor JSON's braces; a kubeconfig has one or the other. */
function isContents(kubeconfig: string): boolean {
  return kubeconfig.includes("\n") || kubeconfig.startsWith("{");
}

function expandHome(path: string): string {
  return path === "~" || path.startsWith("~/") ? join(homedir(), path.slice(1)) : resolve(path);
}

/** The first file of KUBECONFIG that exists, else the user's own; kubectl's merging of several files is not done. */
function fileOfEnvironment(environment: NodeJS.ProcessEnv): string {
  const listed = (environment["KUBECONFIG"] ?? "").split(delimiter).filter((path) => path !== "");
  const candidates = listed.length > 0 ? listed : [join(homedir(), ".kube", "config")];
  const found = candidates.find((path) => existsSync(path));
  if (found !== undefined) return found;
  throw new ClusterError(
    "invalid",
    "read kubeconfig",
    `no kubeconfig was found (${candidates.join(", ")} does not exist); set one with "pulumi config set --secret baremetal:kubeconfig" (contents or a path), or point KUBECONFIG at it`,
  );
}

export async function connectionOf(settings: Settings, environment: NodeJS.ProcessEnv): Promise<Connection> {
  const { kubeconfig, context } = settings;
  if (kubeconfig === undefined) return connectionFromFile(fileOfEnvironment(environment), context);
  return isContents(kubeconfig) ? connectionFromKubeconfig(kubeconfig, context) : connectionFromFile(expandHome(kubeconfig), context);
}
