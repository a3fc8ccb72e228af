// Builds the pinned binaries of the test bed from source, once per version, into a cache outside the checkout.
//
//   node test/toolchain/build.mjs              builds whatever is missing, in the order in which the bed needs it
//   node test/toolchain/build.mjs NAME…        only these
//   node test/toolchain/build.mjs --print      prints where each binary is or will be, as JSON
//
// Plain Node without dependencies, because it runs before anything is installed.
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const MINIMUM_GO = [1, 26];

export const cacheDirectory = process.env.PULUMI_BAREMETAL_CACHE ?? join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "pulumi-baremetal");

const kubernetesVersion = "1.37.2";
const kubernetesStamp = ["k8s.io/component-base/version", "k8s.io/client-go/pkg/version"]
  .flatMap((name) => [`-X ${name}.gitVersion=v${kubernetesVersion}`, `-X ${name}.gitMajor=1`, `-X ${name}.gitMinor=37`, `-X ${name}.gitTreeState=clean`])
  .join(" ");
const pulumiVersion = "3.274.1";
const pulumiKubernetesVersion = "4.25.0";
const pulumiKubernetesModule = "github.com/pulumi/pulumi-kubernetes/provider/v4";

/**
 * What is built, in the order in which the bed needs it.
 * `module` is the folder with its go.mod; `companions` are files of the same Go module that belong beside the binary.
 */
const recipes = [
  { name: "etcd", module: "etcd", package: "go.etcd.io/etcd/server/v3", version: "3.7.3", assets: true },
  {
    name: "kube-apiserver",
    module: "kubernetes",
    package: "k8s.io/kubernetes/cmd/kube-apiserver",
    version: kubernetesVersion,
    ldflags: kubernetesStamp,
    assets: true,
  },
  {
    name: "kube-controller-manager",
    module: "kubernetes",
    package: "k8s.io/kubernetes/cmd/kube-controller-manager",
    version: kubernetesVersion,
    ldflags: kubernetesStamp,
    assets: true,
  },
  { name: "cluster-api-core", module: "cluster-api", package: "sigs.k8s.io/cluster-api/core", version: "1.14.2" },
  { name: "cluster-api-bootstrap-kubeadm", module: "cluster-api", package: "sigs.k8s.io/cluster-api/bootstrap/kubeadm", version: "1.14.2" },
  {
    name: "pulumi-language-nodejs",
    module: "pulumi-language-nodejs",
    package: "github.com/pulumi/pulumi/sdk/v3/nodejs/cmd/pulumi-language-nodejs",
    version: "3.67.1",
    ldflags: "-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=3.67.1",
    pulumi: true,
    companions: { goModule: "github.com/pulumi/pulumi/sdk/v3", files: ["nodejs/dist/pulumi-resource-pulumi-nodejs", "nodejs/dist/pulumi-analyzer-policy"] },
  },
  {
    name: "pulumi",
    module: "pulumi",
    package: "github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
    version: pulumiVersion,
    ldflags: `-X github.com/pulumi/pulumi/sdk/v3/go/common/version.Version=${pulumiVersion}`,
    pulumi: true,
  },
  {
    name: "pulumi-resource-kubernetes",
    module: "pulumi-kubernetes",
    package: ".",
    version: pulumiKubernetesVersion,
    ldflags: `-X ${pulumiKubernetesModule}/pkg/version.Version=${pulumiKubernetesVersion}`,
    // Unoptimised code builds a third faster, and the plugin is idle most of the time.
    gcflags: "all=-N -l",
    embeds: {
      goModule: pulumiKubernetesModule,
      files: ["cmd/pulumi-resource-kubernetes/schema.json", "cmd/pulumi-resource-kubernetes/terraform-mapping.json"],
    },
  },
];

function fail(message) {
  console.error(message);
  process.exit(1);
}

