// What if: another input in the place of a recorded one, and how the story would have gone. Nothing is carried out.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, path, send } from "../api";
import type { CounterfactualDocument, EventInfo, ToldEvent, WorkflowDocument } from "../documents";
import { useDoing, useLoad } from "../hooks";
import { useStream } from "../history";
import { Card, Json, ProblemBox } from "../parts/basics";
import { gist, pretty, shortType } from "../text";
import { parsed } from "./letters";
import { Changes } from "./travel";

interface Asked {
  workflow: string;
  id: string;
  count: number;
  at: number;
  onGo: (position: number) => void;
}

type What = "replace" | "insert" | "drop";

export function WhatIfPanel({ workflow, id, count, at, onGo }: Asked): JSX.Element {
  const stream = useStream(workflow, id, count);
  useEffect(() => stream.need(at - 50, at), [at, stream.need]);
  const input = inputAt(stream.event, at);
  return (
    <>
      <ProblemBox problem={stream.problem} />
      <label class="inline">
        Input at position
        <input type="number" min={1} max={count} value={input?.position ?? at} onChange={(event) => onGo(Number(event.currentTarget.value))} />
      </label>
      {input ? (
        <Otherwise key={input.position} workflow={workflow} id={id} input={input} />
      ) : (
        <p class="note">There is no input at position {at}, or shortly before it. Choose a position at which something came in.</p>
      )}
    </>
  );
}

/** The input whose step a position belongs to. */
function inputAt(event: (position: number) => EventInfo | undefined, at: number): EventInfo | undefined {
  for (let position = at; position > Math.max(0, at - 50); position -= 1) {
    const found = event(position);
    if (found?.direction === "input") return found;
  }
  return undefined;
}

function Otherwise({ workflow, id, input }: { workflow: string; id: string; input: EventInfo }): JSX.Element {
  const [what, choose] = useState<What>("replace");
  const [type, name] = useState(input.type ?? "");
  const [text, write] = useState(() => pretty(input.message));
  const [story, tell] = useState<CounterfactualDocument>();
  const doing = useDoing();
  const workflows = useLoad((signal) => ask<WorkflowDocument[]>("workflows", { signal }), []);
  const inputs = workflows.data?.find((one) => one.name === workflow)?.inputs ?? [];
  const tellIt = () =>
    doing.run(async () => {
      const message = what === "drop" ? {} : { type: type.trim(), message: parsed(text) };
      tell(await send<CounterfactualDocument>(`counterfactuals/${path(workflow, id)}`, { what, at: input.position, ...message }));
    });
  return (
    <>
      <form
        class="card wide fields"
        onSubmit={(event) => {
          event.preventDefault();
          void tellIt();
        }}
      >
        <p>
          Recorded at position {input.position}: <b>{input.type}</b> <span class="faint">{gist(input.message)}</span>
        </p>
        <label>
          Instead
          <select value={what} onChange={(event) => choose(event.currentTarget.value as What)}>
            <option value="replace">it said something else</option>
            <option value="insert">something came before it</option>
            <option value="drop">it never came</option>
          </select>
        </label>
        {what !== "drop" && (
          <>
            <label>
              Type
              <input value={type} onInput={(event) => name(event.currentTarget.value)} list="inputs" required spellcheck={false} />
              <datalist id="inputs">
                {inputs.map((one) => (
                  <option key={one} value={one} />
                ))}
              </datalist>
            </label>
            <label>
              Message
              <textarea rows={8} value={text} onInput={(event) => write(event.currentTarget.value)} spellcheck={false} />
            </label>
          </>
        )}
        <ProblemBox problem={doing.problem} />
        <div class="actions">
          <button type="submit" class="main" disabled={doing.busy}>
            {doing.busy ? "Telling …" : "Tell the other story"}
          </button>
        </div>
      </form>
      {story && <Story story={story} />}
    </>
  );
}

function Story({ story }: { story: CounterfactualDocument }): JSX.Element {
  return (
    <>
      <p class={story.differs_at === null ? "note good" : "note"} role="status">
        {story.differs_at === null ? "All else would have gone as it went." : `From position ${story.differs_at} on it would have gone otherwise.`}
      </p>
      {story.error && <p class="problem">The other story stops: {story.error}</p>}
      <div class="two">
        <Events title="As it went" events={story.recorded} beside={story.told} />
        <Events title="As it would have gone" events={story.told} beside={story.recorded} />
      </div>
      <Card title="State at the end" wide>
        {story.change ? <Changes change={story.change} /> : <p class="faint">The same.</p>}
        <div class="two">
          <Json value={story.recorded_state} label="As it was" />
          <Json value={story.state} label="As it would have been" />
        </div>
      </Card>
      <Rest title="Nobody knows the answer to" events={story.unanswered} />
      <Rest title="Taken as carried out" events={story.assumed} />
      <Rest title="Timers that still wait" events={story.waiting} />
      <Rest title="What operators did is left out" events={story.left_out} />
      {story.untaken.length > 0 && (
        <Card title="Could not be taken" wide>
          <ul class="plain">
            {story.untaken.map((one) => (
              <li key={one.position}>
                {one.position ?? "inserted"} <b>{one.type}</b> {one.reason}
              </li>
            ))}
          </ul>
        </Card>
      )}
    </>
  );
}

/** What an event says, wherever it stands in its story. */
function said(event: ToldEvent): string {
  return JSON.stringify([event.event, event.type, event.message, event.reason]);
}

/** Events of a story; those that the other one beside it does not have are marked. */
function Events({ title, events, beside = events }: { title: string; events: ToldEvent[]; beside?: ToldEvent[] }): JSX.Element {
  const there = new Set(beside.map(said));
  return (
    <Card title={title}>
      <ol class="plain story">
        {events.map((event) => (
          <li key={event.position} class={there.has(said(event)) ? "" : "differs"}>
            <span class="faint">{event.position}</span> {event.event} <b>{event.type === null ? "" : shortType(event.type)}</b>{" "}
            <span class="faint">{event.reason ?? (event.message === null ? "" : gist(event.message))}</span>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function Rest({ title, events }: { title: string; events: ToldEvent[] }): JSX.Element | null {
  return events.length ? <Events title={title} events={events} /> : null;
}
