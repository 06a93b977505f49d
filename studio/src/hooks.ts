// How views load what they show, and keep it true.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./api";

export interface Loaded<T> {
  data: T | undefined;
  problem: Problem | undefined;
  loading: boolean;
  reload: () => void;
}

const RETRY_MS = 2_000;

/** Load something, again when `keys` change. What was there stays visible meanwhile; a server that does not answer is asked again. */
export function useLoad<T>(load: (signal: AbortSignal) => Promise<T>, keys: unknown[]): Loaded<T> {
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
        if (problem.status === 0 || problem.status === 503) timer = window.setTimeout(() => again((n) => n + 1), RETRY_MS);
      })
      .finally(() => {
        if (!abort.signal.aborted) busy(false);
      });
    return () => {
      abort.abort();
      clearTimeout(timer);
    };
  }, [of, turn]);
  const reload = useCallback(() => again((n) => n + 1), []);
  const ours = found.of === of;
  return { data: ours ? found.data : undefined, problem: ours ? found.problem : undefined, loading, reload };
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

/** A value as it was when it had not changed for a while. */
export function useSettled<T>(value: T, milliseconds: number): T {
  const [settled, set] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => set(value), milliseconds);
    return () => clearTimeout(timer);
  }, [value, milliseconds]);
  return settled;
}

export interface Doing {
  busy: boolean;
  problem: Problem | undefined;
  run: (work: () => Promise<unknown>) => Promise<boolean>;
  clear: () => void;
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
  return { busy: state.busy, problem: state.problem, run, clear: () => set({ busy: false }) };
}
