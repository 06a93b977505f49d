// One task: what is asked, who has it, and the forms by which it is answered.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask, path, Problem, send } from "../api";
import type { Form, TaskOutcome, TaskWithForms } from "../documents";
import { useDoing, useLoad, type Doing } from "../hooks";
import { Card, Fields, ProblemBox, Shown, When } from "../parts/basics";
import { FormFields, read, start, type Values } from "../parts/form";
import { link } from "../route";
import { settings } from "../settings";
import { words } from "../text";

export function TaskView({ id }: { id: string }): JSX.Element {
  const task = useLoad((signal) => ask<TaskWithForms>(`tasks/${path(id)}`, { signal }), [id]);
  const doing = useDoing();
  const [outcome, tell] = useState<TaskOutcome>();
  const act = async (work: () => Promise<unknown>) => {
    await doing.run(work);
    task.reload();
  };
  return (
    <>
      <h1>{task.data?.title ?? "Task"}</h1>
      <Shown of={task}>
        {(found) => (
          <>
            <About task={found} />
            {!settings.actor && !settings.token && (
              <p class="note">
                Say who you are in <a href={link(["settings"])}>the settings</a>: nobody can take or answer a task unnamed.
              </p>
            )}
            <Refused doing={doing} task={found} />
            {outcome && <Told outcome={outcome} />}
            {found.status === "open" && <Claim task={found} doing={doing} act={act} />}
            {Object.keys(found.data).length > 0 && (
              <Card title="What it is about" wide>
                <Fields of={found.data} />
              </Card>
            )}
            {found.status === "open" && (
              <div class="two">
                {found.forms.map((form) => (
                  <Answer
                    key={form.answer}
                    form={form}
                    doing={doing}
                    onAnswer={(fields) => act(async () => tell(await send<TaskOutcome>(`task-answers/${path(id)}`, { answer: form.answer, fields })))}
                  />
                ))}
              </div>
            )}
            {found.status !== "open" && (
              <p class="note">
                {found.status === "answered" ? `Answered with ${found.answer ?? "?"} by ${found.answered_by ?? "?"}` : "Closed: its instance does not wait for it any more"}
                , <When time={found.ended_at} />.
              </p>
            )}
          </>
        )}
      </Shown>
    </>
  );
}

function About({ task }: { task: TaskWithForms }): JSX.Element {
  return (
    <dl class="facts">
      <div>
        <dt>Instance</dt>
        <dd>
          <a href={link(["instances", task.workflow, task.instance])}>
            {task.workflow}/{task.instance}
          </a>
        </dd>
      </div>
      <div>
        <dt>Asked of</dt>
        <dd>{[task.role, task.person].filter(Boolean).join(", ") || "anybody"}</dd>
      </div>
      {task.excludes.length > 0 && (
        <div>
          <dt>But not of</dt>
          <dd>{task.excludes.join(", ")}</dd>
        </div>
      )}
      <div>
        <dt>Opened</dt>
        <dd>
          <When time={task.opened_at} />
        </dd>
      </div>
      <div>
        <dt>Due</dt>
        <dd class={task.overdue ? "error-text" : ""}>
          <When time={task.due_at} />
        </dd>
      </div>
      <div>
        <dt>Taken by</dt>
        <dd>{task.claimed_by ?? "nobody"}</dd>
      </div>
    </dl>
  );
}

/** A refusal is explained with the rules of the task beside it, unless it was the workflow that refused what was said. */
function Refused({ doing, task }: { doing: Doing; task: TaskWithForms }): JSX.Element | null {
  if (!doing.problem) return null;
  const rules = [
    task.role && `It is asked of the role ${task.role}.`,
    task.person && `It is asked of ${task.person}.`,
    task.excludes.length > 0 && `${task.excludes.join(", ")} may not answer it: who made something does not check it.`,
    task.claimed_by && `${task.claimed_by} has taken it.`,
  ].filter(Boolean);
  return (
    <>
      <ProblemBox problem={doing.problem} />
      {doing.problem.status === 409 && doing.problem.reason !== "guard" && rules.length > 0 && (
        <ul class="note">
          {rules.map((rule) => (
            <li key={rule}>{rule}</li>
          ))}
        </ul>
      )}
    </>
  );
}

function Told({ outcome }: { outcome: TaskOutcome }): JSX.Element {
  return (
    <p class="note good" role="status">
      {outcome.first ? `Answered with ${outcome.answer}.` : `${outcome.answered_by} was first, with ${outcome.answer}; nothing was changed.`}
      {!outcome.first && outcome.status === "accepted" && " That answer waits to be taken: if it is refused, the task is open again."}
    </p>
  );
}

function Claim({ task, doing, act }: { task: TaskWithForms; doing: Doing; act: (work: () => Promise<unknown>) => Promise<void> }): JSX.Element {
  const [to, set] = useState("");
  const where = `task-claims/${path(task.id)}`;
  return (
    <div class="bar">
      {task.claimed_by ? (
        <button type="button" disabled={doing.busy} onClick={() => act(() => ask(where, { method: "DELETE" }))}>
          Give it back
        </button>
      ) : (
        <button type="button" disabled={doing.busy} onClick={() => act(() => send(where))}>
          Take it
        </button>
      )}
      <form
        class="inline"
        onSubmit={(event) => {
          event.preventDefault();
          void act(() => send(`task-delegations/${path(task.id)}`, { to: to.trim() }));
        }}
      >
        <label class="inline">
          Hand it to
          <input value={to} onInput={(event) => set(event.currentTarget.value)} required />
        </label>
        <button type="submit" disabled={doing.busy || !to.trim()}>
          Hand over
        </button>
      </form>
    </div>
  );
}

function Answer({ form, doing, onAnswer }: { form: Form; doing: Doing; onAnswer: (fields: Record<string, unknown>) => Promise<void> }): JSX.Element {
  const [values, set] = useState<Values>(() => start(form));
  const [wrong, mark] = useState<Problem>();
  const submit = () => {
    try {
      mark(undefined);
      void onAnswer(read(form, values));
    } catch (error) {
      mark(error instanceof Problem ? error : new Problem(-1, "not understood", String(error)));
    }
  };
  return (
    <Card title={words(form.answer)}>
      <form
        class="fields"
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <FormFields form={form} values={values} onChange={(name, value) => set({ ...values, [name]: value })} />
        <ProblemBox problem={wrong} />
        <div class="actions">
          <button type="submit" class={form.rejects ? "danger" : "main"} disabled={doing.busy}>
            {words(form.answer)}
          </button>
        </div>
      </form>
    </Card>
  );
}
