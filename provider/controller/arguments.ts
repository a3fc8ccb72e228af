/** What the process is told by its command line and environment. */
import type { ObjectKey } from "../cluster/objects.ts";

export const controllerNames = ["remediation", "inventory"] as const;
export type ControllerName = (typeof controllerNames)[number];

export interface Arguments {
  controllers: readonly ControllerName[];
  /** Namespaces whose objects are looked at. */
  namespaces: readonly string[];
  settings: ObjectKey;
  podName: string;
  podNamespace: string;
  /** Address on which health and metrics are served. */
  listenAddress: string;
  /** The Node that this process runs on, whose host it never powers off; empty where it is not told. */
  nodeName: string;
}

/** The message names the argument, what is wrong and what is expected. */
export class ArgumentsError extends Error {
  override readonly name = "ArgumentsError";
}

const DEFAULT_SETTINGS_NAME = "pulumi-baremetal";

function listOf(text: string): string[] {
  return text
    .split(",")
    .map((item) => item.trim())
    .filter((item) => item !== "");
}

function controllersOf(text: string | undefined): ControllerName[] {
  const chosen = listOf(text ?? "remediation").map((name) => {
    const known = controllerNames.find((candidate) => candidate === name);
    if (known === undefined) throw new ArgumentsError(`--controllers: ${JSON.stringify(name)} is no controller; choose from ${controllerNames.join(", ")}`);
    return known;
  });
  if (chosen.length === 0) throw new ArgumentsError(`--controllers is empty; name at least one of ${controllerNames.join(", ")}`);
  return [...new Set(chosen)];
}

function settingsOf(text: string | undefined, podNamespace: string): ObjectKey {
  if (text === undefined) return { namespace: podNamespace, name: DEFAULT_SETTINGS_NAME };
  const [namespace, name, ...rest] = text.split("/");
  if (namespace === undefined || namespace === "" || name === undefined || name === "" || rest.length > 0) {
    throw new ArgumentsError(`--settings: ${JSON.stringify(text)} is not <namespace>/<name of a ConfigMap>`);
  }
  return { namespace, name };
}

export function argumentsOf(
  values: { controllers?: string | undefined; namespaces?: string | undefined; settings?: string | undefined },
  env: Readonly<Record<string, string | undefined>>,
  hostname: string,
): Arguments {
  const podNamespace = env["POD_NAMESPACE"] ?? "";
  if (podNamespace === "")
    throw new ArgumentsError("the environment variable POD_NAMESPACE is not set; set it to the namespace of the Pod (fieldRef metadata.namespace)");
  const namespaces = [...new Set(listOf(values.namespaces ?? podNamespace))];
  if (namespaces.length === 0) throw new ArgumentsError("--namespaces is empty; name the namespaces whose machines are looked after");
  const podName = env["POD_NAME"] ?? "";
  return {
    controllers: controllersOf(values.controllers),
    namespaces,
    settings: settingsOf(values.settings, podNamespace),
    podName: podName === "" ? hostname : podName,
    podNamespace,
    listenAddress: env["POD_IP"] === undefined || env["POD_IP"] === "" ? "0.0.0.0" : env["POD_IP"],
    nodeName: env["NODE_NAME"] ?? "",
  };
}
