/** The BMCs that a pool declares: whether they can be used as written, and whether they answer. */
import { z } from "zod";

import type { Cluster } from "../../cluster/cluster.ts";
import { isClusterError } from "../../cluster/errors.ts";
import { secrets } from "../../cluster/kinds.ts";
import { parseBmcAddress } from "../../redfish/address.ts";
import type { BmcTarget } from "../../redfish/bmc.ts";
import { isBmcError } from "../../redfish/bmc.ts";
import { propertyPath } from "../inputs.ts";
import type { CheckFailure, VerbContext } from "../lifecycle.ts";
import { explain } from "../failures.ts";
import type { PoolInputs, PoolMember } from "./inputs.ts";

function at(index: number, field?: string): string {
  return propertyPath(["machineInventories", index, "bmc", ...(field === undefined ? [] : [field])]);
}

/** Complaints about addresses and about where credentials come from. `credentials` names the inventories that have inline ones; undefined where that is not known. */
export function bmcContradictions(members: readonly PoolMember[], credentials: readonly string[] | undefined): CheckFailure[] {
  const failures: CheckFailure[] = [];
  for (const [index, { name, bmc }] of members.entries()) {
    if (bmc === undefined) continue;
    try {
      parseBmcAddress(bmc.address, bmc.insecure === undefined ? {} : { insecure: bmc.insecure });
    } catch (error) {
      if (!isBmcError(error)) throw error;
      failures.push({ property: at(index, "address"), reason: error.message });
    }
    if (credentials === undefined) continue;
    const inline = credentials.includes(name);
    if (inline && bmc.secretName !== undefined) {
      failures.push({ property: at(index, "secretName"), reason: `${name} has both bmc.secretName and an entry in bmcCredentials; keep one of them` });
    }
    if (!inline && bmc.secretName === undefined) {
      failures.push({
        property: at(index, "secretName"),
        reason: `${name} has a BMC but no credentials; set bmc.secretName, or add ${name} to bmcCredentials`,
      });
    }
  }
  for (const name of credentials ?? []) {
    if (!members.some((member) => member.name === name && member.bmc !== undefined)) {
      failures.push({ property: "bmcCredentials", reason: `${name} is no inventory of this pool that has a bmc; remove it or correct its spelling` });
    }
  }
  return failures;
}

const secretModel = z.object({ data: z.record(z.string(), z.string()).optional() });

async function secretValues(cluster: Cluster, namespace: string, name: string, keys: readonly string[]): Promise<string[] | string> {
  try {
    const { data = {} } = secretModel.parse(await cluster.get(secrets, { namespace, name }));
    const missing = keys.filter((key) => (data[key] ?? "") === "");
    if (missing.length > 0) return `Secret ${namespace}/${name} has no key ${missing.join(" and ")}`;
    return keys.map((key) => Buffer.from(data[key] ?? "", "base64").toString("utf8"));
  } catch (error) {
    if (isClusterError(error, "notFound")) return `Secret ${namespace}/${name} does not exist; create it with the keys ${keys.join(" and ")}`;
    throw error;
  }
}

/** How the BMC is reached, or why it cannot be. */
async function targetOf(cluster: Cluster, inputs: PoolInputs, member: PoolMember): Promise<BmcTarget | string> {
  const { bmc } = member;
  if (bmc === undefined) return "it has no bmc";
  const inline = inputs.bmcCredentials?.[member.name];
  const login =
    inline === undefined ? await secretValues(cluster, inputs.namespace, bmc.secretName ?? "", ["username", "password"]) : [inline.username, inline.password];
  if (typeof login === "string") return login;
  const trust = bmc.caSecretName === undefined ? undefined : await secretValues(cluster, inputs.namespace, bmc.caSecretName, ["ca.crt"]);
  if (typeof trust === "string") return trust;
  return {
    address: bmc.address,
    username: login[0] ?? "",
    password: login[1] ?? "",
    ...(trust?.[0] === undefined ? {} : { certificateAuthority: trust[0] }),
    ...(bmc.insecure === undefined ? {} : { insecure: bmc.insecure }),
  };
}

/** Reads the power state of each BMC once. Nothing is changed. */
export async function verifyBmcs(context: VerbContext, cluster: Cluster, inputs: PoolInputs): Promise<CheckFailure[]> {
  const answers = await Promise.all(
    inputs.machineInventories.map(async (member, index): Promise<CheckFailure[]> => {
      if (member.bmc === undefined) return [];
      try {
        const target = await targetOf(cluster, inputs, member);
        if (typeof target === "string") return [{ property: at(index), reason: `BMC of ${member.name}: ${target}` }];
        const { power } = await context.bmcs.bmc(target).readPower(context.signal);
        context.report.status(`BMC of ${member.name} answers, power ${power}`);
        return [];
      } catch (error) {
        if (isBmcError(error)) return [{ property: at(index), reason: `BMC of ${member.name}: ${error.message}` }];
        if (isClusterError(error)) return [{ property: at(index), reason: `BMC of ${member.name}: ${explain(error, cluster.server)}` }];
        throw error;
      }
    }),
  );
  return answers.flat();
}
