// Questions to the server. Addresses are relative to the page, so that it may be mounted anywhere.

import { settings } from "./settings";

export type Query = Record<string, string | number | boolean | undefined | null | string[]>;

export interface Asked {
  method?: "GET" | "POST" | "DELETE";
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
}

/** What the server says went wrong (RFC 9457), or that it does not answer: then the status is 0. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly title: string,
    readonly detail: string,
    readonly reason = "",
  ) {
    super(detail);
  }
}

/** The event that the server does not know who asks. */
export const UNKNOWN = "unknown";

export interface Page<T, Cursor = number> {
  items: T[];
  next: Cursor | null;
}

/** An id may hold slashes, and stands in one piece of an address here. */
export function path(...parts: (string | number)[]): string {
  return parts.map((part) => encodeURIComponent(part)).join("/");
}

export function address(where: string, query: Query = {}): URL {
  const url = new URL(`api/${where}`, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) for (const one of value) url.searchParams.append(name, one);
    else if (value !== undefined && value !== null && value !== "" && value !== false) url.searchParams.set(name, String(value));
  }
  return url;
}

export function headers(): Record<string, string> {
  const given: Record<string, string> = {};
  if (settings.token) given["authorization"] = `Bearer ${settings.token}`;
  if (settings.actor) given["x-mainspring-actor"] = settings.actor;
  return given;
}

export async function answered(where: string, asked: Asked = {}): Promise<Response> {
  const given = headers();
  if (asked.body !== undefined) given["content-type"] = "application/json";
  let response: Response;
  try {
    response = await fetch(address(where, asked.query), {
      method: asked.method ?? "GET",
      headers: given,
      body: asked.body === undefined ? null : JSON.stringify(asked.body),
      signal: asked.signal ?? null,
      cache: "no-store",
    });
  } catch (error) {
    if (asked.signal?.aborted) throw error;
    throw new Problem(0, "no answer", "The server does not answer. It may be restarting; this page tries again.");
  }
  if (response.status === 401) dispatchEvent(new Event(UNKNOWN));
  if (!response.ok) throw await problemOf(response);
  return response;
}

export async function ask<T>(where: string, asked: Asked = {}): Promise<T> {
  return (await (await answered(where, asked)).json()) as T;
}

export function send<T>(where: string, body?: unknown, query?: Query): Promise<T> {
  return ask<T>(where, { method: "POST", body: body ?? {}, ...(query ? { query } : {}) });
}

async function problemOf(response: Response): Promise<Problem> {
  const plain = new Problem(response.status, response.statusText || `status ${response.status}`, "The server said no more.");
  try {
    const told = (await response.json()) as { title?: unknown; detail?: unknown; reason?: unknown };
    return new Problem(response.status, String(told.title ?? plain.title), String(told.detail ?? plain.detail), String(told.reason ?? ""));
  } catch {
    return plain;
  }
}
