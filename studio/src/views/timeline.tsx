// The stream as a timeline in two directions: what came in on the left, what went out on the right.

import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import type { EventInfo } from "../documents";
import type { Stream } from "../history";
import { VirtualRows } from "../parts/list";
import { clock, duration, gist, shortType } from "../text";

// Shorter pauses are the machine's, and of interest in the log only.
const PAUSE_SECONDS = 1;

interface Shown {
  stream: Stream;
  count: number;
  at: number;
  onGo: (position: number) => void;
}

export function Timeline({ stream, count, at, onGo }: Shown): JSX.Element {
  const seen = useCallback((first: number, last: number) => stream.need(first + 1, last), [stream.need]);
  return (
    <section class="timeline" aria-label="Timeline">
      <VirtualRows
        count={count}
        label="Events, the first at the top"
        current={at - 1}
        onSeen={seen}
        head={["In", "Position", "Out"]}
        row={(index) => <Row event={stream.event(index + 1)} before={stream.event(index)} position={index + 1} here={index + 1 === at} onGo={onGo} />}
      />
    </section>
  );
}

interface Told {
  event: EventInfo | undefined;
  before: EventInfo | undefined;
  position: number;
  here: boolean;
  onGo: (position: number) => void;
}

function Row({ event, before, position, here, onGo }: Told): JSX.Element {
  if (!event) {
    return (
      <span role="cell" class="middle whole">
        {position} …
      </span>
    );
  }
  const { direction, type, reason } = event;
  const gone = reason ?? (event.message === null ? "" : gist(event.message));
  const said = (
    <button
      type="button"
      class={`event ${direction}`}
      data-row
      aria-current={here ? "step" : undefined}
      onClick={() => onGo(position)}
      title={`${clock(event.time)} ${event.event} ${type ?? ""} ${gone}`}
    >
      {direction === "lifecycle" && <span class="number">{position} </span>}
      <span class="faint">{event.event}</span> <b>{type === null ? "" : shortType(type)}</b> <span class="faint">{gone}</span>
    </button>
  );
  if (direction === "lifecycle") {
    return (
      <span role="cell" class="middle whole">
        {said}
      </span>
    );
  }
  return (
    <>
      <span role="cell">{direction === "input" && said}</span>
      <span role="cell" class="middle">
        {position}
        {before && <Pause from={before.time} to={event.time} />}
      </span>
      <span role="cell">{direction === "output" && said}</span>
    </>
  );
}

function Pause({ from, to }: { from: string; to: string }): JSX.Element | null {
  const seconds = (Date.parse(to) - Date.parse(from)) / 1_000;
  return seconds < PAUSE_SECONDS ? null : <small class="pause">+{duration(seconds)}</small>;
}
