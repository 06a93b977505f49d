// Schedules: what is sent by a calendar, when it is next, and how it is stopped.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask, path, send } from "../api";
import type { NextTimes, ScheduleInfo } from "../documents";
import { useDoing, useEvery, useLoad, type Doing } from "../hooks";
import { Card, Dialog, Empty, ProblemBox, Shown, Status, When } from "../parts/basics";
import { amend, type Route } from "../route";
import { clock } from "../text";

const REFRESH_SECONDS = 5;
const TIMES_SHOWN = 5;

export function SchedulesView({ route }: { route: Route }): JSX.Element {
  const list = useLoad((signal) => ask<ScheduleInfo[]>("schedules", { signal }), []);
  const [asked, remove] = useState<string>();
  const doing = useDoing();
  useEvery(REFRESH_SECONDS, list.poll);
  const operate = (name: string, operation: string) => doing.run(() => send(`schedules/${path(name)}/${operation}`)).then(list.reload);
  return (
    <>
      <h1>Schedules</h1>
      <ProblemBox problem={doing.problem} />
      <Shown of={list}>
        {(schedules) =>
          schedules.length ? (
            <div class="cards">
              {schedules.map((schedule) => (
                <Schedule
                  key={schedule.name}
                  schedule={schedule}
                  open={route.query.get("schedule") === schedule.name}
                  onOpen={() => amend(route, { schedule: schedule.name })}
                  doing={doing}
                  onOperate={(operation) => void operate(schedule.name, operation)}
                  onRemove={() => remove(schedule.name)}
                />
              ))}
            </div>
          ) : (
            <Empty>Nothing is sent by a calendar here.</Empty>
          )
        }
      </Shown>
      {asked !== undefined && (
        <RemoveDialog
          name={asked}
          onClose={() => {
            remove(undefined);
            list.reload();
          }}
        />
      )}
    </>
  );
}

const CHANGES: Record<string, [operation: string, title: string]> = {
  active: ["pause", "Pause"],
  paused: ["resume", "Resume"],
  removed: ["resume", "Resume"],
};

interface Told {
  schedule: ScheduleInfo;
  open: boolean;
  onOpen: () => void;
  doing: Doing;
  onOperate: (operation: string) => void;
  onRemove: () => void;
}

function Schedule({ schedule, open, onOpen, doing, onOperate, onRemove }: Told): JSX.Element {
  const change = CHANGES[schedule.status];
  return (
    <Card title={schedule.name} side={<Status status={schedule.status} />}>
      <dl class="facts">
        <div>
          <dt>Calendar</dt>
          <dd>
            <code>{schedule.calendar}</code>
          </dd>
        </div>
        <div>
          <dt>Sends</dt>
          <dd class="break">{schedule.message}</dd>
        </div>
        <div>
          <dt>Next</dt>
          <dd>
            <When time={schedule.next} />
          </dd>
        </div>
        <div>
          <dt>Missed ones</dt>
          <dd>{schedule.catch_up}</dd>
        </div>
      </dl>
      <details open={open} onToggle={(event) => event.currentTarget.open && onOpen()}>
        <summary data-row tabIndex={0}>
          The next times
        </summary>
        {open && <Times name={schedule.name} next={schedule.next} />}
      </details>
      <div class="actions">
        <button type="button" disabled={doing.busy} onClick={() => onOperate("run")}>
          Send now
        </button>
        {change && (
          <button type="button" disabled={doing.busy} onClick={() => onOperate(change[0])}>
            {change[1]}
          </button>
        )}
        {schedule.status !== "removed" && (
          <button type="button" class="danger" disabled={doing.busy} onClick={onRemove}>
            Remove …
          </button>
        )}
      </div>
    </Card>
  );
}

function Times({ name, next }: { name: string; next: string | null }): JSX.Element {
  const times = useLoad((signal) => ask<NextTimes>(`schedules/${path(name)}/next`, { query: { n: TIMES_SHOWN }, signal }), [name], next);
  return (
    <Shown of={times}>
      {(found) => (
        <ol class="plain">
          {found.times.map((time) => (
            <li key={time}>
              {clock(time).slice(0, -4)} <span class="faint">{<When time={time} />}</span>
            </li>
          ))}
          {!found.times.length && <li class="faint">It does not fire any more.</li>}
        </ol>
      )}
    </Shown>
  );
}

function RemoveDialog({ name, onClose }: { name: string; onClose: () => void }): JSX.Element {
  const doing = useDoing();
  const confirm = async () => {
    if (await doing.run(() => ask(`schedules/${path(name)}`, { method: "DELETE" }))) onClose();
  };
  return (
    <Dialog title={`Remove ${name}?`} action="Remove" danger doing={doing} onConfirm={confirm} onClose={onClose}>
      <p>It fires no more, until it is resumed or declared differently. Take it out of the code as well.</p>
    </Dialog>
  );
}
