// What if today's code had run all along: what it would do otherwise, in a sample of the instances there are.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask } from "../api";
import type { Report } from "../documents";
import { useDoing } from "../hooks";
import { Card, Empty, ProblemBox } from "../parts/basics";
import { instanceLink } from "../route";
import { amount, several } from "../text";
import { STATUSES } from "./statuses";

const SAMPLES = [20, 100, 500, 1_000];

export function WhatIfSample({ name }: { name: string }): JSX.Element {
  const [sample, size] = useState(100);
  const [status, choose] = useState("");
  const [report, tell] = useState<Report>();
  const doing = useDoing();
  const look = () =>
    doing.run(async () => {
      tell(undefined);
      tell(await ask<Report>("what-if", { query: { workflow: name, status, sample } }));
    });
  return (
    <>
      <p>Takes instances as they were recorded, and asks today's code what it would have made of each. Nothing is carried out.</p>
      <form
        class="filters"
        onSubmit={(event) => {
          event.preventDefault();
          void look();
        }}
      >
        <label>
          Status
          <select value={status} onChange={(event) => choose(event.currentTarget.value)}>
            <option value="">any</option>
            {STATUSES.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
        <label>
          Sample
          <select value={String(sample)} onChange={(event) => size(Number(event.currentTarget.value))}>
            {SAMPLES.map((one) => (
              <option key={one} value={String(one)}>
                {several(one, "instance")}
              </option>
            ))}
          </select>
        </label>
        <button type="submit" class="main" disabled={doing.busy}>
          {doing.busy ? "Asking …" : "Ask today's code"}
        </button>
      </form>
      <ProblemBox problem={doing.problem} />
      {report && <Report report={report} />}
    </>
  );
}

function Report({ report }: { report: Report }): JSX.Element {
  if (!report.instances) return <Empty>No instance is like that.</Empty>;
  return (
    <>
      <p class={report.differing ? "note" : "note good"} role="status">
        {report.differing
          ? `${several(report.differing, "instance")} of ${amount(report.instances)} would have gone otherwise, ${amount(report.differing_in_flight)} of them not ended yet.`
          : `In ${several(report.instances, "instance")} no difference was found: compared were ${compared(report)}.`}
      </p>
      {report.differing > 0 && <p class="faint">Compared were {compared(report)}.</p>}
      {report.differences.map((one, index) => (
        <Card key={index} title={one.what} wide side={<span class="faint">{one.kind}</span>}>
          <p>
            {several(one.instances, "instance")}, {amount(one.in_flight)} not ended; {several(one.steps, "step")}
          </p>
          {one.examples.map((example) => (
            <div key={`${example.instance} ${example.position}`}>
              <a href={instanceLink(example.instance, { at: example.position })} data-row>
                {example.instance} at {example.position}
              </a>
              <Lines lines={example.lines} />
            </div>
          ))}
        </Card>
      ))}
      {report.unchecked.map((one) => (
        <p key={one.why} class="faint">
          {several(one.instances, "instance")} not checked to the end: {one.why} (<a href={instanceLink(one.example)}>{one.example}</a>)
        </p>
      ))}
    </>
  );
}

/** A state that differs in a field, and is in no snapshot, is not seen unless it leads to another decision. */
function compared({ compared: { decisions, state_names, states, states_passed } }: Report): string {
  return `the decisions of ${several(decisions, "step")}, the names of ${several(state_names, "state")}, whole states in ${amount(states)} of ${amount(states_passed)}`;
}

const KINDS: Record<string, string> = { "-": "removed", "+": "added", "~": "changed" };

function Lines({ lines }: { lines: string[] }): JSX.Element {
  return (
    <ul class="changes" aria-label="What differs: − was recorded, + is what today's code does">
      {lines.map((line, index) => (
        <li key={index} class={KINDS[line.charAt(0)] ?? ""}>
          {line}
        </li>
      ))}
    </ul>
  );
}
