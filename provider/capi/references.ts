/** References to templates and infrastructure objects: one model, two spellings. */
import { z } from "zod";

import type { CapiVersion } from "./kinds.ts";

export interface TemplateRef {
  apiGroup: string;
  /** Version in which the template is served; only v1beta1 writes it down. */
  version: string;
  kind: string;
  name: string;
}

/** A reference as read; the older spelling has the group inside `apiVersion`. */
export interface Reference {
  apiGroup: string;
  kind: string;
  name: string;
}

export function renderReference(reference: TemplateRef, namespace: string, version: CapiVersion): Record<string, unknown> {
  const { apiGroup, kind, name } = reference;
  return version === "v1beta2" ? { apiGroup, kind, name } : { apiVersion: `${apiGroup}/${reference.version}`, kind, name, namespace };
}

export const referenceModel = z
  .object({ apiGroup: z.string().optional(), apiVersion: z.string().optional(), kind: z.string().default(""), name: z.string().default("") })
  .transform(({ apiGroup, apiVersion, kind, name }): Reference => ({ apiGroup: apiGroup ?? apiVersion?.split("/")[0] ?? "", kind, name }));
