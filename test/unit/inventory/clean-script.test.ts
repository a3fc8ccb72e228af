/** The clean script under a real shell that finds stubs and nothing else. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { z } from "zod";

import { cleanPlan } from "../../../provider/controller/inventory/plans.ts";

const planSchema = z.object({ instructions: z.array(z.object({ name: z.string(), command: z.string(), args: z.array(z.string()) })) });

/** By name: the body of the stub. */
const healthy: Readonly<Record<string, string>> = {
  systemctl: 'case "$1" in show) echo loaded ;; is-active) exit 3 ;; esac',
  kubeadm: "",
  crictl: "",
  cat: 'echo "tmpfs /run tmpfs rw 0 0"',
  rm: "",
  "cloud-init": "",
};

describe("clean script", () => {
  let folder: string;

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "clean-"));
  });

  afterEach(() => rmSync(folder, { recursive: true }));

  function run(stubs: Readonly<Record<string, string>>): { status: number | null; stderr: string; calls: string[] } {
    const calls = join(folder, "calls");
    writeFileSync(calls, "");
    for (const [name, body] of Object.entries(stubs)) {
      writeFileSync(join(folder, name), `#!/bin/sh\necho "${name} $*" >>${calls}\n${body}\n`);
      chmodSync(join(folder, name), 0o755);
    }
    const [instruction] = planSchema.parse(JSON.parse(cleanPlan("id").text)).instructions;
    assert.ok(instruction !== undefined);
    assert.deepEqual([instruction.name, instruction.command], ["clean", "/bin/sh"]);
    const { status, stderr } = spawnSync(instruction.command, instruction.args, { env: { PATH: folder }, encoding: "utf8" });
    const all = readFileSync(calls, "utf8").trim().split("\n");
    return { status, stderr: stderr.trim(), calls: all.filter((call) => !call.startsWith("systemctl show")) };
  }

  it("stops cloud-init and the kubelet before it resets, looks, and removes", () => {
    assert.deepEqual(run(healthy), {
      status: 0,
      stderr: "",
      calls: [
        "systemctl stop cloud-final.service",
        "systemctl stop cloud-config.service",
        "systemctl stop cloud-init.service",
        "systemctl stop cloud-init-main.service",
        "systemctl stop kubelet.service",
        "systemctl is-active --quiet kubelet",
        "kubeadm reset --force",
        "systemctl is-active --quiet kubelet",
        "crictl ps -q",
        "cat /proc/self/mounts",
        "rm -rf --one-file-system /etc/kubernetes /var/lib/kubelet /etc/cni/net.d",
        "rm -rf --one-file-system /var/lib/cloud/seed/nocloud",
        "cloud-init clean --logs",
      ],
    });
  });

  it("succeeds on a host that never had any of it", () => {
    const { status, calls } = run({ systemctl: 'case "$1" in show) echo not-found ;; is-active) exit 4 ;; esac', cat: "", rm: "" });
    assert.equal(status, 0);
    assert.deepEqual(
      calls.filter((call) => call.includes("stop")),
      [],
    );
  });

  it("takes a mounted /var/lib/kubelet itself for no volume", () => {
    assert.equal(run({ ...healthy, cat: 'echo "/dev/sda1 /var/lib/kubelet ext4 rw 0 0"' }).status, 0);
  });

  const failing: [string, Record<string, string>, string][] = [
    ["the kubelet cannot be stopped", { systemctl: 'case "$1" in show) echo loaded ;; stop) echo no >&2; exit 1 ;; is-active) exit 3 ;; esac' }, "no"],
    ["the kubelet still runs", { systemctl: 'case "$1" in show) echo loaded ;; esac' }, "the kubelet still runs"],
    ["systemd does not answer", { systemctl: "echo no bus >&2; exit 1" }, "no bus"],
    ["kubeadm fails", { kubeadm: "echo no >&2; exit 1" }, "no"],
    ["containers are left", { crictl: "echo abc" }, "containers still run: abc"],
    ["the container runtime does not answer", { crictl: "echo no runtime >&2; exit 1" }, "no runtime"],
    ["a volume is still mounted", { cat: 'echo "/dev/sdb /var/lib/kubelet/pods/x/volumes/v ext4 rw 0 0"' }, "volumes are still mounted below /var/lib/kubelet"],
    ["the mounts cannot be read", { cat: "echo denied >&2; exit 1" }, "denied"],
  ];
  for (const [name, stubs, message] of failing) {
    it(`fails and removes nothing when ${name}`, () => {
      const { status, stderr, calls } = run({ ...healthy, ...stubs });
      assert.deepEqual([status, stderr], [1, message]);
      assert.deepEqual(
        calls.filter((call) => call.startsWith("rm ")),
        [],
      );
    });
  }
});
