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
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 && !Number.isInteger(seconds) ? 1 : 0)} s`;
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
  if (Math.abs(seconds) < 1) return "now";
  const [first = "", ...rest] = duration(Math.round(Math.abs(seconds))).split(/(?<=[a-z]) /);
  // Of what is long ago nobody wants to know the seconds.
  const said = parseInt(first, 10) >= 10 ? first : [first, ...rest].join(" ");
  return seconds >= 0 ? `${said} ago` : `in ${said}`;
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

/** A name of code as people read it: `ApproveExpense`, `expense_id`. */
export function words(name: string): string {
  const said = shortType(name).replace(/_/g, " ").replace(/([a-z0-9])([A-Z])/g, (_, one: string, other: string) => `${one} ${other.toLowerCase()}`);
  return said.trim();
}

const GIST_CHARACTERS = 80;

/** What a message says, as people would: `order_id o-1, amount 4200`. */
export function gist(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return brief(value, GIST_CHARACTERS);
  const said = Object.entries(value).map(([name, one]) => `${name} ${typeof one === "string" ? one : (JSON.stringify(one) ?? "")}`);
  return brief(said.join(", "), GIST_CHARACTERS);
}

/** The last part of a type's name: what comes before it says where the type lives. */
export function shortType(type: string): string {
  return type.slice(type.lastIndexOf(".") + 1);
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
