/**
 * The foundation of a bed: etcd's data with both clusters' system objects and all CRDs in place, and the keys that they were made with.
 * It takes several seconds to make and is the same for every bed, so it is made once and kept beside the toolchain.
 */
import { createHash, randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { z } from "zod";

import { clusterApiCrds } from "./cluster-api.ts";
import type { ConvertedCrd } from "./cluster-api.ts";
import { administratorOf, startApiServer, startEtcd } from "./control-plane.ts";
import { applyCrds } from "./crds.ts";
import { foreignCrds } from "./foreign-crds.ts";
import { createBedKeys } from "./keys.ts";
import type { BedKeys } from "./keys.ts";
import type { RunningProcess } from "./processes.ts";
import { binary, cacheDirectory, clusterApiSource } from "./toolchain.ts";

const KEPT_UNUSED_MS = 24 * 60 * 60 * 1000;

const keyPair = z.object({ certificate: z.string(), key: z.string() });
const clusterKeys = z.object({
  authority: keyPair,
  frontProxyAuthority: keyPair,
  serviceAccountKey: z.object({ privateKey: z.string(), publicKey: z.string() }),
});
const description = z.object({
  keys: z.object({ management: clusterKeys, workload: clusterKeys, webhookAuthority: keyPair }),
  converted: z.array(z.object({ name: z.string(), manager: z.enum(["core", "bootstrap"]) })),
});

export interface Foundation {
  keys: BedKeys;
  /** The CRDs whose conversion has to be pointed at the bed's managers. */
  converted: ConvertedCrd[];
}

/** Everything that decides what a foundation holds: the binaries, Cluster API's source, and our own code. */
function keyOfFoundation(): string {
  const hash = createHash("sha256");
  const here = dirname(fileURLToPath(import.meta.url));
  for (const file of ["foundation.ts", "cluster-api.ts", "foreign-crds.ts", "crds.ts", "control-plane.ts", "certificates.ts", "keys.ts"])
    hash.update(readFileSync(join(here, file)));
  hash.update([binary("etcd"), binary("kube-apiserver"), clusterApiSource()].join("\n"));
  return hash.digest("hex").slice(0, 16);
}

/** etcd allocates its log ahead, so a file is mostly zeros: these are not written again. */
function copySparse(from: string, to: string): void {
  const content = readFileSync(from);
  let end = content.length;
  while (end > 0 && content[end - 1] === 0) end -= 1;
  const file = openSync(to, "w", 0o600);
  try {
    writeSync(file, content, 0, end);
    ftruncateSync(file, content.length);
  } finally {
    closeSync(file);
  }
}

function copyData(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (entry.isDirectory()) copyData(join(from, entry.name), join(to, entry.name));
    else if (!entry.name.endsWith(".tmp")) copySparse(join(from, entry.name), join(to, entry.name));
  }
}

async function makeFoundation(target: string): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "pulumi-baremetal-foundation-"));
  const etcdProcess: RunningProcess[] = [];
  const apiServers: RunningProcess[] = [];
  try {
    const keys = await createBedKeys();
    const data = join(directory, "etcd");
    let converted: ConvertedCrd[];
    try {
      const etcd = await startEtcd(directory, data, (process) => etcdProcess.push(process));
      const [management, , crds] = await Promise.all([
        startApiServer("management", join(directory, "management"), etcd, keys.management, (process) => apiServers.push(process)),
        startApiServer("workload", join(directory, "workload"), etcd, keys.workload, (process) => apiServers.push(process)),
        Promise.resolve().then(() => clusterApiCrds(keys.webhookAuthority)),
      ]);
      converted = crds.converted;
      const client = await administratorOf(management);
      try {
        await applyCrds(client, [...crds.objects, ...foreignCrds]);
      } finally {
        await client.close();
      }
    } finally {
      await Promise.all(apiServers.map(async (process) => process.stop()));
      await Promise.all(etcdProcess.map(async (process) => process.stop()));
    }
    const staging = `${target}.${randomBytes(4).toString("hex")}.partial`;
    copyData(data, join(staging, "etcd"));
    writeFileSync(join(staging, "foundation.json"), JSON.stringify({ keys, converted }), { mode: 0o600 });
    try {
      renameSync(staging, target);
    } catch (error) {
      rmSync(staging, { recursive: true, force: true });
      // Another process was quicker: its foundation is as good as ours.
      if (!existsSync(target)) throw error;
    }
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Foundations of older versions, and what a build that failed half-way left. */
function removeUnused(folder: string): void {
  for (const name of readdirSync(folder)) {
    const path = join(folder, name);
    if (Date.now() - (statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Date.now()) > KEPT_UNUSED_MS) rmSync(path, { recursive: true, force: true });
  }
}

/** Copies the foundation's etcd data into `dataDirectory`; makes the foundation first where there is none. */
export async function layFoundation(dataDirectory: string): Promise<Foundation> {
  const folder = join(cacheDirectory, "foundations");
  const target = join(folder, keyOfFoundation());
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (!existsSync(target)) await makeFoundation(target);
  const now = new Date();
  utimesSync(target, now, now);
  removeUnused(folder);
  copyData(join(target, "etcd"), dataDirectory);
  return description.parse(JSON.parse(readFileSync(join(target, "foundation.json"), "utf8")));
}
