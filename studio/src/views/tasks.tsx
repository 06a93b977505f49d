// Tasks: a person's inbox.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask, send } from "../api";
import type { Task, WorkflowDocument } from "../documents";
import { useDoing, useEvery, useLoad } from "../hooks";
import { Empty, Loading, LookAgain, ProblemBox, When } from "../parts/basics";
import { usePages, VirtualRows } from "../parts/list";
import { amend, go, link, type Route } from "../route";
import { settings } from "../settings";
import { amount, several } from "../text";

const REFRESH_SECONDS = 10;
const KEPT_FRESH = 200;

export function TasksView({ route }: { route: Route }): JSX.Element {
  const query = route.query;
  const roles = query.get("role")?.split(",").map((one) => one.trim()).filter(Boolean) ?? [];
  const list = usePages<Task>("tasks", {
    role: roles,
    person: query.get("person"),
    workflow: query.get("workflow"),
    overdue: query.get("overdue") === "yes",
  });
  // An inbox is looked at to see what comes; who has scrolled on reads, and is left alone.
  useEvery(REFRESH_SECONDS, () => {
    if (!list.loading && list.items.length <= KEPT_FRESH) list.restart();
  });
  const narrowed = ["role", "person", "workflow", "overdue"].some((name) => query.get(name));
  return (
    <>
      <h1>Tasks</h1>
      <Filters route={route} />
      <div class="bar">
        <span role="status">{list.more ? `the first ${amount(list.items.length)}` : several(list.items.length, "open task")}</span>
        <span class="grow" />
        <LookAgain onLook={list.restart} busy={list.loading} />
        <PickNext roles={roles.length ? roles : rolesOf(list.items)} />
      </div>
      <ProblemBox problem={list.problem} />
      {!list.items.length && !list.more && <Empty>{narrowed ? "No open task is like that." : "Nothing is asked of anybody."}</Empty>}
      {!list.items.length && list.more && !list.problem && <Loading what="Looking" />}
      {list.items.length > 0 && (
        <VirtualRows
          count={list.items.length}
          label="Tasks"
          known={`tasks ${query.toString()}`}
          onSeen={(_, last) => {
            if (last > list.items.length - 50) list.load();
          }}
          head={["Task", "Instance", "Asked of", "Due", "Taken by"]}
          row={(index) => <Row task={list.items[index]} />}
        />
      )}
    </>
  );
}

function rolesOf(tasks: Task[]): string[] {
  return [...new Set(tasks.map((task) => task.role).filter((role) => role !== null))].sort();
}

/** Take the next task of a role that nobody has: who picks at the same time gets another one. */
function PickNext({ roles }: { roles: string[] }): JSX.Element | null {
  const [chosen, choose] = useState("");
  const [said, say] = useState("");
  const doing = useDoing();
  const role = roles.includes(chosen) ? chosen : roles[0];
  if (role === undefined) return null;
  const pick = () =>
    doing.run(async () => {
      const [task] = await send<Task[]>("task-picks", { role, count: 1 });
      if (task) go(link(["tasks", task.id]));
      else say(`Nothing of ${role} is free.`);
    });
  return (
    <>
      <span class="faint" role="status">
        {said}
      </span>
      {roles.length > 1 && (
        <select value={role} aria-label="Role" onChange={(event) => choose(event.currentTarget.value)}>
          {roles.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      )}
      <button type="button" class="main" onClick={pick} disabled={doing.busy}>
        Take the next of {role}
      </button>
      <ProblemBox problem={doing.problem} />
    </>
  );
}

function Row({ task }: { task: Task | undefined }): JSX.Element | null {
  if (!task) return null;
  return (
    <>
      <span role="cell">
        <a href={link(["tasks", task.id])} data-row title={task.title}>
          {task.title}
        </a>
      </span>
      <span role="cell" class="faint">
        {task.workflow}/{task.instance}
      </span>
      <span role="cell">{[task.role, task.person].filter(Boolean).join(", ") || "anybody"}</span>
      <span role="cell" class={task.overdue ? "error-text" : ""}>
        {task.overdue && "overdue, "}
        <When time={task.due_at} />
      </span>
      <span role="cell">{task.claimed_by ?? "–"}</span>
    </>
  );
}

function Filters({ route }: { route: Route }): JSX.Element {
  const workflows = useLoad((signal) => ask<WorkflowDocument[]>("workflows", { signal }), []);
  const text = (name: string, title: string, hint: string) => (
    <label>
      {title}
      <input
        type="search"
        value={route.query.get(name) ?? ""}
        placeholder={hint}
        onChange={(event) => amend(route, { [name]: event.currentTarget.value.trim() || undefined })}
        {...(name === "role" ? { "data-search": true } : {})}
      />
    </label>
  );
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      {text("role", "Roles", "manager, clerk")}
      {text("person", "Person", settings.actor || "ann")}
      <label>
        Workflow
        <select value={route.query.get("workflow") ?? ""} onChange={(event) => amend(route, { workflow: event.currentTarget.value || undefined })}>
          <option value="">any</option>
          {workflows.data?.map((workflow) => <option key={workflow.name}>{workflow.name}</option>)}
        </select>
      </label>
      <label class="inline">
        <input
          type="checkbox"
          checked={route.query.get("overdue") === "yes"}
          onChange={(event) => amend(route, { overdue: event.currentTarget.checked ? "yes" : undefined })}
        />
        overdue only
      </label>
    </form>
  );
}
