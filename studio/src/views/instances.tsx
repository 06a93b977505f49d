// Instances: found among a million, and operated on many at a time.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, type Query } from "../api";
import type { InstanceDocument, StatsDocument, WorkflowDocument } from "../documents";
import { useLoad, useSettled } from "../hooks";
import { Empty, ProblemBox, Status, When } from "../parts/basics";
import { usePages, VirtualRows } from "../parts/list";
import { amend, link, type Route } from "../route";
import { amount, brief, several } from "../text";
import { BulkDialog } from "./bulk";

export const STATUSES = ["running", "suspended", "compensating", "completed", "failed", "cancelled", "terminated"];
const TEXTS = ["prefix", "state", "error", "attribute", "since", "until", "began_since", "began_until"] as const;
const TYPING_MS = 250;

/** What the address asks for, as the server understands it. Attributes are several conditions, with commas between them. */
export function searchOf(query: URLSearchParams): Query {
  const found: Query = {};
  for (const name of ["workflow", "status", ...TEXTS]) {
    const value = query.get(name)?.trim();
    if (!value) continue;
    if (name === "attribute") found[name] = value.split(",").map((one) => one.trim()).filter(Boolean);
    else if (/since|until/.test(name)) found[name] = moment(value);
    else found[name] = value;
  }
  return found;
}

/** A time of the form is local; the server is told which moment that is. */
function moment(value: string): string {
  const time = new Date(value);
  return Number.isNaN(time.getTime()) ? value : time.toISOString();
}

export function InstancesView({ route }: { route: Route }): JSX.Element {
  const search = searchOf(route.query);
  const [bulk, operate] = useState(false);
  const list = usePages<InstanceDocument>("instances", search);
  const stats = useLoad((signal) => ask<StatsDocument>("stats", { signal }), []);
  const total = Object.values(stats.data?.instances ?? {}).reduce((sum, count) => sum + count, 0);
  return (
    <>
      <h1>Instances</h1>
      <Filters route={route} />
      <div class="bar">
        <span role="status">
          {list.more ? `the first ${amount(list.items.length)} found` : several(list.items.length, "instance")}
          {stats.data && <span class="faint"> of {amount(total)} in all</span>}
        </span>
        <span class="grow" />
        <button type="button" onClick={list.restart} disabled={list.loading}>
          Look again
        </button>
        <button type="button" onClick={() => operate(true)} disabled={!list.items.length}>
          Operate on all found …
        </button>
      </div>
      <ProblemBox problem={list.problem} />
      {list.items.length > 0 && <Found list={list} />}
      {!list.items.length && !list.more && <Empty>No instance is like that.</Empty>}
      {!list.items.length && list.more && !list.problem && <p role="status">Looking …</p>}
      {bulk && (
        <BulkDialog
          search={search}
          onClose={() => {
            operate(false);
            list.restart();
          }}
        />
      )}
    </>
  );
}

function Found({ list }: { list: ReturnType<typeof usePages<InstanceDocument>> }): JSX.Element {
  const seen = (_: number, last: number) => {
    if (last > list.items.length - 50) list.load();
  };
  return (
    <VirtualRows
      count={list.items.length}
      label="Instances"
      onSeen={seen}
      head={["Instance", "Status", "State", "Version", "Updated", "Error"].map((title) => (
        <span key={title} role="columnheader">
          {title}
        </span>
      ))}
      row={(index) => <Row instance={list.items[index]} />}
    />
  );
}

function Row({ instance }: { instance: InstanceDocument | undefined }): JSX.Element | null {
  if (!instance) return null;
  return (
    <>
      <span role="cell" class="identity">
        <a href={link(["instances", instance.workflow, instance.id])} data-row>
          <span class="faint">{instance.workflow}/</span>
          {instance.id}
        </a>
      </span>
      <span role="cell">
        <Status status={instance.status} />
      </span>
      <span role="cell">{instance.state ?? "–"}</span>
      <span role="cell" class="number">
        {amount(instance.version)}
      </span>
      <span role="cell">
        <When time={instance.updated} />
      </span>
      <span role="cell" class="error-text" title={instance.error ?? ""}>
        {brief(instance.error ?? "")}
      </span>
    </>
  );
}

function Filters({ route }: { route: Route }): JSX.Element {
  const workflows = useLoad((signal) => ask<WorkflowDocument[]>("workflows", { signal }), []);
  const change = (name: string, value: string) => amend(route, { [name]: value || undefined });
  return (
    <form class="filters" role="search" onSubmit={(event) => event.preventDefault()}>
      <label>
        Id begins with
        <Typed name="prefix" route={route} placeholder="o-1" search />
      </label>
      <label>
        Workflow
        <select value={route.query.get("workflow") ?? ""} onChange={(event) => change("workflow", event.currentTarget.value)}>
          <option value="">any</option>
          {workflows.data?.map((workflow) => <option key={workflow.name}>{workflow.name}</option>)}
        </select>
      </label>
      <label>
        Status
        <select value={route.query.get("status") ?? ""} onChange={(event) => change("status", event.currentTarget.value)}>
          <option value="">any</option>
          {STATUSES.map((status) => (
            <option key={status}>{status}</option>
          ))}
        </select>
      </label>
      <label>
        State
        <Typed name="state" route={route} placeholder="AwaitingPayment" />
      </label>
      <label>
        Error contains
        <Typed name="error" route={route} placeholder="timeout" />
      </label>
      <label>
        Attributes
        <Typed name="attribute" route={route} placeholder="amount>=1000, zip='0815'" />
      </label>
      <details open={TEXTS.slice(4).some((name) => route.query.has(name))}>
        <summary>Times</summary>
        <Times route={route} onChange={change} />
      </details>
    </form>
  );
}

function Times({ route, onChange }: { route: Route; onChange: (name: string, value: string) => void }): JSX.Element {
  const names = { began_since: "Began since", began_until: "Began before", since: "Moved since", until: "Last moved before" };
  return (
    <div class="filters">
      {Object.entries(names).map(([name, title]) => (
        <label key={name}>
          {title}
          <input type="datetime-local" value={route.query.get(name) ?? ""} onChange={(event) => onChange(name, event.currentTarget.value)} />
        </label>
      ))}
    </div>
  );
}

/** A text that is asked for when the typing pauses. */
function Typed({ name, route, placeholder, search }: { name: string; route: Route; placeholder: string; search?: boolean }): JSX.Element {
  const given = route.query.get(name) ?? "";
  const [text, set] = useState(given);
  const settled = useSettled(text, TYPING_MS);
  useEffect(() => set(given), [given]);
  useEffect(() => {
    if (settled === text && settled !== given) amend(route, { [name]: settled || undefined });
  }, [settled]);
  return (
    <input
      type="search"
      value={text}
      placeholder={placeholder}
      onInput={(event) => set(event.currentTarget.value)}
      spellcheck={false}
      autocomplete="off"
      {...(search ? { "data-search": true } : {})}
    />
  );
}
