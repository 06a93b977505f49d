// Times, durations and amounts as people read them.

const UNITS: [number, string][] = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
];

/** 3 d 4 h · 12 min 5 s · 3.2 s · 12 ms */
export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0) return `−${duration(-seconds)}`;
  if (seconds < 0.000_5) return "0 ms";
  if (seconds < 1) return `${(seconds * 1_000).toFixed(seconds < 0.01 ? 1 : 0)} ms`;
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  let left = Math.round(seconds);
  const said: string[] = [];
  for (const [size, unit] of UNITS) {
    const count = Math.floor(left / size);
    if (count && said.length < 2) said.push(`${count} ${unit}`);
    left -= count * size;
  }
  return said.join(" ");
}

export function ago(time: string | null, now = Date.now()): string {
  if (!time) return "–";
  const seconds = (now - Date.parse(time)) / 1_000;
  return seconds >= 0 ? `${duration(seconds)} ago` : `in ${duration(-seconds)}`;
}

export function clock(time: string | null): string {
  if (!time) return "–";
  const date = new Date(time);
  const pad = (value: number, digits = 2) => String(value).padStart(digits, "0");
  const day = `${date.getFullYear()}-${pad(date.getMonth() + 1)}-${pad(date.getDate())}`;
  return `${day} ${pad(date.getHours())}:${pad(date.getMinutes())}:${pad(date.getSeconds())}.${pad(date.getMilliseconds(), 3)}`;
}

export function amount(value: number | null | undefined): string {
  return value === null || value === undefined ? "–" : value.toLocaleString("en");
}

export function percent(part: number | null | undefined): string {
  return part === null || part === undefined ? "–" : `${(part * 100).toFixed(part > 0 && part < 0.1 ? 1 : 0)} %`;
}

export function several(count: number, one: string, many = `${one}s`): string {
  return `${amount(count)} ${count === 1 ? one : many}`;
}

/** JSON as it is read; a text that is no JSON stays as it is. */
export function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2) ?? "";
}

/** The first characters of a value, in one line. */
export function brief(value: unknown, most = 160): string {
  const text = typeof value === "string" ? value : JSON.stringify(value) ?? "";
  return text.length > most ? `${text.slice(0, most)}…` : text;
}
