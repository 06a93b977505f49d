// Live changes: server-sent events, read with fetch so that the token goes along. The stream is resumed where it ended.

import { useEffect, useRef, useState } from "preact/hooks";
import { address, headers, type Query } from "./api";

export interface LiveEvent {
  type: string;
  data: unknown;
}

export type LiveState = "connecting" | "live" | "away" | "refused";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
// The server says something at least every 15 seconds; one that is silent for longer is gone.
const SILENCE_MS = 40_000;
const LONGEST_EVENT = 4_000_000;

/** Takes the text of a stream in pieces, and gives whole events. */
export class Reader {
  private rest = "";
  lastId = "";

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

/** Listen until `signal` says to stop. */
async function listen(where: string, query: Query, onEvent: (event: LiveEvent) => void, onState: (state: LiveState) => void, signal: AbortSignal) {
  let wait = FIRST_WAIT_MS;
  const reader = new Reader();
  while (!signal.aborted) {
    const silence = new AbortController();
    const stop = () => silence.abort();
    signal.addEventListener("abort", stop);
    let timer = window.setTimeout(stop, SILENCE_MS);
    try {
      const resumed: Record<string, string> = reader.lastId ? { "last-event-id": reader.lastId } : {};
      const response = await fetch(address(where, query), { headers: { ...headers(), ...resumed }, signal: silence.signal, cache: "no-store" });
      if (response.status >= 400 && response.status < 500 && response.status !== 429) return onState("refused");
      if (response.ok && response.body) {
        onState("live");
        wait = FIRST_WAIT_MS;
        const text = response.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let part = await text.read(); !part.done; part = await text.read()) {
          clearTimeout(timer);
          timer = window.setTimeout(stop, SILENCE_MS);
          reader.take(part.value).forEach(onEvent);
        }
      }
    } catch {
      // Away, or asked to stop: either way the loop knows what to do.
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
    if (signal.aborted) return;
    onState("away");
    await new Promise((over) => setTimeout(over, wait * (0.5 + Math.random() / 2)));
    wait = Math.min(wait * 2, LONGEST_WAIT_MS);
  }
}

export function useLive(where: string | undefined, query: Query, onEvent: (event: LiveEvent) => void): LiveState {
  const [state, set] = useState<LiveState>("connecting");
  const latest = useRef(onEvent);
  latest.current = onEvent;
  const asked = JSON.stringify(query);
  useEffect(() => {
    if (where === undefined) return;
    const abort = new AbortController();
    void listen(where, JSON.parse(asked) as Query, (event) => latest.current(event), set, abort.signal);
    return () => abort.abort();
  }, [where, asked]);
  return state;
}
