/** What the pod runner reads of a Pod, and how it fills in what a kubelet would. */
import { z } from "zod";

import type { LiveObject } from "../../provider/cluster/objects.ts";

const probe = z.object({
  httpGet: z.object({ path: z.string().default("/"), port: z.union([z.number(), z.string()]), scheme: z.enum(["HTTP"]).default("HTTP") }).loose(),
  initialDelaySeconds: z.number().default(0),
  periodSeconds: z.number().default(10),
  timeoutSeconds: z.number().default(1),
  failureThreshold: z.number().default(3),
});

const environmentVariable = z.object({
  name: z.string(),
  value: z.string().optional(),
  valueFrom: z.object({ fieldRef: z.object({ apiVersion: z.string().optional(), fieldPath: z.string() }) }).optional(),
});

const container = z.looseObject({
  name: z.string(),
  image: z.string(),
  command: z.array(z.string()).default([]),
  args: z.array(z.string()).default([]),
  env: z.array(environmentVariable).default([]),
  ports: z.array(z.looseObject({ name: z.string().optional(), containerPort: z.number() })).default([]),
  livenessProbe: probe.optional(),
  readinessProbe: probe.optional(),
  // What the runner does not do must not be taken for done.
  startupProbe: z.never().optional(),
  envFrom: z.never().optional(),
  lifecycle: z.never().optional(),
});

const podSpec = z.looseObject({
  serviceAccountName: z.string().default("default"),
  nodeName: z.string().optional(),
  terminationGracePeriodSeconds: z.number().default(30),
  containers: z.array(container).length(1),
  initContainers: z.never().optional(),
});

export type Probe = z.infer<typeof probe>;
export type Container = z.infer<typeof container>;

export interface PodSpec {
  namespace: string;
  name: string;
  uid: string;
  serviceAccount: string;
  nodeName: string | undefined;
  gracePeriodSeconds: number;
  container: Container;
}

/** Throws where the Pod needs something that the runner does not do. */
export function parsePod(object: LiveObject): PodSpec {
  const spec = podSpec.parse(object["spec"]);
  const { name, namespace, uid } = object.metadata;
  const [only] = spec.containers;
  if (namespace === undefined || only === undefined) throw new Error(`Pod ${name} has no namespace or container`);
  return {
    namespace,
    name,
    uid,
    serviceAccount: spec.serviceAccountName,
    nodeName: spec.nodeName,
    gracePeriodSeconds: spec.terminationGracePeriodSeconds,
    container: only,
  };
}

const terminating = z.looseObject({ deletionGracePeriodSeconds: z.number().optional() });

/** Seconds that a Pod being deleted has from SIGTERM to SIGKILL. */
export function terminationGraceOf(object: LiveObject): number {
  return terminating.parse(object.metadata).deletionGracePeriodSeconds ?? podSpec.parse(object["spec"]).terminationGracePeriodSeconds;
}

export interface Placement {
  ip: string;
  nodeName: string;
}

function fieldOf(path: string, pod: PodSpec, placement: Placement): string {
  const fields: Record<string, string> = {
    "metadata.name": pod.name,
    "metadata.namespace": pod.namespace,
    "metadata.uid": pod.uid,
    "status.podIP": placement.ip,
    "spec.nodeName": placement.nodeName,
    "spec.serviceAccountName": pod.serviceAccount,
  };
  const value = fields[path];
  if (value === undefined) throw new Error(`Pod ${pod.name}: the pod runner cannot fill in the field ${path}`);
  return value;
}

/** The container's own environment, and nothing else. */
export function environmentOf(pod: PodSpec, placement: Placement): Record<string, string> {
  return Object.fromEntries(
    pod.container.env.map(({ name, value, valueFrom }) => [
      name,
      valueFrom === undefined ? (value ?? "") : fieldOf(valueFrom.fieldRef.fieldPath, pod, placement),
    ]),
  );
}

/** Command and arguments with `$(NAME)` filled in; `$$(NAME)` stands for itself. `entrypoint` is what the image would run. */
export function commandLineOf(container: Container, environment: Record<string, string>, entrypoint: readonly string[]): string[] {
  const command = container.command.length > 0 ? container.command : entrypoint;
  return [...command, ...container.args].map((text) =>
    text.replace(/\$(\$\([^)]*\)|\(([^)]+)\))/g, (whole, escaped: string, name: string | undefined) =>
      name === undefined ? escaped : (environment[name] ?? whole),
    ),
  );
}

export function probePort(container: Container, port: number | string): number {
  if (typeof port === "number") return port;
  const found = container.ports.find(({ name }) => name === port);
  if (found === undefined) throw new Error(`container ${container.name} has no port named ${port}`);
  return found.containerPort;
}
