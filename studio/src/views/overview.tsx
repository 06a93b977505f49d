// Overview: what runs, what is stuck, how fast it goes, what waits. It is live.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask } from "../api";
import type { Figures, WaitingOutput, Stats, StuckFound } from "../documents";
import { useEvery, useLoad } from "../hooks";
import { useLive } from "../live";
import { Card, Empty, Figure, LiveSign, ProblemBox, Shown, Status, When } from "../parts/basics";
import { Lines } from "../parts/chart";
import { instanceLink, link } from "../route";
import { amount, duration, percent, several, shortType } from "../text";
import { PausedNow } from "./pauses";
import { ENDED, STATUSES } from "./statuses";

const SAMPLES = 120;
// What happens is looked at once a second; a rate over a few of them does not jump between nothing and twice as much.
const RATE_SAMPLES = 3;
const SLOW_SECONDS = 30;
const TIMERS_SHOWN = 10;
const STUCK_SHOWN = 8;

interface Sample {
  time: number;
  begun: number;
  ended: number;
}

export function OverviewView(): JSX.Element {
  const first = useLoad((signal) => ask<Stats>("stats", { signal }), []);
  const [live, set] = useState<Stats>();
  const [samples, draw] = useState<Sample[]>([]);
  const state = useLive("live", {}, (event) => {
    if (event.type === "stats") set(event.data as Stats);
  });
  const stats = live ?? first.data;
  // The server tells of changes only; a second in which nothing happens is drawn as well.
  useEvery(1, () => {
    if (live && state === "live") draw((before) => [...before, sample(live)].slice(-SAMPLES));
  });
  return (
    <>
      <header class="title">
        <h1>Overview</h1>
        <LiveSign state={state} />
      </header>
      <PausedNow />
      <ProblemBox problem={stats ? undefined : first.problem} />
      {stats && <Counts stats={stats} />}
      <Throughput samples={samples} />
      <div class="two">
        <Stuck />
        <Timers />
      </div>
      <Workflows />
    </>
  );
}

function sample(stats: Stats): Sample {
  const counts = Object.entries(stats.instances);
  const sum = (those: [string, number][]) => those.reduce((total, [, count]) => total + count, 0);
  return { time: Date.now(), begun: sum(counts), ended: sum(counts.filter(([status]) => ENDED.includes(status))) };
}

function Counts({ stats }: { stats: Stats }): JSX.Element {
  const count = (status: string) => stats.instances[status] ?? 0;
  return (
    <>
      <div class="figures" role="group" aria-label="Instances">
        {STATUSES.map((status) => (
          <Figure
            key={status}
            title={status}
            value={amount(count(status))}
            href={link(["instances"], { status })}
            tone={count(status) === 0 ? "" : status === "failed" ? "bad" : status === "suspended" ? "warn" : ""}
          />
        ))}
      </div>
      <div class="figures" role="group" aria-label="Work">
        <Figure title="dead letters" value={amount(stats.dead_letters)} href={link(["dead-letters"])} tone={stats.dead_letters ? "bad" : ""} />
        <Figure title="inputs waiting" value={amount(stats.inbox)} />
        <Figure title="commands waiting" value={amount(stats.outbox)} />
        <Figure title="timers" value={amount(stats.timers)} />
        <Figure title="workers" value={amount(stats.workers)} href={link(["workers"])} tone={stats.workers ? "" : "warn"} />
      </div>
    </>
  );
}

/** How many began and ended in each of the last seconds, as they were seen here. */
function Throughput({ samples }: { samples: Sample[] }): JSX.Element {
  const rates = samples.slice(1).map((now, index) => {
    const before = samples[Math.max(0, index + 1 - RATE_SAMPLES)] ?? now;
    const seconds = Math.max(0.1, (now.time - before.time) / 1_000);
    // What is purged makes the sums smaller; that is no work.
    return { begun: Math.max(0, now.begun - before.begun) / seconds, ended: Math.max(0, now.ended - before.ended) / seconds };
  });
  const last = rates.at(-1);
  return (
    <Card title="Throughput, live">
      {last ? (
        <>
          <Lines
            label={`${last.begun.toFixed(1)} begun and ${last.ended.toFixed(1)} ended a second`}
            series={[
              { name: "begun", values: rates.map((rate) => rate.begun) },
              { name: "ended", values: rates.map((rate) => rate.ended) },
            ]}
          />
          <p>
            {last.begun.toFixed(1)} begun <span class="faint">(blue)</span>, {last.ended.toFixed(1)} ended <span class="faint">(green)</span> a second
          </p>
        </>
      ) : (
        <Empty>It is drawn while this page is open.</Empty>
      )}
    </Card>
  );
}

