// Live changes: server-sent events, read with fetch so that the token goes along. The stream is resumed where it ended.

import { useEffect, useRef, useState } from "preact/hooks";
import { address, headers, type Query } from "./api";

interface LiveEvent {
  type: string;
  data: unknown;
}

export type LiveState = "connecting" | "live" | "away" | "refused";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
// The server says something at least every 15 seconds; one that is silent for longer is gone.
const SILENCE_MS = 40_000;
const LONGEST_EVENT = 4_000_000;
// A browser has six connections to a server for all of its tabs: those that nobody looks at give theirs back.
const HIDDEN_MS = 5_000;

const waiting = new Set<() => void>();

/** Call something whenever a stream is open again: what happened meanwhile, it could not tell. */
export function whenBack(call: () => void): () => void {
  waiting.add(call);
  return () => waiting.delete(call);
}

/** Resolves when somebody looks at the page, or it is not to be waited for any more. */
function looked(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
    look();
  });
}

/** Calls `stop` when nobody has looked at the page for a while; returns how to forget about it. */
function whenHidden(stop: () => void): () => void {
  let timer = 0;
  const changed = () => {
    clearTimeout(timer);
    if (document.hidden) timer = window.setTimeout(stop, HIDDEN_MS);
  };
  document.addEventListener("visibilitychange", changed);
  return () => {
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", changed);
  };
}

/** Takes the text of a stream in pieces, and gives whole events. */
class Reader {
  private rest = "";
  lastId = "";

  /** Another stream begins: what the one before has left unfinished is told by none. */
  begin(): void {
    this.rest = "";
  }

  take(piece: string): LiveEvent[] {
    const blocks = (this.rest + piece).replace(/\r\n?/g, "\n").split("\n\n");
    this.rest = blocks.pop() ?? "";
    if (this.rest.length > LONGEST_EVENT) throw new Error("an event without an end");
    return blocks.map((block) => this.event(block)).filter((one) => one !== undefined);
  }

  private event(block: string): LiveEvent | undefined {
    let type = "message";
    const data: string[] = [];
    for (const line of block.split("\n")) {
      const cut = line.indexOf(":");
      const name = cut < 0 ? line : line.slice(0, cut);
      const value = cut < 0 ? "" : line.slice(cut + 1).replace(/^ /, "");
      if (name === "event") type = value;
      else if (name === "data") data.push(value);
      else if (name === "id") this.lastId = value;
    }
    return data.length ? { type, data: JSON.parse(data.join("\n")) } : undefined;
  }
}

interface Listening {
  where: string;
  query: Query;
  onEvent: (event: LiveEvent) => void;
  onState: (state: LiveState) => void;
  signal: AbortSignal;
}

/** Listen until `signal` says to stop. */
async function listen({ where, query, onEvent, onState, signal }: Listening): Promise<void> {
  let wait = FIRST_WAIT_MS;
  let lost = false;
  const reader = new Reader();
  const refresh = () => {
    if (lost) for (const call of [...waiting]) call();
    lost = false;
  };
  const open = () => {
    onState("live");
    wait = FIRST_WAIT_MS;
    // Now and no sooner: what happens from here on is told.
    refresh();
  };
  while (!signal.aborted) {
    await looked(signal);
    const end = await once(where, query, reader, open, onEvent, signal);
    if (signal.aborted) return;
    if (end === "refused") {
      refresh();
      return onState("refused");
    }
    lost = true;
    onState("away");
    if (!document.hidden) await new Promise((over) => setTimeout(over, wait * (0.5 + Math.random() / 2)));
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
}

/** Take one stream to its end, and tell whether another one may be asked for. */
async function once(
  where: string,
  query: Query,
  reader: Reader,
  onOpen: () => void,
  onEvent: (event: LiveEvent) => void,
  signal: AbortSignal,
): Promise<"over" | "refused"> {
  const ended = new AbortController();
  const stop = () => ended.abort();
  signal.addEventListener("abort", stop);
  const forget = whenHidden(stop);
  let timer = window.setTimeout(stop, SILENCE_MS);
  reader.begin();
  try {
    const resumed: Record<string, string> = reader.lastId ? { "last-event-id": reader.lastId } : {};
    const response = await fetch(address(where, query), { headers: { ...headers(), ...resumed }, signal: ended.signal, cache: "no-store" });
    if (response.status >= 400 && response.status < 500 && response.status !== 429) return "refused";
    if (!response.ok || !response.body) return "over";
    onOpen();
    const text = response.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let part = await text.read(); !part.done; part = await text.read()) {
      clearTimeout(timer);
      timer = window.setTimeout(stop, SILENCE_MS);
      reader.take(part.value).forEach(onEvent);
    }
  } catch {
    // Away, or asked to stop: either way the loop knows what to do.
  } finally {
    clearTimeout(timer);
    forget();
    signal.removeEventListener("abort", stop);
  }
  return "over";
}

export function useLive(where: string | undefined, query: Query, onEvent: (event: LiveEvent) => void): LiveState {
  const [state, set] = useState<LiveState>("connecting");
  const latest = useRef(onEvent);
  latest.current = onEvent;
  const asked = JSON.stringify(query);
  useEffect(() => {
    if (where === undefined) return;
    const abort = new AbortController();
    void listen({ where, query: JSON.parse(asked) as Query, onEvent: (event) => latest.current(event), onState: set, signal: abort.signal });
    return () => abort.abort();
  }, [where, asked]);
  return state;
}
