// Time travel: a scrubber through the positions. The state, what changed, the diagram and the decision follow at once.

import type { JSX } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { StateChanged, StateShown } from "../documents";
import { useMoments, useStream, type Stream, type Told } from "../history";
import { Card, Empty, Json, Loading, ProblemBox } from "../parts/basics";
import { WorkflowDiagram } from "../parts/diagram";
import { link } from "../route";
import { brief, clock, duration } from "../text";
import { Decision } from "./decision";
import { Lines } from "./lines";
import { Timeline } from "./timeline";

interface Travelled {
  workflow: string;
  id: string;
  count: number;
  at: number;
  onGo: (position: number) => void;
}

export function TravelPanel({ workflow, id, count, at, onGo }: Travelled): JSX.Element {
  const stream = useStream(workflow, id, count);
  const moments = useMoments(workflow, id, at, count);
  const moment = moments.at(at);
  const beyond = moments.stopped !== null && at >= moments.stopped.position;
  const state = moments.early;
  useEffect(() => stream.need(at - 20, at + 20), [at, stream.need]);
  return (
    <div class="travel">
      <Scrubber at={at} count={count} onGo={onGo} />
      <div class="lead">
        <Timeline stream={stream} count={count} at={at} onGo={onGo} />
        <section class="card map" aria-label="Where it stands">
          <WorkflowDiagram name={workflow} from={moment?.before?.type} at={moment?.after.type ?? state?.type} small />
        </section>
      </div>
      <div class="pane">
        <ProblemBox problem={moments.problem ?? stream.problem} />
        {beyond && (
          <p class="problem">
            From position {moments.stopped?.position} on nothing can be told: {moments.stopped?.problem}
          </p>
        )}
        <EventCard workflow={workflow} id={id} stream={stream} at={at} />
        {moment ? (
          <>
            {moment.abandoned && <p class="note">A reset has left this behind: it does not count any more.</p>}
            <Lines workflow={workflow} id={id} moment={moment} />
            <StateCard moment={moment} at={at} />
            <Decision workflow={workflow} id={id} moment={moment} />
          </>
        ) : (
          !moments.problem &&
          !beyond && (
            <Card title="State" side={<strong>{state?.type}</strong>}>
              {state && <Json value={state.state} label="The state" />}
              <Loading what="Telling what changed" />
            </Card>
          )
        )}
      </div>
    </div>
  );
}

function Scrubber({ at, count, onGo }: { at: number; count: number; onGo: (position: number) => void }): JSX.Element {
  const latest = useRef({ at, count, onGo });
  latest.current = { at, count, onGo };
  useEffect(() => {
    const pressed = (event: KeyboardEvent) => {
      const target = event.target as HTMLElement;
      const now = latest.current;
      const places: Record<string, number> = { ArrowLeft: now.at - 1, ArrowRight: now.at + 1, Home: 1, End: now.count };
      const to = places[event.key];
      if (to === undefined || event.ctrlKey || event.metaKey || event.altKey || ["INPUT", "TEXTAREA", "SELECT", "PRE"].includes(target.tagName)) return;
      if (document.querySelector("dialog[open]")) return;
      event.preventDefault();
      now.onGo(Math.min(now.count, Math.max(1, to)));
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
  const button = (to: number, sign: string, title: string) => (
    <button type="button" onClick={() => onGo(to)} disabled={to < 1 || to > count || to === at} aria-label={title} title={title}>
      {sign}
    </button>
  );
  return (
    <div class="scrubber" role="group" aria-label="Positions">
      {button(1, "⇤", "The first event")}
      {button(at - 1, "←", "One event back")}
      <input
        type="range"
        min={1}
        max={Math.max(count, 1)}
        value={at}
        onInput={(event) => onGo(Number(event.currentTarget.value))}
        aria-label="Position"
        aria-valuetext={`position ${at} of ${count}`}
      />
      {button(at + 1, "→", "One event on")}
      {button(count, "⇥", "The last event")}
      <output>
        {at} / {count}
      </output>
    </div>
  );
}

function EventCard({ workflow, id, stream, at }: { workflow: string; id: string; stream: Stream; at: number }): JSX.Element {
  const event = stream.event(at);
  if (!event) return <Card title={`Event ${at}`}>{stream.problem ? <Empty>It cannot be read.</Empty> : <Loading />}</Card>;
  const facts: [string, string | null][] = [
    ["Time", clock(event.time)],
    ["Kind", event.kind],
    ["By", event.actor],
    ["Message id", event.message_id],
    ["To", event.to],
    ["Key", event.key],
    ["After", event.after_seconds === null ? null : duration(event.after_seconds)],
    ["At", event.at && clock(event.at)],
    ["Attempt", event.attempt === null ? null : String(event.attempt)],
    ["Reason", event.reason],
  ];
  return (
    <Card title={`${event.event}${event.type ? ` ${event.type}` : ""}`} side={<span class={`way ${event.direction}`}>{event.direction}</span>}>
      <dl class="facts">
        {facts.map(
          ([name, value]) =>
            value && (
              <div key={name}>
                <dt>{name}</dt>
                <dd class="break">{value}</dd>
              </div>
            ),
        )}
      </dl>
      {event.message !== null && event.message !== undefined && <Json value={event.message} label="The message" />}
      {event.direction === "input" && (
        <p class="ways">
          <a href={link(["instances", workflow, id], { tab: "what-if", at })}>What if it had been otherwise?</a>
          <a href={link(["instances", workflow, id], { tab: "raw", at })}>As a test</a>
        </p>
      )}
    </Card>
  );
}

/** The state behind the event that is looked at: inside a step that is the one before, with what changed so far. */
function StateCard({ moment, at }: { moment: Told; at: number }): JSX.Element {
  const changed = moment.events.filter((event) => event.change !== null && event.position <= at);
  const later = moment.events.filter((event) => event.change !== null && event.position > at);
  const shown: StateShown | null = later.length === 0 ? moment.after : changed.length === 0 ? moment.before : null;
  return (
    <Card title="State" side={<strong>{(shown ?? moment.after).type}</strong>}>
      {changed.length === 0 && <p class="faint">{moment.step ? "Not changed so far in this step." : "Not changed by this event."}</p>}
      {changed.map((event) => event.change && <Changes key={event.position} change={event.change} here={event.position === at} position={event.position} />)}
      {shown ? <Json value={shown.state} label="The state" /> : <p class="faint">In the middle of a step that changes it more than once: see the changes above.</p>}
      {later.length > 0 && <p class="faint">Changed {changed.length > 0 && "again "}at {later.map((event) => event.position).join(", ")}, in the same step.</p>}
    </Card>
  );
}

const SIGNS = { changed: "~", added: "+", removed: "−" };

export function Changes({ change, here, position }: { change: StateChanged; here?: boolean; position?: number }): JSX.Element {
  return (
    <ul class={here ? "changes here" : "changes"} aria-label={position === undefined ? "What differs" : `What position ${position} changed`}>
      {change.before !== change.after && (
        <li class="changed">
          <b>{change.before}</b> → <b>{change.after}</b>
        </li>
      )}
      {change.places.map((place) => (
        <li key={place.path} class={place.what}>
          <span class="sign">{SIGNS[place.what]}</span> {place.path}: {place.what !== "added" && <del>{brief(place.before)}</del>}{" "}
          {place.what !== "removed" && <ins>{brief(place.after)}</ins>}
        </li>
      ))}
      {change.cut && <li class="faint">and more</li>}
    </ul>
  );
}
