/** User-data of the shape that Cluster API's kubeadm bootstrap provider writes for a worker. */

const head = `## template: jinja
#cloud-config

write_files:
-   path: /etc/kubernetes/patches/kubeletconfiguration0+strategic.json
    owner: root:root
    permissions: '0644'
    content: |
      {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "staticPodPath": null
      }
-   path: /run/kubeadm/kubeadm-join-config.yaml
    owner: root:root
    permissions: '0640'
    content: |
      ---
`;

const tail = `
-   path: /run/cluster-api/placeholder
    owner: root:root
    permissions: '0640'
    content: "This placeholder file is used to create the /run/cluster-api sub directory in a way that is compatible with both Linux and Windows (mkdir -p /run/cluster-api does not work with Windows)"
bootcmd:
  - "echo \\"yes\\" > /run/first"
runcmd:
  - "echo {{ ds.meta_data.instance_id }}"
  - kubeadm join --config /run/kubeadm/kubeadm-join-config.yaml  && echo success > /run/cluster-api/bootstrap-success.complete
users:
  - name: boot
    shell: /bin/bash
    sudo: ALL=(ALL) NOPASSWD:ALL
    ssh_authorized_keys:
      - ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample "no"
`;

function indented(text: string): string {
  return text
    .split("\n")
    .map((line) => `      ${line}`)
    .join("\n");
}

function userData(join: string): string {
  return `${head}${indented(join)}${tail}`;
}

const discovery = `discovery:
  bootstrapToken:
    apiServerEndpoint: 127.0.0.1:16543
    caCertHashes:
    - sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
    token: abcdef.0123456789abcdef`;

const taints = `  taints:
  - effect: NoSchedule
    key: node.cluster.x-k8s.io/uninitialized`;

export const joinV1beta4 = userData(`apiVersion: kubeadm.k8s.io/v1beta4
${discovery}
kind: JoinConfiguration
nodeRegistration:
  imagePullPolicy: IfNotPresent
${taints}
patches:
  directory: /etc/kubernetes/patches
`);

export const joinV1beta4WithArguments = userData(`apiVersion: kubeadm.k8s.io/v1beta4
${discovery}
kind: JoinConfiguration
nodeRegistration:
  criSocket: unix:///run/crio/crio.sock
  kubeletExtraArgs:
  - name: v
    value: "2"
  - name: provider-id
    value: other:///x
  name: '{{ ds.meta_data.local_hostname }}'
${taints}
`);

export const joinV1beta3 = userData(`apiVersion: kubeadm.k8s.io/v1beta3
${discovery}
kind: JoinConfiguration
nodeRegistration:
  kubeletExtraArgs:
    node-labels: a=b
${taints}
`);

export const initV1beta4 = userData(`apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
`);
