// Made from the models of the resources by provider/schema/write.ts; not to be edited.
import type * as pulumi from "@pulumi/pulumi";

/** An ordered set of registered machines (MachineInventory) that worker groups take their hosts from, and how their BMCs are reached. */
export interface MachineInventoryPoolArgs {
  /** Name of the Cluster API Cluster. Changing it replaces the resource. */
  clusterName: pulumi.Input<string>;
  /** Name of the MachineInventoryPool object. Changing it replaces the resource. Default: `<clusterName>-<logical name>-pool`. */
  name?: pulumi.Input<string>;
  /** Namespace of the objects in the management cluster. Changing it replaces the resource. Default: the stack's `baremetal:namespace`, else `default`. */
  namespace?: pulumi.Input<string>;
  /** Hosts of the pool, taken in this order. A host in use cannot be dropped; one that has not registered yet may be listed. */
  machineInventories: pulumi.Input<pulumi.Input<PoolMemberArgs>[]>;
  /** BMC credentials by inventory name, for entries without `bmc.secretName`; kept in a Secret `<inventory>-bmc` that goes with the pool. */
  bmcCredentials?: pulumi.Input<Record<string, pulumi.Input<BmcCredentialsArgs>>>;
  /** Read each BMC's power state in preview and fail where that is impossible. Default: `false`. */
  verifyBmc?: pulumi.Input<boolean>;
  /** How long a change may wait for hosts to be released. Default: `2m`. */
  waitTimeout?: pulumi.Input<string>;
  /** Take over objects of the same name that another program made, or that nobody owns, and fields of them that someone else has set. Default: `false`. */
  adopt?: pulumi.Input<boolean>;
}

/** What a MachineInventoryPool holds once it exists. */
export interface MachineInventoryPoolOutputs {
  /** Name of the Cluster API Cluster. Changing it replaces the resource. */
  readonly clusterName: string;
  /** Name of the MachineInventoryPool object. Changing it replaces the resource. Default: `<clusterName>-<logical name>-pool`. */
  readonly name?: string;
  /** Namespace of the MachineInventoryPool object. */
  readonly namespace: string;
  /** Hosts of the pool, taken in this order. A host in use cannot be dropped; one that has not registered yet may be listed. */
  readonly machineInventories: PoolMember[];
  /** BMC credentials by inventory name, for entries without `bmc.secretName`; kept in a Secret `<inventory>-bmc` that goes with the pool. */
  readonly bmcCredentials?: Record<string, BmcCredentials>;
  /** Read each BMC's power state in preview and fail where that is impossible. Default: `false`. */
  readonly verifyBmc?: boolean;
  /** How long a change may wait for hosts to be released. */
  readonly waitTimeout: string;
  /** Take over objects of the same name that another program made, or that nobody owns, and fields of them that someone else has set. Default: `false`. */
  readonly adopt?: boolean;
  /** Name of the MachineInventoryPool object. */
  readonly poolName: string;
  /** Declared inventories that had not registered at the last run; the next `up` after they have completes them. */
  readonly pending: string[];
}

/** When and how the machines of a WorkerGroup are repaired: a MachineHealthCheck with its remediation template. */
export interface RemediationPolicyArgs {
  /** The WorkerGroup whose machines are watched. */
  workerGroup: pulumi.Input<GroupReferenceArgs>;
  /** Name of the MachineHealthCheck. Changing it replaces the resource. Default: `<clusterName>-<logical name>`. */
  name?: pulumi.Input<string>;
  /** Nothing is repaired while more machines than this are unhealthy. A percentage is rounded down; machines that are still being provisioned count as unhealthy. Default: `100%`. */
  maxUnhealthy?: pulumi.Input<number | string>;
  /** Conditions of a Node that count as unhealthy. Default: `[{"type":"Ready","status":"Unknown","timeout":"300s"},{"type":"Ready","status":"False","timeout":"300s"}]`. */
  unhealthyNodeConditions?: pulumi.Input<pulumi.Input<UnhealthyNodeConditionArgs>[]>;
  /** How long a machine may take to join before it counts as unhealthy; "0s" for ever. Give it the time that a bare-metal install takes. Default: `20m`. */
  nodeStartupTimeout?: pulumi.Input<string>;
  /** How a host is repaired. */
  strategy?: pulumi.Input<RemediationStrategyArgs>;
  /** Who repairs: the controller of this package, or the one of cluster-api-provider-metal3 where that is installed. Default: `bundled`. */
  engine?: pulumi.Input<RemediationPolicyEngine>;
  /** How long a change may wait for the cluster. Default: `2m`. */
  waitTimeout?: pulumi.Input<string>;
  /** Take over objects of the same name that another program made, or that nobody owns, and fields of them that someone else has set. Default: `false`. */
  adopt?: pulumi.Input<boolean>;
}

