/** Durations as people write them: `20s`, `5m`, `1h30m`. Whole seconds, as Cluster API's newer fields hold them. */

const PATTERN = /^(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,7})s)?$/;

export const DURATION_HINT = 'a duration such as "20s", "5m" or "1h30m"';

/** Seconds, or undefined where the text is no duration. */
export function parseDuration(text: string): number | undefined {
  const match = text === "" ? null : PATTERN.exec(text);
  if (match === null) return undefined;
  const [, hours, minutes, seconds] = match;
  return Number(hours ?? 0) * 3600 + Number(minutes ?? 0) * 60 + Number(seconds ?? 0);
}

/** The shortest way to write it: 5400 is `1h30m`. */
export function formatDuration(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 3600), "h"],
    [Math.floor((seconds % 3600) / 60), "m"],
    [Math.round(seconds % 60), "s"],
  ] as const;
  return parts.map(([count, unit]) => (count === 0 ? "" : `${count}${unit}`)).join("") || "0s";
}

/** The given text where it means the same, else the shortest. */
export function durationText(given: string, seconds: number | undefined): string {
  return seconds === undefined || seconds === parseDuration(given) ? given : formatDuration(seconds);
}
