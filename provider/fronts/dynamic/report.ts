/** Lines for the person who runs Pulumi. A dynamic provider has no other way to them than the standard output. */
import type { Reporter } from "../../resources/lifecycle.ts";

export type Print = (line: string) => void;

/** Hands out one reporter a resource; each line says which resource it is about, and none is repeated. */
export class LinePrinter {
  readonly #print: Print;
  readonly #printed = new Set<string>();
  readonly #lastStatus = new Map<string, string>();

  constructor(print: Print) {
    this.#print = print;
  }

  reporter(kind: string, name: string): Reporter {
    const subject = `pulumi-baremetal: ${kind} ${name}`;
    const once = (line: string): void => {
      if (this.#printed.has(line)) return;
      this.#printed.add(line);
      this.#print(line);
    };
    return {
      status: (line) => {
        if (this.#lastStatus.get(subject) === line) return;
        this.#lastStatus.set(subject, line);
        this.#print(`${subject}: ${line}`);
      },
      info: (line) => once(`${subject}: ${line}`),
      warn: (line) => once(`${subject}: warning: ${line}`),
    };
  }
}
