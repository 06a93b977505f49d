// A list of which only the rows that are looked at are in the page, however many there are.

import type { ComponentChildren, JSX } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { ask, type Page, type Problem, type Query } from "../api";
import { passes, problemOf, RETRY_MS } from "../hooks";
import { whenBack } from "../live";
import { returnedFrom } from "../route";

const ROW_PIXELS = 40;
const ROWS_AROUND = 12;
// Browsers draw nothing that lies further down; longer lists are scrolled through in larger steps.
const MOST_PIXELS = 8_000_000;

interface Rows {
  count: number;
  label: string;
  head: string[];
  row: (index: number) => ComponentChildren;
  /** Called with the rows that are looked at, whenever they change. */
  onSeen?: (first: number, last: number) => void;
  /** The row that is to be in sight. */
  current?: number;
  /** By which the list is known again: who goes back to it finds the place where they were. */
  known?: string;
}

const LISTS_KEPT = 50;
const places = new Map<string, number>();
const counts = new Map<string, number>();

function remember(where: Map<string, number>, known: string, value: number): void {
  if (where.size >= LISTS_KEPT) where.clear();
  where.set(known, value);
}

/** Rows of one height in a box that scrolls. The keys j and k go from row to row. */
export function VirtualRows({ count, label, head, row, onSeen, current, known }: Rows): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const seen = useSeen(box, count, current ?? 0);
  const { first, last, measure } = seen;
  useEffect(() => onSeen?.(first, last), [first, last, onSeen]);
  // Before it is drawn, and first of all: a list that begins in its middle does not show, or ask for, its beginning.
  useLayoutEffect(() => {
    const element = box.current;
    if (current === undefined || !element) return;
    const scale = scaleOf(count);
    const top = current * ROW_PIXELS - element.scrollTop * scale;
    if (top < 0 || top + 2 * ROW_PIXELS > element.clientHeight) {
      element.scrollTop = Math.max(0, (current * ROW_PIXELS - element.clientHeight / 2) / scale);
      measure();
    }
  }, [current, measure]);
  useEffect(measure, [count, measure]);
  const sought = useRef(known === undefined ? undefined : returnedFrom()?.split("?")[0]);
  useLayoutEffect(() => {
    if (known === undefined || sought.current === undefined || !box.current) return;
    box.current.scrollTop = places.get(known) ?? 0;
    measure();
  }, []);
  useEffect(() => {
    // Who has begun to do something else is left alone.
    if (document.activeElement !== document.body && document.activeElement?.id !== "content") sought.current = undefined;
    if (sought.current === undefined) return;
    const links = [...(box.current?.querySelectorAll<HTMLAnchorElement>("a[data-row]") ?? [])];
    const found = links.find((one) => one.hash.split("?")[0] === sought.current);
    if (found) sought.current = undefined;
    found?.focus({ preventScroll: true });
  }, [first, last]);
  const scrolled = () => {
    if (known !== undefined && box.current) remember(places, known, box.current.scrollTop);
    measure();
  };
  const rows: ComponentChildren[] = [];
  for (let index = first; index < last; index += 1) {
    rows.push(
      <div key={index} class={index === current ? "row current" : "row"} role="row" aria-rowindex={index + 2} data-index={index}>
        {row(index)}
      </div>,
    );
  }
  return (
    <div class="rows" role="table" aria-label={label} aria-rowcount={count + 1}>
      <div role="rowgroup">
        <div class="row head" role="row" aria-rowindex={1}>
          {head.map((title) => (
            <span key={title} role="columnheader">
              {title}
            </span>
          ))}
        </div>
      </div>
      <div class="rows-box" role="presentation" ref={box} onScroll={scrolled} onKeyDown={(event) => walk(event, box.current)} tabIndex={-1}>
        <div class="rows-all" role="rowgroup" style={{ height: `${(count * ROW_PIXELS) / scaleOf(count)}px` }}>
          <div class="rows-seen" role="presentation" style={{ transform: `translateY(${seen.top}px)` }}>
            {rows}
          </div>
        </div>
      </div>
    </div>
  );
}

/** How many pixels of rows a pixel of the scroll bar stands for. */
function scaleOf(count: number): number {
  return Math.max(1, (count * ROW_PIXELS) / MOST_PIXELS);
}

interface Seen {
  first: number;
  last: number;
  /** Where the first of them lies in the box. */
  top: number;
}