/** What a RemediationPolicy holds once it exists. */
export interface RemediationPolicyOutputs {
  /** The WorkerGroup whose machines are watched. */
  readonly workerGroup: GroupReference;
  /** Name of the MachineHealthCheck. Changing it replaces the resource. Default: `<clusterName>-<logical name>`. */
  readonly name?: string;
  /** Nothing is repaired while more machines than this are unhealthy. A percentage is rounded down; machines that are still being provisioned count as unhealthy. */
  readonly maxUnhealthy: number | string;
  /** Conditions of a Node that count as unhealthy. Default: `[{"type":"Ready","status":"Unknown","timeout":"300s"},{"type":"Ready","status":"False","timeout":"300s"}]`. */
  readonly unhealthyNodeConditions: UnhealthyNodeCondition[];
  /** How long a machine may take to join before it counts as unhealthy; "0s" for ever. Give it the time that a bare-metal install takes. */
  readonly nodeStartupTimeout: string;
  /** How a host is repaired. */
  readonly strategy: RemediationStrategy;
  /** Who repairs: the controller of this package, or the one of cluster-api-provider-metal3 where that is installed. */
  readonly engine: RemediationPolicyEngine;
  /** How long a change may wait for the cluster. */
  readonly waitTimeout: string;
  /** Take over objects of the same name that another program made, or that nobody owns, and fields of them that someone else has set. Default: `false`. */
  readonly adopt?: boolean;
  /** Name of the Cluster API Cluster. */
  readonly clusterName: string;
  /** Namespace of the MachineHealthCheck. */
  readonly namespace: string;
  /** Name of the MachineHealthCheck. */
  readonly machineHealthCheck: string;
  /** Name of the remediation template that repairs are made from. */
  readonly remediationTemplate: string;
  /** Kind of that template. */
  readonly remediationKind: string;
}

/** A group of worker machines of a Cluster API cluster: a MachineDeployment with its templates. Previews name the hosts that will be taken and the machines that will go. */
export interface WorkerGroupArgs {
  /** Name of the Cluster API Cluster. Changing it replaces the resource. */
  clusterName: pulumi.Input<string>;
  /** Kubernetes version of the machines, with a leading `v`. A change replaces the machines one by one. */
  version: pulumi.Input<string>;
  /** Number of machines. Lowering it lets Cluster API choose which go, unless `removeMachines` names them. */
  replicas: pulumi.Input<number>;
  /** Name of the MachineDeployment. Changing it replaces the resource. Default: `<clusterName>-<logical name>`. */
  name?: pulumi.Input<string>;
  /** Namespace of the objects in the management cluster. Changing it replaces the resource. Default: the stack's `baremetal:namespace`, else `default`. */
  namespace?: pulumi.Input<string>;
  /** Where the machines run. Another pool replaces the machines one by one. */
  infrastructure: pulumi.Input<InfrastructureArgs>;
  /** How a machine becomes a Node. */
  bootstrap: pulumi.Input<BootstrapArgs>;
  /** How machines are replaced. Default: `{ maxSurge: 0, maxUnavailable: 1 }`: one by one, as a pool has no hosts to spare. */
  rollout?: pulumi.Input<RolloutArgs>;
  /** How long a Node that goes is drained. A change replaces nothing. Default: `5m`. */
  nodeDrainTimeout?: pulumi.Input<string>;
  /** How long volumes of a Node that goes may take to detach. A change replaces nothing. Default: `5m`. */
  nodeVolumeDetachTimeout?: pulumi.Input<string>;
  /** Machines or Nodes that go when `replicas` is lowered, by exactly their number. Names that are gone already are left out of account. */
  removeMachines?: pulumi.Input<pulumi.Input<string>[]>;
  /** Further labels of the Machines. A change replaces nothing. */
  labels?: pulumi.Input<Record<string, pulumi.Input<string>>>;
  /** How long a change may take until all machines are ready, or gone. Default: `60m`. */
  waitTimeout?: pulumi.Input<string>;
  /** Take over objects of the same name that another program made, or that nobody owns, and fields of them that someone else has set. Default: `false`. */
  adopt?: pulumi.Input<boolean>;
}

