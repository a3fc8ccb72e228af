/** One measured figure: what, how much, and where it should stay. */
export interface Figure {
  name: string;
  value: number;
  unit: string;
  /** What the figure should not exceed, in its unit, on a quiet machine of two cores. */
  limit?: number;
  /** The figure against a floor of the same run: machines are noisy, ratios travel. */
  ratio?: { to: string; value: number };
}

export function table(title: string, figures: readonly Figure[]): string {
  const rows = figures.map(({ name, value, unit, limit, ratio }) => {
    const against = ratio === undefined ? "" : `${ratio.value.toFixed(1)} x ${ratio.to}`;
    const bound = limit === undefined ? "" : `${limit} ${unit}${value > limit ? " EXCEEDED" : ""}`;
    return `| ${name} | ${value.toFixed(0)} ${unit} | ${against} | ${bound} |`;
  });
  return [`## ${title}`, "", "| what | measured | against | limit |", "|---|---|---|---|", ...rows, ""].join("\n");
}
