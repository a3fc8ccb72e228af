/** What a simulated host keeps through power cycles. */
import type { Connection } from "../../../provider/cluster/connection.ts";
import { META_DATA_PATH, USER_DATA_PATH } from "./cloud-init.ts";
import type { KubeletState } from "./kubelet.ts";

export class Disk {
  /** Credentials of the agent, once the host has registered. */
  agent: Connection | undefined;
  /** The kubelet, once the host has joined a cluster. */
  kubelet: KubeletState | undefined;
  /** The instance for which cloud-init ran to its end. */
  cloudInitDone: string | undefined;
  readonly files = new Map<string, string>();

  /** Another installation of the system: nothing of the cluster stays. */
  reprovision(files: ReadonlyMap<string, string>): void {
    this.kubelet = undefined;
    this.cloudInitDone = undefined;
    this.files.clear();
    this.write(files);
  }

  write(files: ReadonlyMap<string, string>): void {
    for (const [path, content] of files) this.files.set(path, content);
  }

  /** What `kubeadm reset` and the removal of the seed leave: nothing of the cluster. */
  clean(): void {
    this.kubelet = undefined;
    this.cloudInitDone = undefined;
    this.files.delete(USER_DATA_PATH);
    this.files.delete(META_DATA_PATH);
  }
}
