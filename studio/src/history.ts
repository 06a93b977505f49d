// The history of one instance, in pieces as it is looked at. A stream may be as long as it likes: only what is in sight, and
// a little around it, is asked for, and what was asked for once is kept.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, path, type Page, type Problem } from "./api";
import type { EventInfo, MomentDocument, MomentPage, StateInfo, StateShown } from "./documents";
import { passes, problemOf, RETRY_MS, useSettled } from "./hooks";
import { whenBack } from "./live";

const PAGE_EVENTS = 200;
const PAGE_MOMENTS = 200;
// So close to the edge of what is there, the next piece is asked for.
const AHEAD = 40;
const PAUSE_MS = 60;
// More moments than that are not kept: whoever looks at them again asks again.
const MOMENTS_KEPT = 20_000;

export interface Stream {
  event: (position: number) => EventInfo | undefined;
  need: (first: number, last: number) => void;
  problem: Problem | undefined;
}

/** Counts the turns in which something is asked for: again when the server is back, and a while after it did not answer. */
function useTurns(problem: Problem | undefined): number {
  const [turn, again] = useState(0);
  useEffect(() => whenBack(() => again((n) => n + 1)), []);
  useEffect(() => {
    if (!problem || !passes(problem)) return;
    const timer = setTimeout(() => again((n) => n + 1), RETRY_MS);
    return () => clearTimeout(timer);
  }, [problem]);
  return turn;
}

/** The events of an instance by their positions, which are 1 to `count`. */
export function useStream(workflow: string, id: string, count: number): Stream {
  const events = useRef(new Map<number, EventInfo>());
  const asked = useRef(new Map<number, number>());
  const [, drawn] = useState(0);
  const [problem, fail] = useState<Problem>();
  const turn = useTurns(problem);
  const need = useCallback(
    (first: number, last: number) => {
      for (let page = Math.floor((Math.max(1, first) - 1) / PAGE_EVENTS); page * PAGE_EVENTS < Math.min(last, count); page += 1) {
        const until = Math.min(count, (page + 1) * PAGE_EVENTS);
        if ((asked.current.get(page) ?? 0) >= until) continue;
        asked.current.set(page, until);
        const read = async () => {
          // Large messages make an answer short: the rest is asked for behind it.
          for (let after: number | null = page * PAGE_EVENTS; after !== null && after < until; ) {
            const found: Page<EventInfo> = await ask(`streams/${path(workflow, id)}`, { query: { after, limit: until - after } });
            for (const event of found.items) events.current.set(event.position, event);
            after = found.next;
            drawn((n) => n + 1);
          }
          fail(undefined);
        };
        read()
          .catch((error: unknown) => {
            asked.current.delete(page);
            fail(problemOf(error));
          });
      }
    },
    // Whoever needs something asks again in another turn.
    [workflow, id, count, turn],
  );
  return { event: (position) => events.current.get(position), need, problem };
}

export interface Told extends MomentDocument {
  before: StateShown | null;
}

interface Moments {
  at: (position: number) => Told | undefined;
  /** The state at the position that is looked at, where nothing more of it is known yet. */
  early: StateShown | null;
  stopped: { position: number; problem: string } | null;
  problem: Problem | undefined;
}

/** The moment at a position, with what lies around it: the next ones are there before they are asked for. */
export function useMoments(workflow: string, id: string, position: number, count: number): Moments {
  const known = useRef(new Map<number, Told>());
  const busy = useRef(new Set<number>());
  const [early, show] = useState<{ position: number; shown: StateShown | null }>();
  const [, drawn] = useState(0);
  const [failed, fail] = useState<Problem>();
  const [stopped, stop] = useState<MomentPage["stopped"]>(null);
  const turn = useTurns(failed);
  // Whoever scrubs over what is not there yet does not want all of it.
  const settled = useSettled(position, PAUSE_MS);
  const has = (one: number) => one < 1 || one > count || known.current.has(one);
  const load = async (from: number, signal: AbortSignal | null = null) => {
    if (busy.current.has(from)) return;
    busy.current.add(from);
    try {
      keep(known.current, await ask<MomentPage>(`moments/${path(workflow, id)}`, { query: { after: from, limit: PAGE_MOMENTS }, ...(signal ? { signal } : {}) }), stop);
      fail(undefined);
      drawn((n) => n + 1);
    } catch (error) {
      if (!signal?.aborted) fail(problemOf(error));
    } finally {
      busy.current.delete(from);
    }
  };
  const beyond = stopped !== null && position >= stopped.position;
  const jumped = !beyond && !has(position) && settled === position ? position : 0;
  useEffect(() => {
    if (!jumped) return;
    const abort = new AbortController();
    const jump = async () => {
      // In a long stream a state is there long before what changed in it; and if there is none, the moments say why.
      const { type, state } = await ask<StateInfo>(`states/${path(workflow, id)}`, { query: { at: jumped }, signal: abort.signal });
      show({ position: jumped, shown: type === null ? null : { type, state } });
    };
    void jump()
      .catch(() => undefined)
      .then(() => (abort.signal.aborted ? undefined : load(Math.max(0, jumped - AHEAD - 1), abort.signal)));
    return () => abort.abort();
  }, [workflow, id, jumped, turn]);
  useEffect(() => {
    if (beyond || !has(position)) return;
    if (!has(position + AHEAD)) void load(missing(known.current, position, 1) - 1);
    else if (!has(position - AHEAD)) void load(Math.max(0, missing(known.current, position, -1) - PAGE_MOMENTS));
  }, [position, count, beyond, turn, has(position)]);
  return { at: (one) => known.current.get(one), early: early?.position === position ? early.shown : null, stopped, problem: failed };
}

function keep(known: Map<number, Told>, page: MomentPage, stop: (at: MomentPage["stopped"]) => void): void {
  // A reset changes what was told of the moments before it.
  const reset = page.items.some((moment) => !known.has(moment.position) && moment.events.some((event) => event.event === "Reset"));
  if (reset || known.size > MOMENTS_KEPT) known.clear();
  let before = page.before;
  for (const moment of page.items) {
    const told = { ...moment, before };
    for (let each = moment.position; each <= moment.last; each += 1) known.set(each, told);
    before = moment.after;
  }
  if (page.stopped) stop(page.stopped);
}

/** The first position in a direction that is not known: the same wherever somebody stands, so that it is asked for once. */
function missing(known: Map<number, Told>, from: number, step: 1 | -1): number {
  let position = from;
  while (known.has(position)) position += step;
  return position;
}
