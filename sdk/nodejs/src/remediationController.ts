import * as pulumi from "@pulumi/pulumi";
import type * as kubernetes from "@pulumi/kubernetes";

import { CONTROLLER, SETTINGS, STOP_KEY, deploymentSpec, objectLabels } from "./controllerObjects.ts";
import { clusterRules, groupNamespaceRules, ownNamespaceRules } from "./controllerRules.ts";
import type { ControllerName, PolicyRule } from "./controllerRules.ts";
import { DynamicResource } from "./resource.ts";

// Loaded when a controller is constructed: programs without one need not pay for it.
declare function require(name: "@pulumi/kubernetes"): typeof kubernetes;

/** Arguments of a RemediationController. */
export interface RemediationControllerArgs {
  /** Container image that holds `/app/controller.cjs`; see the package's README. It has no default. */
  image: pulumi.Input<string>;
  /**
   * Which control loops run. `inventory` is for clusters that have registered machines but no controller for
   * MachineInventoryPool and BaremetalMachine. Default: `["remediation"]`.
   */
  controllers?: ControllerName[];
  /** Number of Pods; one of them leads at any time. Default: `1`. */
  replicas?: pulumi.Input<number>;
  /** Namespace that is made for the controller. Changing it replaces the controller. Default: `pulumi-baremetal-system`. */
  namespace?: string;
  /** Namespaces whose groups are served. Default: the stack's `baremetal:namespace`, else `default`. */
  namespaces?: string[];
  /** Settings of the controller, such as budgets; see the documentation of the controller. Default: none. */
  settings?: Record<string, pulumi.Input<string | number | boolean>>;
  /** How long a removal may wait until no host is held any more. Default: `2m`. */
  waitTimeout?: pulumi.Input<string>;
}

/** The kinds that the controllers work on. They outlive the component, and those that somebody else brought are left alone. */
class ControllerDefinitions extends DynamicResource {
  constructor(name: string, properties: { sets: ControllerName[] }, options: pulumi.CustomResourceOptions) {
    super("ControllerDefinitions", name, properties, options);
  }
}

/** The last step of the component and the first of its removal: nothing new is started, and no host stays held. */
class ControllerRemoval extends DynamicResource {
  constructor(name: string, properties: pulumi.Inputs, options: pulumi.CustomResourceOptions) {
    super("ControllerRemoval", name, properties, options);
  }
}

/**
 * The long-running process that repairs hosts and, if asked to, hands out registered machines: its namespace, identity,
 * permissions, kinds, settings and Deployment.
 *
 * Everything else of this package should depend on it: its kinds must exist before a pool does, and it must live until
 * the last machine is cleaned.
 */
export class RemediationController extends pulumi.ComponentResource {
  /** Namespace of the controller. */
  public readonly namespace: pulumi.Output<string>;

  constructor(name: string, args: RemediationControllerArgs, options: pulumi.ComponentResourceOptions = {}) {
    super("baremetal:index:RemediationController", name, {}, options);
    const k8s = require("@pulumi/kubernetes");
    const controllers = checkedControllers(name, args);
    const image = checkedImage(name, args);
    const settings = checkedSettings(name, args);
    const config = new pulumi.Config("baremetal");
    const namespaceName = args.namespace ?? "pulumi-baremetal-system";
    const namespaces = args.namespaces ?? [config.get("namespace") ?? "default"];
    if (namespaces.length === 0) {
      throw new pulumi.RunError(`RemediationController ${name}: namespaces is empty; name the namespaces of the worker groups, or leave it out`);
    }

    const inherit: pulumi.CustomResourceOptions = { parent: this, ...kubernetesProvider(k8s, name, config, this, options) };
    const namespace = new k8s.core.v1.Namespace(name, { metadata: { name: namespaceName, labels: objectLabels } }, inherit);
    const metadataIn = (place: pulumi.Input<string>, object: string): { name: string; namespace: pulumi.Input<string>; labels: Record<string, string> } => ({
      name: object,
      namespace: place,
      labels: objectLabels,
    });
    const own = namespace.metadata.name;

    const account = new k8s.core.v1.ServiceAccount(name, { metadata: metadataIn(own, CONTROLLER) }, inherit);
    const subjects = [{ kind: "ServiceAccount", name: CONTROLLER, namespace: own }];
    const grant = (logicalName: string, place: pulumi.Input<string>, rules: PolicyRule[]): pulumi.Resource[] => {
      const role = new k8s.rbac.v1.Role(logicalName, { metadata: metadataIn(place, CONTROLLER), rules }, inherit);
      const roleRef = { apiGroup: "rbac.authorization.k8s.io", kind: "Role", name: CONTROLLER };
      const binding = new k8s.rbac.v1.RoleBinding(logicalName, { metadata: metadataIn(place, CONTROLLER), roleRef, subjects }, { ...inherit, dependsOn: role });
      return [role, binding];
    };
    const ownRules = ownNamespaceRules(SETTINGS, CONTROLLER);
    const groupRules = groupNamespaceRules(controllers);
    const permissions = [
      ...grant(name, own, namespaces.includes(namespaceName) ? [...ownRules, ...groupRules] : ownRules),
      ...namespaces.filter((place) => place !== namespaceName).flatMap((place) => grant(`${name}-${place}`, place, groupRules)),
    ];
    // One stack may hold several controllers, and only one object of the whole cluster can have a name.
    const clusterWide = { name: pulumi.interpolate`${CONTROLLER}-${own}`, labels: objectLabels };
    const clusterRole = new k8s.rbac.v1.ClusterRole(name, { metadata: clusterWide, rules: clusterRules }, inherit);
    const clusterBinding = new k8s.rbac.v1.ClusterRoleBinding(
      name,
      { metadata: clusterWide, roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: clusterRole.metadata.name }, subjects },
      inherit,
    );

