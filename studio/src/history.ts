// The history of one instance, in pieces as it is looked at. A stream may be as long as it likes: only what is in sight, and
// a little around it, is asked for, and what was asked for once is kept.

import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, path, type Page, type Problem } from "./api";
import type { EventDocument, MomentDocument, MomentPage, StateShown } from "./documents";
import { problemOf } from "./hooks";

const PAGE_EVENTS = 200;
const PAGE_MOMENTS = 200;
// So close to the edge of what is there, the next piece is asked for.
const AHEAD = 40;
// More moments than that are not kept: whoever looks at them again asks again.
const MOMENTS_KEPT = 20_000;

export interface Stream {
  event: (version: number) => EventDocument | undefined;
  need: (first: number, last: number) => void;
  problem: Problem | undefined;
}

/** The events of an instance by their versions, which are 1 to `count`. */
export function useStream(workflow: string, id: string, count: number): Stream {
  const events = useRef(new Map<number, EventDocument>());
  const asked = useRef(new Map<number, number>());
  const [, drawn] = useState(0);
  const [problem, fail] = useState<Problem>();
  const need = useCallback(
    (first: number, last: number) => {
      for (let page = Math.floor((Math.max(1, first) - 1) / PAGE_EVENTS); page * PAGE_EVENTS < Math.min(last, count); page += 1) {
        const until = Math.min(count, (page + 1) * PAGE_EVENTS);
        if ((asked.current.get(page) ?? 0) >= until) continue;
        asked.current.set(page, until);
        ask<Page<EventDocument>>(`streams/${path(workflow, id)}`, { query: { after: page * PAGE_EVENTS, limit: PAGE_EVENTS } })
          .then((found) => {
            for (const event of found.items) events.current.set(event.version, event);
            fail(undefined);
            drawn((n) => n + 1);
          })
          .catch((error: unknown) => {
            asked.current.delete(page);
            fail(problemOf(error));
          });
      }
    },
    [workflow, id, count],
  );
  return { event: (version) => events.current.get(version), need, problem };
}

export interface Told extends MomentDocument {
  before: StateShown | null;
}

export interface Moments {
  at: (version: number) => Told | undefined;
  stopped: { version: number; problem: string } | null;
  problem: Problem | undefined;
}

/** The moment at a version, with what lies around it: the next ones are there before they are asked for. */
export function useMoments(workflow: string, id: string, version: number, count: number): Moments {
  const known = useRef(new Map<number, Told>());
  const busy = useRef(new Set<number>());
  const [, drawn] = useState(0);
  const [failed, fail] = useState<Problem>();
  const [stopped, stop] = useState<MomentPage["stopped"]>(null);
  const load = (from: number) => {
    if (busy.current.has(from)) return;
    busy.current.add(from);
    if (known.current.size > MOMENTS_KEPT) known.current.clear();
    ask<MomentPage>(`moments/${path(workflow, id)}`, { query: { after: from, limit: PAGE_MOMENTS } })
      .then((page) => {
        let before = page.before;
        for (const moment of page.items) {
          const told = { ...moment, before };
          for (let each = moment.version; each <= moment.last; each += 1) known.current.set(each, told);
          before = moment.after;
        }
        if (page.stopped) stop(page.stopped);
        fail(undefined);
        drawn((n) => n + 1);
      })
      .catch((error: unknown) => fail(problemOf(error)))
      .finally(() => busy.current.delete(from));
  };
  useEffect(() => {
    const has = (one: number) => one < 1 || one > count || known.current.has(one);
    const beyond = stopped !== null && version >= stopped.version;
    if (beyond) return;
    if (!has(version)) load(Math.max(0, version - AHEAD - 1));
    else if (!has(version + AHEAD)) load(nextMissing(known.current, version) - 1);
    else if (!has(version - AHEAD)) load(Math.max(0, version - PAGE_MOMENTS));
  }, [version, count, stopped]);
  return { at: (one) => known.current.get(one), stopped, problem: failed };
}

function nextMissing(known: Map<number, Told>, from: number): number {
  let version = from;
  while (known.has(version)) version += 1;
  return version;
}
