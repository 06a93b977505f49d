// Schedules: what is sent by a calendar.

import type { JSX } from "preact";
import { ask, path, send } from "../api";
import type { ScheduleDocument } from "../documents";
import { useDoing, useEvery, useLoad } from "../hooks";
import { Empty, ProblemBox, Shown, When } from "../parts/basics";
import { clock } from "../text";

const REFRESH_SECONDS = 5;

export function SchedulesView(): JSX.Element {
  const list = useLoad((signal) => ask<ScheduleDocument[]>("schedules", { signal }), []);
  const doing = useDoing();
  useEvery(REFRESH_SECONDS, list.reload);
  const operate = (name: string, operation: string) => doing.run(() => send(`schedules/${path(name)}/${operation}`)).then(list.reload);
  return (
    <>
      <h1>Schedules</h1>
      <ProblemBox problem={doing.problem} />
      <Shown of={list}>
        {(schedules) =>
          schedules.length ? (
            <table>
              <thead>
                <tr>
                  <th>Name</th>
                  <th>Calendar</th>
                  <th>Sends</th>
                  <th>Missed ones</th>
                  <th>Status</th>
                  <th>Next</th>
                  <th>
                    <span class="unseen">Operate</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {schedules.map((schedule) => (
                  <tr key={schedule.name}>
                    <td>{schedule.name}</td>
                    <td>
                      <code>{schedule.calendar}</code>
                    </td>
                    <td class="break">{schedule.message}</td>
                    <td>{schedule.catch_up}</td>
                    <td>{schedule.status}</td>
                    <td title={clock(schedule.next)}>
                      <When time={schedule.next} />
                    </td>
                    <td class="actions">
                      {schedule.status === "paused" ? (
                        <button type="button" disabled={doing.busy} onClick={() => operate(schedule.name, "resume")}>
                          Resume
                        </button>
                      ) : (
                        <button type="button" disabled={doing.busy} onClick={() => operate(schedule.name, "pause")}>
                          Pause
                        </button>
                      )}
                      <button type="button" disabled={doing.busy} onClick={() => operate(schedule.name, "run")}>
                        Send now
                      </button>
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          ) : (
            <Empty>Nothing is sent by a calendar here.</Empty>
          )
        }
      </Shown>
    </>
  );
}
