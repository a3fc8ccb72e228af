/** Seconds of a Go duration as Cluster API's older version stores it: `5m0s`. */
export function goSeconds(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const units: Record<string, number> = { h: 3600, m: 60, s: 1, ms: 0.001 };
  let seconds = 0;
  for (const [, count, unit] of text.matchAll(/([\d.]+)(ms|h|m|s)/g)) seconds += Number(count) * (units[unit ?? "s"] ?? 0);
  return seconds;
}