/** What a WorkerGroup holds once it exists. */
export interface WorkerGroupOutputs {
  /** Name of the Cluster API Cluster. Changing it replaces the resource. */
  readonly clusterName: string;
  /** Kubernetes version of the machines, with a leading `v`. A change replaces the machines one by one. */
  readonly version: string;
  /** Number of machines. Lowering it lets Cluster API choose which go, unless `removeMachines` names them. */
  readonly replicas: number;
  /** Name of the MachineDeployment. Changing it replaces the resource. Default: `<clusterName>-<logical name>`. */
  readonly name?: string;
  /** Namespace of the MachineDeployment. */
  readonly namespace: string;
  /** Where the machines run. Another pool replaces the machines one by one. */
  readonly infrastructure: Infrastructure;
  /** How a machine becomes a Node. */
  readonly bootstrap: Bootstrap;
  /** How machines are replaced. Default: `{ maxSurge: 0, maxUnavailable: 1 }`: one by one, as a pool has no hosts to spare. */
  readonly rollout?: Rollout;
  /** How long a Node that goes is drained. A change replaces nothing. */
  readonly nodeDrainTimeout: string;
  /** How long volumes of a Node that goes may take to detach. A change replaces nothing. */
  readonly nodeVolumeDetachTimeout: string;
  /** Machines or Nodes that go when `replicas` is lowered, by exactly their number. Names that are gone already are left out of account. */
  readonly removeMachines?: string[];
  /** Further labels of the Machines. A change replaces nothing. */
  readonly labels?: Record<string, string>;
  /** How long a change may take until all machines are ready, or gone. */
  readonly waitTimeout: string;
  /** Take over objects of the same name that another program made, or that nobody owns, and fields of them that someone else has set. Default: `false`. */
  readonly adopt?: boolean;
  /** Name of the MachineDeployment. */
  readonly machineDeployment: string;
  /** Name of the infrastructure template that machines are made from. */
  readonly infrastructureTemplate: string;
  /** Name of the bootstrap template that machines are made from. */
  readonly bootstrapTemplate: string;
}

/** How the BMC of a host is reached. */
export interface BmcArgs {
  /** Redfish address: `https://host[:port]`, with the path of one System (`/redfish/v1/Systems/<id>`) where the BMC serves several. */
  address: pulumi.Input<string>;
  /** Secret in the pool's namespace with the keys `username` and `password`. It stays yours: never written, never deleted. Give either this or an entry in `bmcCredentials`. */
  secretName?: pulumi.Input<string>;
  /** Secret in the pool's namespace whose key `ca.crt` holds the certificates that the BMC's own must chain to. Default: the system's certificates. */
  caSecretName?: pulumi.Input<string>;
  /** Do not verify the BMC's certificate. Anyone on the path can then read the credentials. Default: `false`. */
  insecure?: pulumi.Input<boolean>;
}

/** How the BMC of a host is reached. */
export interface Bmc {
  /** Redfish address: `https://host[:port]`, with the path of one System (`/redfish/v1/Systems/<id>`) where the BMC serves several. */
  readonly address: string;
  /** Secret in the pool's namespace with the keys `username` and `password`. It stays yours: never written, never deleted. Give either this or an entry in `bmcCredentials`. */
  readonly secretName?: string;
  /** Secret in the pool's namespace whose key `ca.crt` holds the certificates that the BMC's own must chain to. Default: the system's certificates. */
  readonly caSecretName?: string;
  /** Do not verify the BMC's certificate. Anyone on the path can then read the credentials. Default: `false`. */
  readonly insecure?: boolean;
}