function useSeen(box: { current: HTMLDivElement | null }, count: number, around: number): Seen & { measure: () => void } {
  const [seen, see] = useState<Seen>(() => {
    const first = Math.max(0, around - ROWS_AROUND);
    return { first, last: Math.min(count, around + ROWS_AROUND), top: first * ROW_PIXELS };
  });
  const measure = useCallback(() => {
    const element = box.current;
    if (!element) return;
    const from = element.scrollTop * scaleOf(count);
    const first = Math.min(count, Math.max(0, Math.floor(from / ROW_PIXELS) - ROWS_AROUND));
    const last = Math.min(count, Math.ceil((from + element.clientHeight) / ROW_PIXELS) + ROWS_AROUND);
    const top = first * ROW_PIXELS - from + element.scrollTop;
    see((before) => (before.first === first && before.last === last && before.top === top ? before : { first, last, top }));
  }, [count]);
  useEffect(() => {
    const watcher = new ResizeObserver(measure);
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, [measure]);
  return { ...seen, first: Math.min(seen.first, count), last: Math.min(seen.last, count), measure };
}

function walk(event: KeyboardEvent, box: HTMLDivElement | null): void {
  const step = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
  if (step && box && moveFocus(step, box)) event.preventDefault();
}

/** Give the focus to the link of the next row; a row that is not there yet is scrolled to. */
export function moveFocus(step: 1 | -1, within: ParentNode = document): boolean {
  const links = [...within.querySelectorAll<HTMLElement>("[data-row]")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  const next = links[at < 0 ? 0 : at + step];
  if (!next) return false;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "nearest" });
  return true;
}

// The first page is there soon; whoever goes on wants more at a time.
const FIRST_ROWS = 200;
const NEXT_ROWS = 1_000;
const ROWS_SEEN = 40;
// More than anybody reads; a search that finds more has to be narrowed.
const MOST_ROWS = 100_000;

interface Paged<T> {
  items: T[];
  more: boolean;
  loading: boolean;
  problem: Problem | undefined;
  /** Ask for the next page. */
  load: () => void;
  /** Begin anew; what is there stays until the first page has come. */
  restart: () => void;
}

interface Pages<T> {
  items: T[];
  next: number | string | null;
  problem?: Problem | undefined;
  of: string;
}

/** The pages of a list, one behind the other as they are asked for; from the beginning when the server is back. */
export function usePages<T>(where: string, query: Query): Paged<T> {
  const asked = JSON.stringify(query);
  const of = `${where} ${asked}`;
  const [state, set] = useState<Pages<T>>({ items: [], next: 0, of: "" });
  const [loading, busy] = useState(true);
  const mine: Pages<T> = state.of === of ? state : { items: [], next: 0, of };
  const latest = useRef(mine);
  latest.current = mine;
  const abort = useRef<AbortController | undefined>(undefined);
  const get = useCallback(
    (anew: boolean) => {
      const before = anew ? { items: [], next: 0, of } : latest.current;
      if (anew) abort.current?.abort();
      else if (abort.current || before.next === null || before.items.length >= MOST_ROWS) return;
      const stop = (abort.current = new AbortController());
      busy(true);
      const first = returnedFrom() === undefined ? FIRST_ROWS : Math.min(NEXT_ROWS, Math.max(FIRST_ROWS, counts.get(of) ?? 0));
      const piece = before.next === 0 ? { limit: first } : { after: before.next, limit: before.items.length ? NEXT_ROWS : FIRST_ROWS };
      ask<Page<T, number | string>>(where, { query: { ...(JSON.parse(asked) as Query), ...piece }, signal: stop.signal })
        .then((page) => {
          const items = [...before.items, ...page.items];
          remember(counts, of, items.length);
          set({ items, next: page.next, of });
        })
        .catch((error: unknown) => {
          if (!stop.signal.aborted) set({ ...latest.current, problem: problemOf(error) });
        })
        .finally(() => {
          if (abort.current !== stop) return;
          abort.current = undefined;
          busy(false);
        });
    },
    [where, asked],
  );
  useEffect(() => {
    get(true);
    return () => {
      abort.current?.abort();
      abort.current = undefined;
    };
  }, [get]);
  useEffect(() => {
    if (!mine.problem || !passes(mine.problem)) return;
    const timer = setTimeout(() => get(mine.items.length === 0), RETRY_MS);
    return () => clearTimeout(timer);
  }, [mine.problem, get]);
  // A page may be short, or empty, and yet not be the last one: who searches wants to see something.
  useEffect(() => {
    if (!loading && !mine.problem && mine.of === state.of && mine.items.length < ROWS_SEEN && mine.next !== null) get(false);
  }, [loading, state]);
  const restart = useCallback(() => get(true), [get]);
  useEffect(() => whenBack(restart), [restart]);
  const load = useCallback(() => get(false), [get]);
  return { items: mine.items, more: mine.next !== null && mine.items.length < MOST_ROWS, loading, problem: mine.problem, load, restart };
}
