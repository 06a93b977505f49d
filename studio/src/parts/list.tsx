// A list of which only the rows that are looked at are in the page, however many there are.

import type { ComponentChildren, JSX } from "preact";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { ask, type Page, type Problem, type Query } from "../api";
import { problemOf } from "../hooks";

export const ROW_PIXELS = 40;
const ROWS_AROUND = 12;

interface Rows {
  count: number;
  label: string;
  head?: ComponentChildren;
  row: (index: number) => ComponentChildren;
  /** Called with the rows that are looked at, whenever they change. */
  onSeen?: (first: number, last: number) => void;
  /** The row that is to be in sight. */
  current?: number;
}

/** Rows of one height in a box that scrolls. The keys j and k go from row to row. */
export function VirtualRows({ count, label, head, row, onSeen, current }: Rows): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [first, last, measure] = useWindow(box, count);
  useEffect(() => onSeen?.(first, last), [first, last, onSeen]);
  useEffect(measure, [count, measure]);
  useEffect(() => {
    const element = box.current;
    if (current === undefined || !element) return;
    const top = current * ROW_PIXELS;
    if (top < element.scrollTop || top + 2 * ROW_PIXELS > element.scrollTop + element.clientHeight) {
      element.scrollTop = Math.max(0, top - element.clientHeight / 2);
      measure();
    }
  }, [current, measure]);
  const rows: ComponentChildren[] = [];
  for (let index = first; index < last; index += 1) {
    rows.push(
      <div key={index} class={index === current ? "row current" : "row"} role="row" aria-rowindex={index + 1} data-index={index}>
        {row(index)}
      </div>,
    );
  }
  return (
    <div class="rows" role="table" aria-label={label} aria-rowcount={count}>
      {head && (
        <div class="row head" role="row">
          {head}
        </div>
      )}
      <div class="rows-box" ref={box} onScroll={measure} onKeyDown={(event) => walk(event, box.current)} tabIndex={-1}>
        <div class="rows-all" role="rowgroup" style={{ height: `${count * ROW_PIXELS}px` }}>
          <div class="rows-seen" role="presentation" style={{ transform: `translateY(${first * ROW_PIXELS}px)` }}>
            {rows}
          </div>
        </div>
      </div>
    </div>
  );
}

function useWindow(box: { current: HTMLDivElement | null }, count: number): [number, number, () => void] {
  const [seen, see] = useState<[number, number]>([0, Math.min(count, 2 * ROWS_AROUND)]);
  const measure = useCallback(() => {
    const element = box.current;
    if (!element) return;
    const top = Math.max(0, Math.floor(element.scrollTop / ROW_PIXELS) - ROWS_AROUND);
    const bottom = Math.min(count, Math.ceil((element.scrollTop + element.clientHeight) / ROW_PIXELS) + ROWS_AROUND);
    see((before) => (before[0] === top && before[1] === bottom ? before : [top, bottom]));
  }, [count]);
  useEffect(() => {
    const watcher = new ResizeObserver(measure);
    if (box.current) watcher.observe(box.current);
    return () => watcher.disconnect();
  }, [measure]);
  return [Math.min(seen[0], count), Math.min(seen[1], count), measure];
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
// More than anybody reads; a search that finds more has to be narrowed.
export const MOST_ROWS = 100_000;

export interface Paged<T> {
  items: T[];
  more: boolean;
  loading: boolean;
  problem: Problem | undefined;
  load: () => void;
  restart: () => void;
}

const RETRY_MS = 2_000;

/** The pages of a list, one behind the other as they are asked for. */
export function usePages<T>(where: string, query: Query): Paged<T> {
  const asked = JSON.stringify(query);
  const [turn, again] = useState(0);
  const [state, set] = useState<{ items: T[]; next: number | string | null; problem?: Problem; of: string }>({ items: [], next: 0, of: "" });
  const [loading, busy] = useState(false);
  const abort = useRef<AbortController | undefined>(undefined);
  const of = `${where} ${asked} ${turn}`;
  const mine = state.of === of ? state : { items: [] as T[], next: 0 as number | string | null, problem: undefined, of };
  const load = useCallback(() => {
    if (abort.current || mine.next === null || mine.items.length >= MOST_ROWS) return;
    const stop = (abort.current = new AbortController());
    busy(true);
    const piece = mine.items.length ? { after: mine.next, limit: NEXT_ROWS } : { limit: FIRST_ROWS };
    ask<Page<T, number | string>>(where, { query: { ...(JSON.parse(asked) as Query), ...piece }, signal: stop.signal })
      .then((page) => set({ items: [...mine.items, ...page.items], next: page.next, of }))
      .catch((error: unknown) => {
        if (!stop.signal.aborted) set({ ...mine, problem: problemOf(error), of });
      })
      .finally(() => {
        if (stop.signal.aborted) return;
        abort.current = undefined;
        busy(false);
      });
  }, [where, asked, mine.items, mine.next, of]);
  useEffect(() => {
    load();
    return () => {
      abort.current?.abort();
      abort.current = undefined;
    };
  }, [of]);
  useEffect(() => {
    if (mine.problem?.status !== 0) return;
    const timer = setTimeout(load, RETRY_MS);
    return () => clearTimeout(timer);
  }, [mine.problem, load]);
  const restart = useCallback(() => again((n) => n + 1), []);
  return { items: mine.items, more: mine.next !== null && mine.items.length < MOST_ROWS, loading, problem: mine.problem, load, restart };
}