/** Credentials of one BMC. */
export interface BmcCredentialsArgs {
  /** User of the BMC. */
  username: pulumi.Input<string>;
  /** Password of that user. */
  password: pulumi.Input<string>;
}

/** Credentials of one BMC. */
export interface BmcCredentials {
  /** User of the BMC. */
  readonly username: string;
  /** Password of that user. */
  readonly password: string;
}

/** How a machine becomes a Node. */
export interface BootstrapArgs {
  /** Bootstrap by kubeadm. A change replaces the machines one by one. */
  kubeadm?: pulumi.Input<KubeadmBootstrapArgs>;
  /** A bootstrap template that you keep. */
  templateRef?: pulumi.Input<TemplateReferenceArgs>;
}

/** How a machine becomes a Node. */
export interface Bootstrap {
  /** Bootstrap by kubeadm. A change replaces the machines one by one. */
  readonly kubeadm?: KubeadmBootstrap;
  /** A bootstrap template that you keep. */
  readonly templateRef?: TemplateReference;
}

/** A file that cloud-init writes before kubeadm runs. */
export interface FileArgs {
  /** Path on the machine. */
  path: pulumi.Input<string>;
  /** `user:group`. */
  owner?: pulumi.Input<string>;
  /** Octal mode, for example `0644`. */
  permissions?: pulumi.Input<string>;
  /** Encoding of the content. */
  encoding?: pulumi.Input<FileEncoding>;
  /** Append to a file that exists. */
  append?: pulumi.Input<boolean>;
  /** Content of the file. */
  content?: pulumi.Input<string>;
  /** Content from a Secret. */
  contentFrom?: pulumi.Input<SecretSourceArgs>;
}

/** A file that cloud-init writes before kubeadm runs. */
export interface File {
  /** Path on the machine. */
  readonly path: string;
  /** `user:group`. */
  readonly owner?: string;
  /** Octal mode, for example `0644`. */
  readonly permissions?: string;
  /** Encoding of the content. */
  readonly encoding?: FileEncoding;
  /** Append to a file that exists. */
  readonly append?: boolean;
  /** Content of the file. */
  readonly content?: string;
  /** Content from a Secret. */
  readonly contentFrom?: SecretSource;
}

/** Encoding of the content. */
export type FileEncoding = "base64" | "gzip" | "gzip+base64";

/** A WorkerGroup of this program, or the names of an existing MachineDeployment. */
export interface GroupReferenceArgs {
  /** Name of the Cluster API Cluster. */
  clusterName: pulumi.Input<string>;
  /** Name of the MachineDeployment. */
  machineDeployment: pulumi.Input<string>;
  /** Namespace of the MachineDeployment. */
  namespace: pulumi.Input<string>;
  /** Number of machines; only to warn of a percentage that never allows a repair. */
  replicas?: pulumi.Input<number>;
}

/** A WorkerGroup of this program, or the names of an existing MachineDeployment. */
export interface GroupReference {
  /** Name of the Cluster API Cluster. */
  readonly clusterName: string;
  /** Name of the MachineDeployment. */
  readonly machineDeployment: string;
  /** Namespace of the MachineDeployment. */
  readonly namespace: string;
  /** Number of machines; only to warn of a percentage that never allows a repair. */
  readonly replicas?: number;
}

/** Where the machines run. */
export interface InfrastructureArgs {
  /** Machines on hosts of a MachineInventoryPool. */
  machineInventory?: pulumi.Input<MachineInventoryInfrastructureArgs>;
  /** Machines of any other infrastructure provider, from a template that you keep. A change of the reference replaces the machines one by one. */
  templateRef?: pulumi.Input<TemplateReferenceArgs>;
}