function Timers(): JSX.Element {
  const timers = useLoad((signal) => ask<WaitingOutput[]>("timers", { query: { limit: TIMERS_SHOWN }, signal }), []);
  useEvery(SLOW_SECONDS / 3, timers.poll);
  return (
    <Card title="Timers due next">
      <Shown of={timers}>
        {(found) =>
          found.length ? (
            <ul class="plain">
              {found.map((timer) => (
                <li key={`${timer.instance} ${timer.position}`} class="sides">
                  <span>
                    <a href={instanceLink(timer.instance, { tab: "waiting" })} data-row>
                      {timer.instance}
                    </a>{" "}
                    {shortType(timer.type)}
                  </span>
                  <When time={timer.due} />
                </li>
              ))}
            </ul>
          ) : (
            <Empty>No timer runs.</Empty>
          )
        }
      </Shown>
    </Card>
  );
}

function Stuck(): JSX.Element {
  const stuck = useLoad((signal) => ask<StuckFound>("stuck", { query: { limit: STUCK_SHOWN }, signal }), []);
  useEvery(SLOW_SECONDS, stuck.poll);
  return (
    <Card title="Seem stuck">
      <Shown of={stuck} what="Looking">
        {(found) =>
          found.shown.length ? (
            <ul class="plain">
              {found.shown.map((one) => (
                <li key={one.instance}>
                  <div class="sides">
                    <span>
                      <a href={link(["instances", one.workflow, one.id])} data-row>
                        {one.instance}
                      </a>{" "}
                      {one.status !== "running" && <Status status={one.status} />}
                    </span>
                    <span>
                      {duration(one.state_seconds)} in {one.state}
                    </span>
                  </div>
                  <div class="faint one-line" title={one.reason.texts.join("\n")}>
                    {one.reason.texts[0]}
                  </div>
                </li>
              ))}
              {found.lines.map((line) => (
                <li key={line.line} class="faint" title={line.text}>
                  {several(line.instances.length, "flow waits", "flows wait")} at <code>{line.line}</code>
                </li>
              ))}
              {found.found > found.shown.length && <li class="faint">and {amount(found.found - found.shown.length)} more</li>}
            </ul>
          ) : (
            <Empty>None of {several(found.looked_at, "instance")} is suspended, or unusually late.</Empty>
          )
        }
      </Shown>
    </Card>
  );
}

function Workflows(): JSX.Element {
  const figures = useLoad((signal) => ask<Figures>("analytics", { query: { variants: 0 }, signal }), []);
  useEvery(SLOW_SECONDS, figures.poll);
  return (
    <Card title="How workflows do" wide>
      <Shown of={figures} what="Counting">
        {(found) =>
          found.workflows.length ? (
            <div class="scroll">
              <table aria-label="Workflows">
                <thead>
                  <tr>
                    <th>Workflow</th>
                    <th class="number">begun</th>
                    <th class="number">completed</th>
                    <th class="number">failed</th>
                    <th class="number">half within</th>
                    <th class="number">99 % within</th>
                    <th>most time in</th>
                  </tr>
                </thead>
                <tbody>
                  {found.workflows.map((one) => (
                    <tr key={one.workflow}>
                      <td>
                        <a href={link(["workflows", one.workflow], { tab: "bottlenecks" })}>{one.workflow}</a>
                      </td>
                      <td class="number">{amount(one.begun)}</td>
                      <td class="number">{amount(one.ended["completed"] ?? 0)}</td>
                      <td class="number">{percent(one.failure_rate)}</td>
                      <td class="number">{duration(one.durations["completed"]?.p50)}</td>
                      <td class="number">{duration(one.durations["completed"]?.p99)}</td>
                      <td>{one.states[0]?.share ? `${one.states[0].state} (${percent(one.states[0].share)})` : "–"}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </div>
          ) : (
            <Empty>Nothing has run yet.</Empty>
          )
        }
      </Shown>
    </Card>
  );
}
