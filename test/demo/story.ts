/** Tells a run as numbered steps: a headline, what really happened, and what was made sure of. */

export class StepFailure extends Error {
  override readonly name = "StepFailure";
  readonly step: number;
  readonly title: string;

  constructor(step: number, title: string, cause: unknown) {
    super(`step ${step} (${title}): ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
    this.step = step;
    this.title = title;
  }
}

export class Story {
  readonly #began = performance.now();
  readonly #print: (text: string) => void;
  #step = 0;

  constructor(print: (text: string) => void) {
    this.#print = print;
  }

  #elapsed(): string {
    const seconds = Math.round((performance.now() - this.#began) / 1000);
    return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
  }

  /** Runs one step; whatever it throws comes out as `StepFailure`. */
  async step<T>(title: string, act: () => Promise<T>): Promise<T> {
    this.#step += 1;
    this.#print(`\n━━ ${this.#step}. ${title}  [${this.#elapsed()}]\n`);
    try {
      return await act();
    } catch (error) {
      throw new StepFailure(this.#step, title, error);
    }
  }

  /** A line of what is going on. */
  tell(line: string): void {
    this.#print(`   ${line}\n`);
  }

  /** Something that was looked up on the real thing and found to be so. */
  sure(line: string): void {
    this.#print(`   ✓ ${line}\n`);
  }

  /** Output of a real command, set off from the story. */
  output(text: string): void {
    for (const line of text.trimEnd().split("\n")) this.#print(`   │ ${line}\n`);
  }

  end(): void {
    this.#print(`\n${this.#step} steps in ${this.#elapsed()}\n`);
  }
}
