/** The part of a KubeadmConfigSpec that a worker may set, in one spelling; rendered for each Cluster API version elsewhere. */
import { z } from "zod";

const secretKey = z
  .strictObject({
    name: z.string().min(1).meta({ description: "Name of the Secret, in the group's namespace." }),
    key: z.string().min(1).meta({ description: "Key in the Secret." }),
  })
  .meta({ id: "SecretKey", description: "One key of a Secret." });

const secretSource = z
  .strictObject({ secret: secretKey.meta({ description: "Where the value lies." }) })
  .meta({ id: "SecretSource", description: "A value that is read from a Secret." });

const patches = z
  .strictObject({ directory: z.string().startsWith("/", "must be an absolute path").meta({ description: "Folder that kubeadm reads patches from." }) })
  .meta({ id: "Patches", description: "Patches that kubeadm applies to its own configuration." });

const ntp = z
  .strictObject({
    enabled: z.boolean().optional().meta({ description: "Whether NTP is set up." }),
    servers: z.array(z.string().min(1)).optional().meta({ description: "Time servers." }),
  })
  .meta({ id: "Ntp", description: "Time servers of the machine." });

const user = z
  .strictObject({
    name: z.string().min(1).meta({ description: "User name." }),
    gecos: z.string().min(1).optional().meta({ description: "Comment on the user." }),
    groups: z.string().min(1).optional().meta({ description: "Further groups, comma-separated." }),
    homeDir: z.string().min(1).optional().meta({ description: "Home directory." }),
    inactive: z.boolean().optional().meta({ description: "Create the user disabled." }),
    shell: z.string().min(1).optional().meta({ description: "Login shell." }),
    passwd: z.string().min(1).optional().meta({ description: "Password hash.", secret: true }),
    passwdFrom: secretSource.optional().meta({ description: "Password hash from a Secret." }),
    primaryGroup: z.string().min(1).optional().meta({ description: "Primary group." }),
    lockPassword: z.boolean().optional().meta({ description: "Disable login by password." }),
    sudo: z.string().min(1).optional().meta({ description: "Rule for sudo." }),
    sshAuthorizedKeys: z.array(z.string().min(1)).optional().meta({ description: "Public keys that may log in." }),
  })
  .meta({ id: "User", description: "A user that cloud-init makes on the machine." });

const file = z
  .strictObject({
    path: z.string().startsWith("/", "must be an absolute path").meta({ description: "Path on the machine." }),
    owner: z.string().min(1).optional().meta({ description: "`user:group`." }),
    permissions: z.string().min(1).optional().meta({ description: "Octal mode, for example `0644`." }),
    encoding: z.enum(["base64", "gzip", "gzip+base64"]).optional().meta({ description: "Encoding of the content." }),
    append: z.boolean().optional().meta({ description: "Append to a file that exists." }),
    content: z.string().min(1).optional().meta({ description: "Content of the file." }),
    contentFrom: secretSource.optional().meta({ description: "Content from a Secret." }),
  })
  .meta({ id: "File", description: "A file that cloud-init writes before kubeadm runs." });

const taint = z
  .strictObject({
    key: z.string().min(1).meta({ description: "Key of the taint." }),
    value: z.string().optional().meta({ description: "Value of the taint." }),
    effect: z.enum(["NoSchedule", "PreferNoSchedule", "NoExecute"]).meta({ description: "Effect of the taint." }),
  })
  .meta({ id: "Taint", description: "A taint that the Node registers with." });

const nodeRegistration = z
  .strictObject({
    name: z.string().optional().meta({ description: "Refused: the name comes from the pool's `hostname`." }),
    criSocket: z
      .string()
      .min(1)
      .optional()
      .meta({ description: "Socket of the container runtime.", defaultNote: "`unix:///var/run/containerd/containerd.sock`" }),
    ignorePreflightErrors: z.array(z.string().min(1)).optional().meta({ description: "Checks of kubeadm that may fail." }),
    imagePullPolicy: z.enum(["Always", "IfNotPresent", "Never"]).optional().meta({ description: "How kubeadm pulls images." }),
    kubeletExtraArgs: z
      .record(z.string(), z.string())
      .optional()
      .meta({ description: "Arguments of the kubelet; `provider-id` and `hostname-override` are filled in and refused here." }),
    taints: z.array(taint).optional().meta({ description: "Taints that the Node registers with." }),
  })
  .meta({ id: "NodeRegistration", description: "How the Node registers." });

const joinConfiguration = z
  .strictObject({
    nodeRegistration: nodeRegistration.optional().meta({ description: "How the Node registers." }),
    patches: patches.optional().meta({ description: "Patches that kubeadm applies to its own configuration." }),
    skipPhases: z.array(z.string().min(1)).optional().meta({ description: "Phases of `kubeadm join` to leave out." }),
  })
  .meta({ id: "JoinConfiguration", description: "Configuration of `kubeadm join`." });

export const kubeadmInput = z
  .strictObject({
    users: z.array(user).optional().meta({ description: "Users of the machine." }),
    files: z.array(file).optional().meta({ description: "Files of the machine." }),
    bootCommands: z.array(z.string().min(1)).optional().meta({ description: "Commands run early at each boot." }),
    preKubeadmCommands: z.array(z.string().min(1)).optional().meta({ description: "Commands run before kubeadm." }),
    postKubeadmCommands: z.array(z.string().min(1)).optional().meta({ description: "Commands run after kubeadm." }),
    joinConfiguration: joinConfiguration.optional().meta({ description: "Configuration of `kubeadm join`." }),
    ntp: ntp.optional().meta({ description: "Time servers of the machine." }),
    mounts: z
      .array(z.array(z.string().min(1)))
      .optional()
      .meta({ description: "Mounts, each as the fields of a line in fstab." }),
    verbosity: z.int().min(0).optional().meta({ description: "Log level of kubeadm." }),
  })
  .meta({
    id: "KubeadmBootstrap",
    description:
      "Bootstrap configuration of the machines. Host name and `provider-id` are filled in for each host and refused here; from Kubernetes 1.35 on the kubelet patch gets `imagePullCredentialsVerificationPolicy: NeverVerify`.",
  });

export type KubeadmBootstrap = z.output<typeof kubeadmInput>;
export type KubeadmFile = z.output<typeof file>;
