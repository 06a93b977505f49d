// Why something was decided: the cases of decide and evolve that were taken, and whether today's code decides the same.

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import { ask, path } from "../api";
import type { Branch, ExplanationDocument, MomentDocument } from "../documents";
import { useLoad, useSettled } from "../hooks";
import type { Told } from "../history";
import { Card, Loading, ProblemBox } from "../parts/basics";
import { brief } from "../text";

// While somebody scrubs, no explanation is asked for.
const PAUSE_MS = 120;
const KEPT = 500;

export function Decision({ workflow, id, moment }: { workflow: string; id: string; moment: Told }): JSX.Element {
  const known = useRef(new Map<number, ExplanationDocument | null>());
  const wanted = useSettled(moment.position, PAUSE_MS);
  const found = useLoad(
    async (signal) => {
      if (wanted !== moment.position || !moment.step || known.current.has(wanted)) return null;
      const explained = await ask<MomentDocument>(`explanations/${path(workflow, id)}`, { query: { at: wanted }, signal });
      if (known.current.size >= KEPT) known.current.clear();
      known.current.set(wanted, explained.explanation);
      return explained.position;
    },
    [workflow, id, wanted, moment.position],
  );
  const why = known.current.get(moment.position);
  return (
    <Card title="Decision">
      {!moment.step && <p class="faint">No input was taken here, so nothing was decided.</p>}
      {moment.step && why && <Why why={why} />}
      {moment.step && !why && (found.problem ? <ProblemBox problem={found.problem} /> : <Loading what="Asking decide once more" />)}
    </Card>
  );
}

function Why({ why }: { why: ExplanationDocument }): JSX.Element {
  return (
    <>
      {!why.asked && <p class="note">It was decided under another version of the workflow; today's code was not asked.</p>}
      {why.asked && !why.agrees && <p class="note bad">Today's code decides otherwise{why.error ? `: ${why.error}` : ""}.</p>}
      {why.asked && !why.decide.length && <p class="faint">decide needed no case for it.</p>}
      <Branches branches={why.decide} />
      {why.cut && <p class="faint">decide ran for too long to be followed to its end.</p>}
      {!why.agrees && why.decided.length > 0 && (
        <ul class="plain">
          {why.decided.map((event, index) => (
            <li key={index}>
              <b>{event.event}</b> {event.type} <span class="faint">{brief(event.message)}</span>
            </li>
          ))}
        </ul>
      )}
      {why.evolve.map((evolved) => (
        <div key={evolved.position}>
          <p class="faint">evolve, for event {evolved.position}</p>
          <Branches branches={evolved.branches} />
        </div>
      ))}
    </>
  );
}

function Branches({ branches }: { branches: Branch[] }): JSX.Element {
  return (
    <ul class="plain branches">
      {branches.map((branch, index) => (
        <li key={index}>
          <code>{branch.text}</code>
          <span class="faint">
            {" "}
            {branch.function} · {branch.file}:{branch.line}
          </span>
          {branch.refused.map((guard) => (
            <div key={guard.line} class="faint">
              not <code>{guard.text}</code>, line {guard.line}
            </div>
          ))}
        </li>
      ))}
    </ul>
  );
}
