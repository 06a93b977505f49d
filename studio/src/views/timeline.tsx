// The stream as a timeline in two directions: what came in on the left, what went out on the right.

import type { JSX } from "preact";
import { useCallback } from "preact/hooks";
import type { EventDocument } from "../documents";
import type { Stream } from "../history";
import { VirtualRows } from "../parts/list";
import { brief, clock } from "../text";

interface Shown {
  stream: Stream;
  count: number;
  at: number;
  onGo: (version: number) => void;
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
        head={["In", "Version", "Out"].map((title) => (
          <span key={title} role="columnheader">
            {title}
          </span>
        ))}
        row={(index) => <Row event={stream.event(index + 1)} version={index + 1} onGo={onGo} />}
      />
    </section>
  );
}

function Row({ event, version, onGo }: { event: EventDocument | undefined; version: number; onGo: (version: number) => void }): JSX.Element {
  const said = event && (
    <button type="button" class={`event ${event.direction}`} data-row onClick={() => onGo(version)} title={`${clock(event.time)} ${event.event} ${event.type ?? ""}`}>
      <b>{event.event}</b> {event.type}
      <span class="faint"> {event.reason ?? (event.message === null ? "" : brief(event.message, 80))}</span>
    </button>
  );
  const direction = event?.direction;
  return (
    <>
      <span role="cell" class="in">
        {direction === "input" && said}
      </span>
      <span role="cell" class="middle">
        {direction === "lifecycle" ? said : version}
      </span>
      <span role="cell" class="out">
        {direction === "output" && said}
      </span>
    </>
  );
}