/** Where the machines run. */
export interface Infrastructure {
  /** Machines on hosts of a MachineInventoryPool. */
  readonly machineInventory?: MachineInventoryInfrastructure;
  /** Machines of any other infrastructure provider, from a template that you keep. A change of the reference replaces the machines one by one. */
  readonly templateRef?: TemplateReference;
}

/** Configuration of `kubeadm join`. */
export interface JoinConfigurationArgs {
  /** How the Node registers. */
  nodeRegistration?: pulumi.Input<NodeRegistrationArgs>;
  /** Patches that kubeadm applies to its own configuration. */
  patches?: pulumi.Input<PatchesArgs>;
  /** Phases of `kubeadm join` to leave out. */
  skipPhases?: pulumi.Input<pulumi.Input<string>[]>;
}

/** Configuration of `kubeadm join`. */
export interface JoinConfiguration {
  /** How the Node registers. */
  readonly nodeRegistration?: NodeRegistration;
  /** Patches that kubeadm applies to its own configuration. */
  readonly patches?: Patches;
  /** Phases of `kubeadm join` to leave out. */
  readonly skipPhases?: string[];
}

/** Bootstrap configuration of the machines. Host name and `provider-id` are filled in for each host and refused here; from Kubernetes 1.35 on the kubelet patch gets `imagePullCredentialsVerificationPolicy: NeverVerify`. */
export interface KubeadmBootstrapArgs {
  /** Users of the machine. */
  users?: pulumi.Input<pulumi.Input<UserArgs>[]>;
  /** Files of the machine. */
  files?: pulumi.Input<pulumi.Input<FileArgs>[]>;
  /** Commands run early at each boot. */
  bootCommands?: pulumi.Input<pulumi.Input<string>[]>;
  /** Commands run before kubeadm. */
  preKubeadmCommands?: pulumi.Input<pulumi.Input<string>[]>;
  /** Commands run after kubeadm. */
  postKubeadmCommands?: pulumi.Input<pulumi.Input<string>[]>;
  /** Configuration of `kubeadm join`. */
  joinConfiguration?: pulumi.Input<JoinConfigurationArgs>;
  /** Time servers of the machine. */
  ntp?: pulumi.Input<NtpArgs>;
  /** Mounts, each as the fields of a line in fstab. */
  mounts?: pulumi.Input<pulumi.Input<pulumi.Input<string>[]>[]>;
  /** Log level of kubeadm. */
  verbosity?: pulumi.Input<number>;
}

/** Bootstrap configuration of the machines. Host name and `provider-id` are filled in for each host and refused here; from Kubernetes 1.35 on the kubelet patch gets `imagePullCredentialsVerificationPolicy: NeverVerify`. */
export interface KubeadmBootstrap {
  /** Users of the machine. */
  readonly users?: User[];
  /** Files of the machine. */
  readonly files?: File[];
  /** Commands run early at each boot. */
  readonly bootCommands?: string[];
  /** Commands run before kubeadm. */
  readonly preKubeadmCommands?: string[];
  /** Commands run after kubeadm. */
  readonly postKubeadmCommands?: string[];
  /** Configuration of `kubeadm join`. */
  readonly joinConfiguration?: JoinConfiguration;
  /** Time servers of the machine. */
  readonly ntp?: Ntp;
  /** Mounts, each as the fields of a line in fstab. */
  readonly mounts?: string[][];
  /** Log level of kubeadm. */
  readonly verbosity?: number;
}

/** Machines on hosts of a MachineInventoryPool. */
export interface MachineInventoryInfrastructureArgs {
  /** The MachineInventoryPool that hosts are taken from: the resource, or the name of an existing one. */
  pool: pulumi.Input<string | PoolReferenceArgs>;
}

/** Machines on hosts of a MachineInventoryPool. */
export interface MachineInventoryInfrastructure {
  /** The MachineInventoryPool that hosts are taken from: the resource, or the name of an existing one. */
  readonly pool: string | PoolReference;
}

