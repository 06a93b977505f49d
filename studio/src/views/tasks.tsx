// Tasks: a person's inbox.

import type { JSX } from "preact";
import type { TaskDocument } from "../documents";
import { Empty, ProblemBox, When } from "../parts/basics";
import { usePages, VirtualRows } from "../parts/list";
import { amend, link, type Route } from "../route";
import { settings } from "../settings";
import { amount, several } from "../text";

export function TasksView({ route }: { route: Route }): JSX.Element {
  const query = route.query;
  const list = usePages<TaskDocument>("tasks", {
    role: query.get("role")?.split(",").map((one) => one.trim()).filter(Boolean) ?? [],
    person: query.get("person"),
    workflow: query.get("workflow"),
    overdue: query.get("overdue") === "yes",
  });
  return (
    <>
      <h1>Tasks</h1>
      <Filters route={route} />
      <div class="bar">
        <span role="status">{list.more ? `the first ${amount(list.items.length)}` : several(list.items.length, "open task")}</span>
        <span class="grow" />
        <button type="button" onClick={list.restart}>
          Look again
        </button>
      </div>
      <ProblemBox problem={list.problem} />
      {!list.items.length && !list.more && <Empty>Nothing is asked of anybody.</Empty>}
      {list.items.length > 0 && (
        <VirtualRows
          count={list.items.length}
          label="Tasks"
          onSeen={(_, last) => {
            if (last > list.items.length - 50) list.load();
          }}
          head={["Task", "Instance", "Asked of", "Due", "Taken by"].map((title) => (
            <span key={title} role="columnheader">
              {title}
            </span>
          ))}
          row={(index) => <Row task={list.items[index]} />}
        />
      )}
    </>
  );
}

function Row({ task }: { task: TaskDocument | undefined }): JSX.Element | null {
  if (!task) return null;
  return (
    <>
      <span role="cell" class="identity">
        <a href={link(["tasks", task.id])} data-row>
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
      {text("workflow", "Workflow", "")}
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
