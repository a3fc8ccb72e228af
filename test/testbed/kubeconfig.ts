/** Kubeconfig files, written as JSON (which is YAML). */

export interface KubeconfigInput {
  server: string;
  /** PEM. */
  certificateAuthority: string;
  /** How the user is known; absent for an anonymous one. */
  user?: { clientCertificate: string; clientKey: string } | { tokenFile: string };
  /** Default namespace; `default` when absent. */
  namespace?: string;
}

function base64(text: string): string {
  return Buffer.from(text).toString("base64");
}

export function kubeconfigOf(input: KubeconfigInput): string {
  const { user } = input;
  const credentials =
    user === undefined
      ? {}
      : "tokenFile" in user
        ? { tokenFile: user.tokenFile }
        : { "client-certificate-data": base64(user.clientCertificate), "client-key-data": base64(user.clientKey) };
  return `${JSON.stringify(
    {
      apiVersion: "v1",
      kind: "Config",
      "current-context": "bed",
      clusters: [{ name: "bed", cluster: { server: input.server, "certificate-authority-data": base64(input.certificateAuthority) } }],
      users: [{ name: "bed", user: credentials }],
      contexts: [{ name: "bed", context: { cluster: "bed", user: "bed", ...(input.namespace === undefined ? {} : { namespace: input.namespace }) } }],
    },
    undefined,
    2,
  )}\n`;
}
