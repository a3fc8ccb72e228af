/** What a program registers, without an engine. */
import { createRequire } from "node:module";

import * as pulumi from "@pulumi/pulumi";

// The published package is CommonJS, and loads @pulumi/kubernetes where it is needed; its sources run here as modules.
Object.assign(globalThis, { require: createRequire(import.meta.url) });

export type Inputs = Record<string, unknown>;

export interface Registration {
  type: string;
  name: string;
  inputs: Inputs;
}

export class Registrations {
  readonly all: Registration[] = [];

  /** `outputs` are added to the inputs of a resource of that type. */
  static async start(project: string, stack: string, outputs: (type: string) => Inputs = () => ({})): Promise<Registrations> {
    const registrations = new Registrations();
    await pulumi.runtime.setMocks(
      {
        call: () => ({}),
        newResource: ({ type, name, inputs }: { type: string; name: string; inputs: Inputs }) => {
          registrations.all.push({ type, name, inputs });
          return { id: `${name}-id`, state: { ...inputs, ...outputs(type) } };
        },
      },
      project,
      stack,
      false,
    );
    return registrations;
  }

  of(type: string): Inputs[] {
    return this.all.filter((registration) => registration.type === type).map(({ inputs }) => inputs);
  }
}

/** Once everything that the program started has come to an end. */
export async function settled(): Promise<void> {
  await pulumi.runtime.disconnect();
}