/** How the Node registers. */
export interface NodeRegistrationArgs {
  /** Refused: the name comes from the pool's `hostname`. */
  name?: pulumi.Input<string>;
  /** Socket of the container runtime. Default: `unix:///var/run/containerd/containerd.sock`. */
  criSocket?: pulumi.Input<string>;
  /** Checks of kubeadm that may fail. */
  ignorePreflightErrors?: pulumi.Input<pulumi.Input<string>[]>;
  /** How kubeadm pulls images. */
  imagePullPolicy?: pulumi.Input<NodeRegistrationImagePullPolicy>;
  /** Arguments of the kubelet; `provider-id` and `hostname-override` are filled in and refused here. */
  kubeletExtraArgs?: pulumi.Input<Record<string, pulumi.Input<string>>>;
  /** Taints that the Node registers with. */
  taints?: pulumi.Input<pulumi.Input<TaintArgs>[]>;
}

/** How the Node registers. */
export interface NodeRegistration {
  /** Refused: the name comes from the pool's `hostname`. */
  readonly name?: string;
  /** Socket of the container runtime. Default: `unix:///var/run/containerd/containerd.sock`. */
  readonly criSocket?: string;
  /** Checks of kubeadm that may fail. */
  readonly ignorePreflightErrors?: string[];
  /** How kubeadm pulls images. */
  readonly imagePullPolicy?: NodeRegistrationImagePullPolicy;
  /** Arguments of the kubelet; `provider-id` and `hostname-override` are filled in and refused here. */
  readonly kubeletExtraArgs?: Record<string, string>;
  /** Taints that the Node registers with. */
  readonly taints?: Taint[];
}

/** How kubeadm pulls images. */
export type NodeRegistrationImagePullPolicy = "Always" | "IfNotPresent" | "Never";

/** Time servers of the machine. */
export interface NtpArgs {
  /** Whether NTP is set up. */
  enabled?: pulumi.Input<boolean>;
  /** Time servers. */
  servers?: pulumi.Input<pulumi.Input<string>[]>;
}

/** Time servers of the machine. */
export interface Ntp {
  /** Whether NTP is set up. */
  readonly enabled?: boolean;
  /** Time servers. */
  readonly servers?: string[];
}

/** Patches that kubeadm applies to its own configuration. */
export interface PatchesArgs {
  /** Folder that kubeadm reads patches from. */
  directory: pulumi.Input<string>;
}

/** Patches that kubeadm applies to its own configuration. */
export interface Patches {
  /** Folder that kubeadm reads patches from. */
  readonly directory: string;
}

/** One host of a pool, as far as a group has to know it. */
export interface PoolHostArgs {
  /** Name of the MachineInventory. */
  name: pulumi.Input<string>;
  /** Host name of the machine on it. */
  hostname?: pulumi.Input<string>;
}

/** One host of a pool, as far as a group has to know it. */
export interface PoolHost {
  /** Name of the MachineInventory. */
  readonly name: string;
  /** Host name of the machine on it. */
  readonly hostname?: string;
}

/** One registered host that the pool may hand out. */
export interface PoolMemberArgs {
  /** Name of the MachineInventory, as the host registered itself. */
  name: pulumi.Input<string>;
  /** Host name, and so Node name, of the machine that runs on this host. Default: the inventory's name. */
  hostname?: pulumi.Input<string>;
  /** BMC of the host. Without it the host can be used, but not repaired, and a host that died cannot be given up by itself. */
  bmc?: pulumi.Input<BmcArgs>;
}

/** One registered host that the pool may hand out. */
export interface PoolMember {
  /** Name of the MachineInventory, as the host registered itself. */
  readonly name: string;
  /** Host name, and so Node name, of the machine that runs on this host. Default: the inventory's name. */
  readonly hostname?: string;
  /** BMC of the host. Without it the host can be used, but not repaired, and a host that died cannot be given up by itself. */
  readonly bmc?: Bmc;
}

/** A MachineInventoryPool of this program, or one described by hand. */
export interface PoolReferenceArgs {
  /** Name of the MachineInventoryPool object. */
  poolName: pulumi.Input<string>;
  /** Namespace of the pool; it must be the group's. */
  namespace: pulumi.Input<string>;
  /** The pool's declared hosts; what a preview plans from. */
  machineInventories: pulumi.Input<pulumi.Input<PoolHostArgs>[]>;
}

