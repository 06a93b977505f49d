// Where a flow waits: the source of its function with the line marked, the calls that led there, and their variables.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, path } from "../api";
import type { Frame, WaitingCode, WaitsAt } from "../documents";
import { useLoad, useSettled } from "../hooks";
import type { Told as Moment } from "../history";
import { Card, ProblemBox } from "../parts/basics";
import { clock } from "../text";

// While somebody scrubs, no code is run.
const PAUSE_MS = 120;
const KEPT = 500;
const LINES_BEFORE = 4;

export function Lines({ workflow, id, moment }: { workflow: string; id: string; moment: Moment }): JSX.Element | null {
  const known = useRef(new Map<string, WaitsAt>());
  const flow = useRef(true);
  const last = useRef<WaitsAt | undefined>(undefined);
  const of = (one: Moment) => `${one.position} ${one.last}`;
  const wanted = useSettled(of(moment), PAUSE_MS);
  const found = useLoad(
    async (signal) => {
      if (!flow.current || wanted !== of(moment) || known.current.has(wanted)) return null;
      const told = await ask<WaitsAt>(`waits-at/${path(workflow, id)}`, { query: { at: moment.last }, signal });
      flow.current = told.is_flow;
      if (known.current.size >= KEPT) known.current.clear();
      known.current.set(wanted, told);
      return wanted;
    },
    [workflow, id, wanted, of(moment)],
  );
  const here = known.current.get(of(moment));
  if (here) last.current = here;
  // What was shown before stays in sight meanwhile, so that nothing jumps while somebody scrubs.
  const told = here ?? last.current;
  if (!flow.current || (!told && !found.problem)) return null; // before the first answer it may be no flow
  const problem = here ? undefined : found.problem;
  const first = told?.waiting[0]?.frames[0];
  return (
    <Card title="Where it waits" side={first && <code class="faint break">{place(first)}</code>}>
      <ProblemBox problem={problem} />
      {told && !problem && (
        <div class={here ? undefined : "stale"} aria-busy={!here}>
          <Told told={told} key={told.position} />
        </div>
      )}
    </Card>
  );
}

function Told({ told }: { told: WaitsAt }): JSX.Element {
  const [chosen, choose] = useState(0);
  const code = told.waiting[chosen];
  return (
    <>
      {told.problem && <p class="note bad break">{told.problem}</p>}
      {!told.problem && !code && <p class="faint">{told.ended ? "It has ended: its code waits nowhere." : "Its code waits nowhere."}</p>}
      {told.ended && code && <p class="faint">It was ended from outside. Its code waited here:</p>}
      {told.waiting.length > 1 && (
        <ul class="plain tasks" aria-label="Tasks of the code">
          {told.waiting.map((one, index) => (
            <li key={one.task}>
              <button type="button" aria-pressed={index === chosen} onClick={() => choose(index)}>
                <b>{one.task}</b> <span class="faint">{one.awaits}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      {told.more > 0 && <p class="faint">and {told.more} more tasks</p>}
      {code && <Code told={told} code={code} key={chosen} />}
    </>
  );
}

function Code({ told, code }: { told: WaitsAt; code: WaitingCode }): JSX.Element {
  const [chosen, choose] = useState(0);
  const frame = code.frames[chosen];
  return (
    <>
      <p>
        {code.task} waits for <b>{code.awaits}</b>
        {code.position !== null && <span class="faint">, asked for at position {code.position}</span>}
        {code.due && `, due ${clock(code.due)}`}
        {code.times_out && `, until ${clock(code.times_out)}`}
      </p>
      {frame && <Source told={told} frame={frame} />}
      {code.frames.length > 1 && (
        <ol class="plain calls" aria-label="Calls, the innermost first">
          {code.frames.map((one, index) => (
            <li key={index}>
              <button type="button" aria-pressed={index === chosen} onClick={() => choose(index)}>
                {index > 0 && <span class="faint">called in </span>}
                <b>{one.function}</b> <span class="faint">{place(one)}</span>
              </button>
            </li>
          ))}
          {code.more > 0 && <li class="faint">and {code.more} calls between the last two</li>}
        </ol>
      )}
      {frame && <Variables frame={frame} />}
    </>
  );
}

/** The function of a frame. The frame's line is marked, and so are those at which other tasks wait in it. */
function Source({ told, frame }: { told: WaitsAt; frame: Frame }): JSX.Element {
  const box = useRef<HTMLPreElement>(null);
  const found = told.functions.find((one) => one.file === frame.file && one.function === frame.function && one.line <= frame.line);
  const lines = found && found.text ? found.text.split("\n") : [frame.text];
  const first = found && found.text ? found.line : frame.line;
  const others = new Set(told.waiting.flatMap((one) => one.frames.filter((each) => each.function === frame.function && each.file === frame.file).map((each) => each.line)));
  useEffect(() => {
    const marked = box.current?.querySelector<HTMLElement>(".at");
    if (box.current && marked) box.current.scrollTop = marked.offsetTop - LINES_BEFORE * marked.offsetHeight;
  }, [frame]);
  return (
    <pre class="source" tabIndex={0} ref={box} aria-label={`The source of ${frame.function}`}>
      {lines.map((line, index) => {
        const number = first + index;
        const here = number === frame.line;
        return (
          <span key={number} class={here ? "at" : others.has(number) ? "also" : undefined} aria-current={here ? "location" : undefined}>
            <i>{number}</i>
            {line}
            {"\n"}
          </span>
        );
      })}
    </pre>
  );
}

function Variables({ frame }: { frame: Frame }): JSX.Element | null {
  if (!frame.variables.length) return null;
  const hidden = frame.variables.every((one) => one.value === null);
  return (
    <>
      <dl class="variables" aria-label={`The variables of ${frame.function}`}>
        {frame.variables.map((one) => (
          <div key={one.name}>
            <dt>
              {one.name} <span class="faint">{one.type}</span>
            </dt>
            {one.value !== null && <dd class="break">{one.value}</dd>}
          </div>
        ))}
      </dl>
      {frame.more > 0 && <p class="faint">and {frame.more} more</p>}
      {hidden && <p class="faint">Fields are redacted here, so that variables have their types alone.</p>}
    </>
  );
}

function place(frame: Frame): string {
  return `${frame.file}:${frame.line}`;
}
