// The figures of a workflow: how fast, how long, where the time goes, and which ways instances take.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import type { Advice, Spread, WorkflowFigures } from "../documents";
import { Card, Empty } from "../parts/basics";
import { Lines, Meter } from "../parts/chart";
import { link } from "../route";
import { amount, duration, percent, several, shortType } from "../text";

export function Bottlenecks({ figures, advice }: { figures: WorkflowFigures; advice: Advice[] }): JSX.Element {
  return (
    <>
      <WorthALook advice={advice} />
      <Durations figures={figures} />
      <States figures={figures} />
      <Commands figures={figures} />
      <Timers figures={figures} />
    </>
  );
}

export function WorthALook({ advice }: { advice: Advice[] }): JSX.Element | null {
  if (!advice.length) return null;
  return (
    <Card title="Worth a look" wide>
      <ol class="plain">
        {advice.map((each) => (
          <li key={`${each.kind} ${each.workflow} ${each.subject}`}>
            <p>
              <b>{each.figure}</b> <a href={each.link}>{`${shortType(each.subject)}: ${each.kind}`}</a>{" "}
              <span class="faint">{each.text}</span>
            </p>
          </li>
        ))}
      </ol>
    </Card>
  );
}

function spreadCells(spread: Spread | null): JSX.Element[] {
  return [spread?.p50, spread?.p90, spread?.p99, spread?.longest].map((value, index) => (
    <td key={index} class="number">
      {duration(value)}
    </td>
  ));
}

const SPREAD_HEADS = ["half within", "90 % within", "99 % within", "longest"].map((title) => (
  <th key={title} class="number">
    {title}
  </th>
));

function Durations({ figures }: { figures: WorkflowFigures }): JSX.Element {
  const ends = Object.entries(figures.durations);
  const series = useMemo(
    () => [
      { name: "begun", values: figures.throughput.intervals.map((one) => one.begun) },
      { name: "ended", values: figures.throughput.intervals.map((one) => Object.values(one.ended).reduce((sum, count) => sum + count, 0)) },
    ],
    [figures],
  );
  return (
    <Card title="How long it takes" wide>
      {series[0] && series[0].values.length > 1 && (
        <>
          <Lines series={series} label={`Begun and ended by the ${figures.throughput.width}`} />
          <p class="faint">
            begun (blue) and ended (green) by the {figures.throughput.width}; {amount(figures.begun)} begun in all
          </p>
        </>
      )}
      {ends.length ? (
        <div class="scroll">
          <table aria-label="How long it takes">
            <thead>
              <tr>
                <th>Ended</th>
                <th class="number">how many</th>
                {SPREAD_HEADS}
              </tr>
            </thead>
            <tbody>
              {ends.map(([end, spread]) => (
                <tr key={end}>
                  <td>{end}</td>
                  <td class="number">{amount(spread.count)}</td>
                  {spreadCells(spread)}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : (
        <Empty>None has ended.</Empty>
      )}
    </Card>
  );
}

function States({ figures }: { figures: WorkflowFigures }): JSX.Element {
  return (
    <Card title="Where the time goes" wide>
      <div class="scroll">
        <table aria-label="Where the time goes">
          <thead>
            <tr>
              <th>State</th>
              <th>share of all time</th>
              <th class="number">now in it</th>
              <th class="number">entered again</th>
              {SPREAD_HEADS}
            </tr>
          </thead>
          <tbody>
            {figures.states.map((state) => (
              <tr key={state.state}>
                <td>
                  <a href={link(["instances"], { workflow: figures.workflow, state: state.state })}>{state.state}</a>
                </td>
                <td>
                  <span class="share">
                    <Meter share={state.share} label={percent(state.share)} /> {percent(state.share)}
                  </span>
                </td>
                <td class="number">{amount(state.waiting)}</td>
                <td class="number">{amount(state.again)}</td>
                {spreadCells(state.dwell)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function Commands({ figures }: { figures: WorkflowFigures }): JSX.Element | null {
  if (!figures.commands.length) return null;
  return (
    <Card title="Commands" wide>
      <div class="scroll">
        <table aria-label="Commands">
          <thead>
            <tr>
              <th>Command</th>
              <th class="number">sent</th>
              <th class="number">answered</th>
              <th class="number">failed</th>
              <th class="number">tried again</th>
              <th class="number">handler, half within</th>
              <th class="number">answer, half within</th>
            </tr>
          </thead>
          <tbody>
            {figures.commands.map((command) => (
              <tr key={command.type}>
                <td title={command.type}>{shortType(command.type)}</td>
                <td class="number">{amount(command.sent)}</td>
                <td class="number">{amount(command.answered)}</td>
                <td class="number">{percent(command.failure_rate)}</td>
                <td class="number">{percent(command.retry_rate)}</td>
                <td class="number">{duration(command.handling?.p50)}</td>
                <td class="number">{duration(command.until_answer?.p50)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

function Timers({ figures }: { figures: WorkflowFigures }): JSX.Element | null {
  if (!figures.timers.length) return null;
  return (
    <Card title="Timers" wide>
      <div class="scroll">
        <table aria-label="Timers">
          <thead>
            <tr>
              <th>Timer</th>
              <th class="number">set</th>
              <th class="number">fired</th>
              <th class="number">never fired</th>
            </tr>
          </thead>
          <tbody>
            {figures.timers.map((timer) => (
              <tr key={timer.type}>
                <td title={timer.type}>{shortType(timer.type)}</td>
                <td class="number">{amount(timer.set)}</td>
                <td class="number">{amount(timer.fired)}</td>
                <td class="number">{amount(timer.over)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}

export function Variants({ figures }: { figures: WorkflowFigures }): JSX.Element {
  const { top, distinct, others } = figures.variants;
  return (
    <Card title={several(distinct, "way", "ways")} wide>
      {!top.length && <Empty>No instance has taken a way yet.</Empty>}
      <ol class="plain">
        {top.map((variant, index) => (
          <li key={index}>
            <p>
              <b>{percent(variant.share)}</b> <span class="faint">{several(variant.count, "instance")}</span>
            </p>
            <div class="path">
              {variant.steps.map(([message, state], step) => (
                <span key={step}>
                  {shortType(message)} → <b>{state}</b>
                </span>
              ))}
            </div>
          </li>
        ))}
      </ol>
      {others > 0 && <p class="faint">{several(others, "instance")} took other ways.</p>}
    </Card>
  );
}