/** The folder of one binary: its key covers the pinned modules, the flags and this machine's kind. */
function folderOf(recipe) {
  const hash = createHash("sha256");
  for (const file of readdirSync(join(here, recipe.module))
    .filter((name) => /\.(mod|sum|go)$/.test(name))
    .sort()) {
    hash.update(readFileSync(join(here, recipe.module, file)));
  }
  hash.update(JSON.stringify([recipe, process.platform, process.arch]));
  return join(cacheDirectory, "bin", `${recipe.name}-${recipe.version}-${hash.digest("hex").slice(0, 10)}`);
}

function onPath(name) {
  for (const folder of (process.env.PATH ?? "").split(delimiter)) {
    if (folder && existsSync(join(folder, name))) return join(folder, name);
  }
  return undefined;
}

/** A binary of the machine's own that will do: the same Kubernetes minor, or a Pulumi of at least our version with its language host. */
function suitable(recipe) {
  if (recipe.assets && process.env.KUBEBUILDER_ASSETS) {
    const candidate = join(process.env.KUBEBUILDER_ASSETS, recipe.name);
    if (!existsSync(candidate)) return undefined;
    const printed = spawnSync(candidate, ["--version"], { encoding: "utf8" }).stdout ?? "";
    const [major, minor] = recipe.version.split(".");
    return new RegExp(`\\bv?${major}\\.${minor}\\.`).test(printed) ? candidate : undefined;
  }
  if (recipe.pulumi) {
    const cli = onPath("pulumi");
    const language = onPath("pulumi-language-nodejs");
    if (!cli || !language || !onPath("pulumi-resource-pulumi-nodejs")) return undefined;
    const printed = (spawnSync(cli, ["version"], { encoding: "utf8", env: { ...process.env, PULUMI_SKIP_UPDATE_CHECK: "true" } }).stdout ?? "").trim();
    const [major, minor] = printed.replace(/^v/, "").split(".").map(Number);
    const [wantMajor, wantMinor] = pulumiVersion.split(".").map(Number);
    if (major !== wantMajor || !(minor >= wantMinor)) return undefined;
    return recipe.name === "pulumi" ? cli : language;
  }
  return undefined;
}

/** Where the binary is, or will be once built. */
export function binaryPath(name) {
  const recipe = recipes.find((candidate) => candidate.name === name);
  if (!recipe) throw new Error(`no such binary: ${name}`);
  return suitable(recipe) ?? join(folderOf(recipe), recipe.name);
}

/** Where the source of a pinned Go module lies, for CRDs and manifests. */
export function moduleDirectory(module, goModule) {
  const listed = spawnSync("go", ["mod", "download", "-json", goModule], { cwd: join(here, module), encoding: "utf8" });
  const information = JSON.parse(listed.stdout || "{}");
  if (!information.Dir) throw new Error(`Go module ${goModule} could not be downloaded: ${information.Error ?? listed.stderr}`);
  return information.Dir;
}

function checkGo() {
  const printed = spawnSync("go", ["env", "GOVERSION"], { encoding: "utf8" }).stdout ?? "";
  const [major, minor] = printed.trim().replace(/^go/, "").split(".").map(Number);
  if (!(major > MINIMUM_GO[0] || (major === MINIMUM_GO[0] && minor >= MINIMUM_GO[1]))) {
    fail(
      `Go ${MINIMUM_GO.join(".")} or newer is needed to build the test bed (${printed.trim() || "no go on PATH"}). Install it from your distribution or from the Go project, then run this again.`,
    );
  }
}

function alive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}