    const definitions = new ControllerDefinitions(name, { sets: controllers }, { parent: this });
    const settingsMap = new k8s.core.v1.ConfigMap(name, { metadata: metadataIn(own, SETTINGS), data: settings }, inherit);
    const deployment = new k8s.apps.v1.Deployment(
      name,
      {
        metadata: metadataIn(own, CONTROLLER),
        spec: deploymentSpec({ image, replicas: args.replicas ?? 1, controllers, namespace: namespaceName, namespaces }),
      },
      { ...inherit, dependsOn: [account, ...permissions, clusterBinding, definitions, settingsMap] },
    );
    new ControllerRemoval(
      name,
      { namespaces, settings: { namespace: own, name: SETTINGS }, waitTimeout: args.waitTimeout },
      { parent: this, dependsOn: [deployment, ...permissions, clusterBinding, definitions, settingsMap] },
    );
    this.namespace = own;
    this.registerOutputs({ namespace: this.namespace });
  }
}

function checkedImage(name: string, args: RemediationControllerArgs): pulumi.Input<string> {
  const image: unknown = args.image;
  if (image === undefined || image === null || image === "") {
    throw new pulumi.RunError(`RemediationController ${name}: image is missing; give the container image that holds /app/controller.cjs, there is no default`);
  }
  return args.image;
}

function checkedControllers(name: string, args: RemediationControllerArgs): ControllerName[] {
  const controllers = args.controllers ?? ["remediation"];
  const known: readonly string[] = ["remediation", "inventory"];
  if (controllers.length === 0 || controllers.some((controller) => !known.includes(controller))) {
    throw new pulumi.RunError(`RemediationController ${name}: controllers is ${JSON.stringify(controllers)}; it must hold "remediation", "inventory" or both`);
  }
  return [...new Set(controllers)];
}

function checkedSettings(name: string, args: RemediationControllerArgs): Record<string, pulumi.Output<string>> {
  const settings = args.settings ?? {};
  if (STOP_KEY in settings) {
    throw new pulumi.RunError(
      `RemediationController ${name}: settings.${STOP_KEY} is the stop switch and cannot be set here; it is used when the controller is removed`,
    );
  }
  return Object.fromEntries(Object.entries(settings).map(([key, value]) => [key, pulumi.output(value).apply(String)]));
}

/** The cluster of the stack's `baremetal:kubeconfig`, unless the program chose a provider of its own. */
function kubernetesProvider(
  k8s: typeof kubernetes,
  name: string,
  config: pulumi.Config,
  parent: RemediationController,
  options: pulumi.ComponentResourceOptions,
): pulumi.CustomResourceOptions {
  const kubeconfig = config.getSecret("kubeconfig");
  const context = config.get("context");
  if (options.provider !== undefined || options.providers !== undefined || (kubeconfig === undefined && context === undefined)) return {};
  return {
    provider: new k8s.Provider(name, { ...(kubeconfig === undefined ? {} : { kubeconfig }), ...(context === undefined ? {} : { context }) }, { parent }),
  };
}
