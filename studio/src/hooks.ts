// How views load what they show, and keep it true.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, Problem } from "./api";
import type { Stats } from "./documents";
import { useLive, whenBack } from "./live";

export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | undefined;
  loading: boolean;
  reload: () => void;
  /** Load it again, unless that goes on already: a slow answer is worth waiting for. */
  poll: () => void;
}

export const RETRY_MS = 2_000;

/** Load something, and something else when `keys` change; once more when the server is back. Where `fresh` changes it is loaded
 * again, and what was there stays visible meanwhile. A server that does not answer is asked again. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, keys: unknown[], fresh: unknown = 0): Loaded<T> {
  const [found, set] = useState<{ data?: T; problem?: Problem; of?: string }>({});
  const [turn, again] = useState(0);
  const [loading, busy] = useState(true);
  const of = JSON.stringify(keys);
  useEffect(() => {
    const abort = new AbortController();
    let timer = 0;
    busy(true);
    load(abort.signal)
      .then((data) => set({ data, of }))
      .catch((error: unknown) => {
        if (abort.signal.aborted) return;
        const problem = problemOf(error);
        // What belongs to another question must not stand beside this problem.
        set((before) => (before.of === of && problem.status === 0 ? { ...before, problem } : { problem, of }));
        if (passes(problem)) timer = window.setTimeout(() => again((n) => n + 1), RETRY_MS);
      })
      .finally(() => {
        if (!abort.signal.aborted) busy(false);
      });
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [of, turn, fresh]);
  const reload = useCallback(() => again((n) => n + 1), []);
  useEffect(() => whenBack(reload), [reload]);
  const ours = found.of === of;
  const poll = () => {
    if (!loading) reload();
  };
  return { data: ours ? found.data : undefined, problem: ours ? found.problem : undefined, loading, reload, poll };
}

/** Whether a question that failed so is worth asking again. */
export function passes(problem: Problem): boolean {
  return problem.status === 0 || problem.status === 503;
}

export function problemOf(error: unknown): Problem {
  return error instanceof Problem ? error : new Problem(-1, "the page failed", error instanceof Error ? error.message : String(error));
}

/** Call something again and again while the page is looked at. */
export function useEvery(seconds: number, call: () => void): void {
  const latest = useRef(call);
  latest.current = call;
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) latest.current();
    }, seconds * 1_000);
    return () => clearInterval(timer);
  }, [seconds]);
}

const TICK_MS = 5_000;
const ticking = new Set<() => void>();
setInterval(() => {
  if (!document.hidden) for (const draw of ticking) draw();
}, TICK_MS);

/** Draw something again every few seconds: all that tells how long ago something was ticks together. */
export function useTick(): void {
  const [, draw] = useState(0);
  useEffect(() => {
    const tick = () => draw((n) => n + 1);
    ticking.add(tick);
    return () => ticking.delete(tick);
  }, []);
}

export interface Changes {
  changed: boolean;
  /** The figures as they were when the list was asked for. */
  figures: Loaded<Stats>;
  /** What there is now was looked at. */
  seen: () => void;
}

/** Whether a part of the app's figures has changed since it was looked at. */
export function useChanges(part: (stats: Stats) => unknown): Changes {
  const figures = useLoad((signal) => ask<Stats>("stats", { signal }), []);
  const [now, set] = useState<string>();
  const [before, look] = useState<string>();
  const take = (stats: Stats): string => {
    const found = JSON.stringify(part(stats));
    look((known) => known ?? found);
    return found;
  };
  useLive("live", {}, (event) => {
    if (event.type === "stats") set(take(event.data as Stats));
  });
  // What is told first may be of a later moment: what happened in between would be known to nobody.
  useEffect(() => {
    if (figures.data) take(figures.data);
  }, [figures.data]);
  // Lists begin anew then, and the first figures that come belong to them.
  useEffect(() => whenBack(() => look(undefined)), []);
  return { changed: before !== undefined && now !== undefined && now !== before, figures, seen: () => look(now) };
}

/** A value as it was when it had not changed for a while. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

/** What stands in the address, and what somebody makes of it: the address follows when that pauses. */
export function useAmended<T>(found: T, write: (value: T) => void, pauseMs: number): [T, (value: T) => void] {
  const [value, set] = useState(found);
  const latest = useRef(write);
  latest.current = write;
  // What was written here is no news when it comes back: somebody may have gone on meanwhile.
  const written = useRef(found);
  useEffect(() => {
    if (found !== written.current) set(found);
    written.current = found;
  }, [found]);
  useEffect(() => {
    if (value === found) return;
    const timer = setTimeout(() => {
      written.current = value;
      latest.current(value);
    }, pauseMs);
    return () => clearTimeout(timer);
  }, [value]);
  return [value, set];
}

export interface Doing {
  busy: boolean;
  problem: Problem | undefined;
  run: (work: () => Promise<unknown>) => Promise<boolean>;
}

/** Do something that changes the world: once at a time, and its problem is shown. */
export function useDoing(): Doing {
  const [state, set] = useState<{ busy: boolean; problem?: Problem }>({ busy: false });
  const running = useRef(false);
  const run = useCallback(async (work: () => Promise<unknown>) => {
    if (running.current) return false;
    running.current = true;
    set({ busy: true });
    try {
      await work();
      set({ busy: false });
      return true;
    } catch (error) {
      set({ busy: false, problem: problemOf(error) });
      return false;
    } finally {
      running.current = false;
    }
  }, []);
  return { busy: state.busy, problem: state.problem, run };
}