/** Takes the lock of one binary, waiting for another process that is building it; a lock whose owner died is taken over. */
async function lock(path, say) {
  for (let told = false; ;) {
    try {
      writeFileSync(path, String(process.pid), { flag: "wx" });
      return;
    } catch (error) {
      if (error.code !== "EEXIST") throw error;
    }
    const owner = Number(existsSync(path) ? readFileSync(path, "utf8") : "");
    if (owner && !alive(owner)) {
      rmSync(path, { force: true });
      continue;
    }
    if (!told) say(`another process (${owner}) is building it, waiting`);
    told = true;
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

function copyInto(target, source) {
  for (const file of source.files) {
    copyFileSync(join(source.directory, file), join(target, file.split("/").pop()));
  }
}

async function goBuild(recipe, workFolder, output) {
  const ldflags = ["-s -w", recipe.ldflags].filter(Boolean).join(" ");
  const args = ["build", "-trimpath", "-buildvcs=false", "-mod=readonly", `-ldflags=${ldflags}`];
  if (recipe.gcflags) args.push(`-gcflags=${recipe.gcflags}`);
  args.push("-o", output, recipe.package);
  const child = spawn("go", args, { cwd: workFolder, stdio: ["ignore", "inherit", "inherit"], env: { ...process.env, CGO_ENABLED: "0", GOFLAGS: "" } });
  const stop = () => child.kill("SIGTERM");
  process.on("exit", stop);
  const code = await new Promise((resolve, reject) => child.on("error", reject).on("exit", resolve));
  process.off("exit", stop);
  if (code !== 0) fail(`building ${recipe.name} ${recipe.version} failed (go exited with ${code}); the output above says why`);
}

async function build(recipe, say) {
  const folder = folderOf(recipe);
  mkdirSync(dirname(folder), { recursive: true });
  const lockPath = `${folder}.lock`;
  await lock(lockPath, say);
  const release = () => rmSync(lockPath, { force: true });
  process.on("exit", release);
  try {
    if (existsSync(folder)) return;
    // Built beside its place and moved in as one rename: a build that failed half-way is never taken for a finished one.
    const staging = `${folder}.partial`;
    rmSync(staging, { recursive: true, force: true });
    mkdirSync(join(staging, "out"), { recursive: true });
    let workFolder = join(here, recipe.module);
    if (recipe.embeds) {
      workFolder = join(staging, "source");
      mkdirSync(workFolder);
      for (const file of readdirSync(join(here, recipe.module))) copyFileSync(join(here, recipe.module, file), join(workFolder, file));
      copyInto(workFolder, { directory: moduleDirectory(recipe.module, recipe.embeds.goModule), files: recipe.embeds.files });
    }
    await goBuild(recipe, workFolder, join(staging, "out", recipe.name));
    if (recipe.companions) {
      copyInto(join(staging, "out"), { directory: moduleDirectory(recipe.module, recipe.companions.goModule), files: recipe.companions.files });
    }
    renameSync(join(staging, "out"), folder);
    rmSync(staging, { recursive: true, force: true });
  } finally {
    release();
    process.off("exit", release);
  }
}

async function main(names) {
  for (const name of names) {
    if (!recipes.some((recipe) => recipe.name === name)) fail(`no such binary: ${name}; there are ${recipes.map((recipe) => recipe.name).join(", ")}`);
  }
  const wanted = recipes.filter((recipe) => names.length === 0 || names.includes(recipe.name));
  const missing = wanted.filter((recipe) => !existsSync(binaryPath(recipe.name)));
  if (missing.length === 0) return;
  checkGo();
  const began = Date.now();
  for (const [index, recipe] of missing.entries()) {
    const title = `[${index + 1}/${missing.length}] ${recipe.name} ${recipe.version}`;
    const elapsed = () => `${Math.round((Date.now() - began) / 1000)} s`;
    console.log(`toolchain ${title}: building (${elapsed()} so far)`);
    const ticking = setInterval(() => console.log(`toolchain ${title}: still building (${elapsed()})`), 30_000);
    await build(recipe, (text) => console.log(`toolchain ${title}: ${text}`));
    clearInterval(ticking);
    console.log(`toolchain ${title}: done (${elapsed()}, ${Math.round(statSync(binaryPath(recipe.name)).size / 1e6)} MB)`);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2);
  for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => process.exit(130));
  if (names[0] === "--print") {
    console.log(JSON.stringify(Object.fromEntries(recipes.map((recipe) => [recipe.name, binaryPath(recipe.name)])), null, 2));
  } else {
    await main(names);
  }
}
