/** What a person reads when a verb fails, and what Pulumi needs to keep a resource that was created only in part. */
import { z } from "zod";

import { explain } from "../../resources/failures.ts";
import type { PartialFailure } from "../../resources/lifecycle.ts";
import { PROVIDER_KEY, propertiesToJson } from "./values.ts";
import type { Properties } from "./values.ts";

/** Errors of the code itself, for which the place in the code is what a bug report needs. */
function isUnforeseen(error: unknown): error is Error {
  return (
    error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError || error instanceof SyntaxError || error instanceof z.ZodError
  );
}

/**
 * The only kind of error that leaves the front. Of another one Pulumi would print the stack, take a numeric `code` for
 * one of gRPC's, and pass on whatever headers and bodies its message holds.
 */
export class VerbError extends Error {
  readonly #subject: string;

  constructor(subject: string, cause: unknown) {
    super(explain(cause));
    this.#subject = subject;
    // Pulumi prints `<error>: <stack>`.
    this.stack = isUnforeseen(cause) ? (cause.stack ?? this.message) : this.message;
  }

  override toString(): string {
    return this.#subject;
  }
}

/** Makes Pulumi save the resource with what is known of it, and go on with an update the next time. */
export class PartialVerbError extends VerbError {
  readonly id: string;
  readonly properties: Properties;
  readonly reasons: readonly string[];

  constructor(subject: string, failure: PartialFailure<unknown>, provider: unknown) {
    super(subject, failure);
    this.id = failure.id;
    // Without the provider among them Pulumi could neither refresh nor delete what it has just saved.
    this.properties = { ...propertiesToJson(failure.state), [PROVIDER_KEY]: provider };
    this.reasons = failure.reasons;
  }
}
