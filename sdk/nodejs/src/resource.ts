import * as pulumi from "@pulumi/pulumi";

import { providerText } from "./shell.ts";
import type { DynamicKind } from "./shell.ts";

/** The outputs that a resource has, as properties of the object in the program. */
export type AsOutputs<Outputs> = { readonly [Key in keyof Outputs]-?: pulumi.Output<Outputs[Key]> };

/**
 * A resource served by the dynamic host of this package. It is what `pulumi.dynamic.Resource` makes, save that the
 * stored provider is a fixed text instead of the result of serialising an object in each program.
 */
export abstract class DynamicResource extends pulumi.CustomResource {
  protected constructor(kind: DynamicKind, name: string, properties: pulumi.Inputs, options: pulumi.CustomResourceOptions) {
    const hidden = {
      // Names have to be settled before the provider runs: it is told neither the resource's name nor its stack.
      owner: `${pulumi.getProject()}/${pulumi.getStack()}/${name}`,
      resourceName: name,
      __provider: providerText(kind),
    };
    super(`pulumi-nodejs:dynamic/baremetal:${kind}`, name, { ...properties, ...hidden }, options);
  }
}
