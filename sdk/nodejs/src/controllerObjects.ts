/** What the RemediationController consists of, as plain Kubernetes objects. */
import type { types } from "@pulumi/kubernetes";
import type * as pulumi from "@pulumi/pulumi";

import type { ControllerName } from "./controllerRules.ts";

export const CONTROLLER = "pulumi-baremetal-controller";
export const SETTINGS = "pulumi-baremetal";
/** Written and removed by the component's last step alone. */
export const STOP_KEY = "stop";

/** The flags trade a little speed, of which there is plenty, for a sixth of the memory at rest. */
export const CONTROLLER_COMMAND = ["node", "--max-semi-space-size=1", "--optimize-for-size", "/app/controller.cjs"];

const HEALTH_PORT = 8080;

export const objectLabels = { "app.kubernetes.io/name": CONTROLLER, "app.kubernetes.io/managed-by": "pulumi-baremetal" };
const podLabels = { "app.kubernetes.io/name": CONTROLLER };

function fromField(name: string, fieldPath: string): types.input.core.v1.EnvVar {
  return { name, valueFrom: { fieldRef: { fieldPath } } };
}

function probe(path: string, periodSeconds: number, failureThreshold: number): types.input.core.v1.Probe {
  return { httpGet: { path, port: HEALTH_PORT }, periodSeconds, failureThreshold, timeoutSeconds: 3 };
}

export interface ControllerPodOptions {
  image: pulumi.Input<string>;
  replicas: pulumi.Input<number>;
  controllers: readonly ControllerName[];
  /** Namespace of the controller itself. */
  namespace: string;
  /** Namespaces whose groups it serves. */
  namespaces: readonly string[];
}

export function deploymentSpec(options: ControllerPodOptions): types.input.apps.v1.DeploymentSpec {
  const { image, replicas, controllers, namespace, namespaces } = options;
  return {
    replicas,
    selector: { matchLabels: podLabels },
    template: {
      metadata: { labels: objectLabels },
      spec: {
        serviceAccountName: CONTROLLER,
        // A repair is never cut short by this: what is under way is written down and gone on with by the next Pod.
        terminationGracePeriodSeconds: 30,
        affinity: {
          podAntiAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [
              { weight: 100, podAffinityTerm: { topologyKey: "kubernetes.io/hostname", labelSelector: { matchLabels: podLabels } } },
            ],
          },
        },
        securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
        containers: [
          {
            name: "controller",
            image,
            command: CONTROLLER_COMMAND,
            args: [`--controllers=${controllers.join(",")}`, `--namespaces=${namespaces.join(",")}`, `--settings=${namespace}/${SETTINGS}`],
            env: [
              fromField("POD_NAME", "metadata.name"),
              fromField("POD_NAMESPACE", "metadata.namespace"),
              fromField("POD_IP", "status.podIP"),
              fromField("NODE_NAME", "spec.nodeName"),
            ],
            ports: [{ name: "http", containerPort: HEALTH_PORT, protocol: "TCP" }],
            livenessProbe: probe("/healthz", 10, 6),
            readinessProbe: probe("/readyz", 5, 3),
            securityContext: { allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: { drop: ["ALL"] } },
            resources: { requests: { cpu: "50m", memory: "96Mi" }, limits: { memory: "512Mi" } },
          },
        ],
      },
    },
  };
}