/** A MachineInventoryPool of this program, or one described by hand. */
export interface PoolReference {
  /** Name of the MachineInventoryPool object. */
  readonly poolName: string;
  /** Namespace of the pool; it must be the group's. */
  readonly namespace: string;
  /** The pool's declared hosts; what a preview plans from. */
  readonly machineInventories: PoolHost[];
}

/** Who repairs: the controller of this package, or the one of cluster-api-provider-metal3 where that is installed. */
export type RemediationPolicyEngine = "bundled" | "capm3";

/** How a host is repaired. */
export interface RemediationStrategyArgs {
  /** How a host is repaired: by a power cycle, with its Node fenced while it is off. Default: `Reboot`. */
  type?: pulumi.Input<RemediationStrategyType>;
  /** Further power cycles after the first before the machine is offered for replacement. Default: `1`. */
  retryLimit?: pulumi.Input<number>;
  /** How long the Node may take to be Ready once its host is on again. At least 100s. Default: `10m`. */
  timeout?: pulumi.Input<string>;
  /** How long the host may take until it is proven off. Default: `5m`. */
  powerOffTimeout?: pulumi.Input<string>;
  /** How long the host may take until it is on. Default: `5m`. */
  powerOnTimeout?: pulumi.Input<string>;
  /** How long fencing and draining of the Node may take. Default: `5m`. */
  drainTimeout?: pulumi.Input<string>;
  /** Time between the two readings that prove a host off. Default: `2s`. */
  offConfirmation?: pulumi.Input<string>;
  /** Time between the two looks that find a Node drained. Default: `5s`. */
  drainConfirmation?: pulumi.Input<string>;
}

/** How a host is repaired. */
export interface RemediationStrategy {
  /** How a host is repaired: by a power cycle, with its Node fenced while it is off. */
  readonly type?: RemediationStrategyType;
  /** Further power cycles after the first before the machine is offered for replacement. */
  readonly retryLimit?: number;
  /** How long the Node may take to be Ready once its host is on again. At least 100s. */
  readonly timeout?: string;
  /** How long the host may take until it is proven off. */
  readonly powerOffTimeout?: string;
  /** How long the host may take until it is on. */
  readonly powerOnTimeout?: string;
  /** How long fencing and draining of the Node may take. */
  readonly drainTimeout?: string;
  /** Time between the two readings that prove a host off. */
  readonly offConfirmation?: string;
  /** Time between the two looks that find a Node drained. */
  readonly drainConfirmation?: string;
}

/** How a host is repaired: by a power cycle, with its Node fenced while it is off. */
export type RemediationStrategyType = "Reboot";

/** How machines are replaced. */
export interface RolloutArgs {
  /** Machines above `replicas` during a rollout; each needs a free host. Default: `0`. */
  maxSurge?: pulumi.Input<number | string>;
  /** Machines below `replicas` during a rollout. Default: `1`. */
  maxUnavailable?: pulumi.Input<number | string>;
}

/** How machines are replaced. */
export interface Rollout {
  /** Machines above `replicas` during a rollout; each needs a free host. */
  readonly maxSurge?: number | string;
  /** Machines below `replicas` during a rollout. */
  readonly maxUnavailable?: number | string;
}

/** One key of a Secret. */
export interface SecretKeyArgs {
  /** Name of the Secret, in the group's namespace. */
  name: pulumi.Input<string>;
  /** Key in the Secret. */
  key: pulumi.Input<string>;
}

/** One key of a Secret. */
export interface SecretKey {
  /** Name of the Secret, in the group's namespace. */
  readonly name: string;
  /** Key in the Secret. */
  readonly key: string;
}

/** A value that is read from a Secret. */
export interface SecretSourceArgs {
  /** Where the value lies. */
  secret: pulumi.Input<SecretKeyArgs>;
}

/** A value that is read from a Secret. */
export interface SecretSource {
  /** Where the value lies. */
  readonly secret: SecretKey;
}

