// What an instance waits for: inputs that are not taken yet, commands that are not carried out, timers, children, people.

import type { ComponentChildren, JSX } from "preact";
import { ask, path, type Page } from "../api";
import type { InstanceInfo, WaitingOutput, Task, Waiting } from "../documents";
import { useEvery, useLoad } from "../hooks";
import { Card, Empty, Json, Shown, When } from "../parts/basics";
import { link } from "../route";
import { amount, several } from "../text";

const REFRESH_SECONDS = 2;
const TASKS_LOOKED_AT = 1_000;

export function WaitingPanel({ instance }: { instance: InstanceInfo }): JSX.Element {
  const { workflow, id, position } = instance;
  const waiting = useLoad((signal) => ask<Waiting>(`waiting/${path(workflow, id)}`, { signal }), [workflow, id], position);
  const tasks = useLoad(
    async (signal) => {
      const page = await ask<Page<Task, string>>("tasks", { query: { workflow, limit: TASKS_LOOKED_AT }, signal });
      return { found: page.items.filter((task) => task.instance === id), all: page.next === null };
    },
    [workflow, id],
    position,
  );
  useEvery(REFRESH_SECONDS, waiting.poll);
  return (
    <Shown of={waiting}>
      {(found) => (
        <div class="cards">
          <Several title="Inputs" empty="No input waits to be taken.">
            {found.inbox.map((input) => (
              <Waiting key={input.message_id} title={input.type} facts={`${input.kind}${input.actor ? ` from ${input.actor}` : ""}`} time={input.time} message={input.message} />
            ))}
          </Several>
          <Several title="Commands" empty="No command waits to be carried out.">
            {[
              ...found.held_back.map((why) => (
                <li key={why} class="error-text">
                  {why}
                </li>
              )),
              ...found.outbox.map((output) => (
                <Waiting key={output.position} title={output.type} facts={attempts(output)} time={output.due} message={output.message} />
              )),
            ]}
          </Several>
          <Several title="Timers" empty="No timer runs.">
            {found.timers.map((timer) => (
              <Waiting key={timer.position} title={timer.type} facts={`key ${timer.key ?? "–"}`} time={timer.due} message={timer.message} />
            ))}
          </Several>
          <Several title="Children" empty="No child and no fan-out runs.">
            {found.children.map((child) => (
              <li key={child.position}>
                <b>{child.type ?? "fan-out"}</b> {child.instance}
                {child.total !== null && ` · ${amount(child.done ?? 0)} of ${several(child.total, "part")} done`} · begun <When time={child.began} />
              </li>
            ))}
          </Several>
          <Shown of={tasks}>
            {(open) => (
              <Several title="People" empty={open.all ? "Nobody is asked." : `Nobody is asked, as far as the first ${TASKS_LOOKED_AT} tasks tell.`}>
                {open.found.map((task) => (
                  <li key={task.id}>
                    <a href={link(["tasks", task.id])} data-row>
                      {task.title}
                    </a>{" "}
                    · {[task.role, task.person].filter(Boolean).join(", ") || "anybody"} · due <When time={task.due_at} />
                  </li>
                ))}
              </Several>
            )}
          </Shown>
        </div>
      )}
    </Shown>
  );
}

function attempts(output: WaitingOutput): string {
  return `${output.kind}, ${output.attempts ? several(output.attempts, "attempt") : "not tried yet"}`;
}

function Several({ title, empty, children }: { title: string; empty: string; children: ComponentChildren[] }): JSX.Element {
  return <Card title={title}>{children.length ? <ul class="plain">{children}</ul> : <Empty>{empty}</Empty>}</Card>;
}

function Waiting({ title, facts, time, message }: { title: string; facts: string; time: string; message: unknown }): JSX.Element {
  return (
    <li>
      <details>
        <summary data-row tabIndex={0}>
          <b>{title}</b> · {facts} · <When time={time} />
        </summary>
        <Json value={message} label={`The message ${title}`} />
      </details>
    </li>
  );
}