/** A taint that the Node registers with. */
export interface TaintArgs {
  /** Key of the taint. */
  key: pulumi.Input<string>;
  /** Value of the taint. */
  value?: pulumi.Input<string>;
  /** Effect of the taint. */
  effect: pulumi.Input<TaintEffect>;
}

/** A taint that the Node registers with. */
export interface Taint {
  /** Key of the taint. */
  readonly key: string;
  /** Value of the taint. */
  readonly value?: string;
  /** Effect of the taint. */
  readonly effect: TaintEffect;
}

/** Effect of the taint. */
export type TaintEffect = "NoSchedule" | "PreferNoSchedule" | "NoExecute";

/** A template that somebody else keeps. */
export interface TemplateReferenceArgs {
  /** API group of the template, for example `infrastructure.cluster.x-k8s.io`. */
  apiGroup: pulumi.Input<string>;
  /** Kind of the template. */
  kind: pulumi.Input<string>;
  /** Name of the template, in the group's namespace. */
  name: pulumi.Input<string>;
}

/** A template that somebody else keeps. */
export interface TemplateReference {
  /** API group of the template, for example `infrastructure.cluster.x-k8s.io`. */
  readonly apiGroup: string;
  /** Kind of the template. */
  readonly kind: string;
  /** Name of the template, in the group's namespace. */
  readonly name: string;
}

/** A condition of a Node that counts as unhealthy. */
export interface UnhealthyNodeConditionArgs {
  /** Type of the Node's condition. */
  type: pulumi.Input<string>;
  /** Status that counts as unhealthy. */
  status: pulumi.Input<UnhealthyNodeConditionStatus>;
  /** How long the status must last. */
  timeout: pulumi.Input<string>;
}

/** A condition of a Node that counts as unhealthy. */
export interface UnhealthyNodeCondition {
  /** Type of the Node's condition. */
  readonly type: string;
  /** Status that counts as unhealthy. */
  readonly status: UnhealthyNodeConditionStatus;
  /** How long the status must last. */
  readonly timeout: string;
}

/** Status that counts as unhealthy. */
export type UnhealthyNodeConditionStatus = "True" | "False" | "Unknown";

/** A user that cloud-init makes on the machine. */
export interface UserArgs {
  /** User name. */
  name: pulumi.Input<string>;
  /** Comment on the user. */
  gecos?: pulumi.Input<string>;
  /** Further groups, comma-separated. */
  groups?: pulumi.Input<string>;
  /** Home directory. */
  homeDir?: pulumi.Input<string>;
  /** Create the user disabled. */
  inactive?: pulumi.Input<boolean>;
  /** Login shell. */
  shell?: pulumi.Input<string>;
  /** Password hash. */
  passwd?: pulumi.Input<string>;
  /** Password hash from a Secret. */
  passwdFrom?: pulumi.Input<SecretSourceArgs>;
  /** Primary group. */
  primaryGroup?: pulumi.Input<string>;
  /** Disable login by password. */
  lockPassword?: pulumi.Input<boolean>;
  /** Rule for sudo. */
  sudo?: pulumi.Input<string>;
  /** Public keys that may log in. */
  sshAuthorizedKeys?: pulumi.Input<pulumi.Input<string>[]>;
}

/** A user that cloud-init makes on the machine. */
export interface User {
  /** User name. */
  readonly name: string;
  /** Comment on the user. */
  readonly gecos?: string;
  /** Further groups, comma-separated. */
  readonly groups?: string;
  /** Home directory. */
  readonly homeDir?: string;
  /** Create the user disabled. */
  readonly inactive?: boolean;
  /** Login shell. */
  readonly shell?: string;
  /** Password hash. */
  readonly passwd?: string;
  /** Password hash from a Secret. */
  readonly passwdFrom?: SecretSource;
  /** Primary group. */
  readonly primaryGroup?: string;
  /** Disable login by password. */
  readonly lockPassword?: boolean;
  /** Rule for sudo. */
  readonly sudo?: string;
  /** Public keys that may log in. */
  readonly sshAuthorizedKeys?: string[];
}
