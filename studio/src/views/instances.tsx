// Instances: found among a million, and operated on many at a time.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask, type Query } from "../api";
import type { AttributeName, InstanceInfo, WorkflowDocument } from "../documents";
import { useAmended, useChanges, useLoad } from "../hooks";
import { Empty, Loading, LookAgain, ProblemBox, Status, When } from "../parts/basics";
import { usePages, VirtualRows } from "../parts/list";
import { amend, link, type Route } from "../route";
import { amount, brief, several } from "../text";
import { conditions } from "./attributes";
import { BulkDialog, BulkUnderWay } from "./bulk";
import { STATUSES } from "./statuses";

const TEXTS = ["prefix", "workflow_version", "state", "error", "attribute", "since", "until", "began_since", "began_until"] as const;
const TYPING_MS = 250;

/** What the address asks for, as the server understands it. Attributes are several conditions, with commas between them. */
function searchOf(query: URLSearchParams): Query {
  const found: Query = {};
  for (const name of ["workflow", "status", ...TEXTS]) {
    const value = query.get(name)?.trim();
    if (!value) continue;
    if (name === "attribute") found[name] = conditions(value);
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
  const list = usePages<InstanceInfo>("instances", { ...search, newest: route.query.get("order") !== "oldest" });
  const changes = useChanges((now) => now.instances);
  const stats = changes.figures;
  const total = Object.values(stats.data?.instances ?? {}).reduce((sum, count) => sum + count, 0);
  const look = () => {
    changes.seen();
    stats.reload();
    list.restart();
  };
  const narrowed = Object.keys(search).length > 0;
  return (
    <>
      <h1>Instances</h1>
      <Filters route={route} />
      <div class="bar">
        <span role="status">
          {list.more ? `the first ${amount(list.items.length)} found` : several(list.items.length, "instance")}
          {stats.data && <span class="faint"> of {amount(total)} in all</span>}
        </span>
        {narrowed && <a href={link(["instances"])}>Show all</a>}
        <span class="grow" />
        <select aria-label="Order" value={route.query.get("order") ?? ""} onChange={(event) => amend(route, { order: event.currentTarget.value || undefined })}>
          <option value="">newest first</option>
          <option value="oldest">oldest first</option>
        </select>
        <LookAgain changed={changes.changed} onLook={look} busy={list.loading} />
        <button type="button" onClick={() => operate(true)} disabled={!list.items.length}>
          Operate on all found …
        </button>
      </div>
      <BulkUnderWay />
      <ProblemBox problem={list.problem} />
      {list.items.length > 0 && <Found list={list} known={route.query.toString()} />}
      {!list.items.length && !list.more && <Empty>{narrowed ? "No instance is like that." : "There are no instances yet: a message that begins one makes the first."}</Empty>}
      {!list.items.length && list.more && !list.problem && <Loading what="Looking" />}
      {bulk && (
        <BulkDialog
          search={search}
          onClose={() => {
            operate(false);
            look();
          }}
        />
      )}
    </>
  );
}

function Found({ list, known }: { list: ReturnType<typeof usePages<InstanceInfo>>; known: string }): JSX.Element {
  const seen = (_: number, last: number) => {
    if (last > list.items.length - 50) list.load();
  };
  return (
    <VirtualRows
      count={list.items.length}
      label="Instances"
      known={`instances ${known}`}
      onSeen={seen}
      head={["Instance", "Status", "State", "Workflow version", "Position", "Updated", "Error"]}
      row={(index) => <Row instance={list.items[index]} />}
    />
  );
}

function Row({ instance }: { instance: InstanceInfo | undefined }): JSX.Element | null {
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
        {amount(instance.workflow_version)}
      </span>
      <span role="cell" class="number">
        {amount(instance.position)}
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
  const attributes = useLoad((signal) => ask<AttributeName[]>("attributes", { signal }), []);
  const hint = attributes.data ? example(attributes.data) : "amount>=1000, zip='0815'";
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
        Workflow version
        <Typed name="workflow_version" route={route} placeholder="2" />
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
        <Typed name="attribute" route={route} placeholder={hint} list="attributes" />
        <datalist id="attributes">
          {attributes.data?.map((one) => (
            <option key={one.name} value={`${one.name}=`} />
          ))}
        </datalist>
      </label>
      <details open={TEXTS.slice(5).some((name) => route.query.has(name))}>
        <summary>Times</summary>
        <Times route={route} onChange={change} />
      </details>
    </form>
  );
}

const EXAMPLES = { text: "='…'", number: ">=100", flag: "=true", time: ">=2026-01-31T09:00Z" };

/** How conditions are written, with the names that there are. */
function example(names: AttributeName[]): string {
  return names.slice(0, 2).map((one) => `${one.name}${EXAMPLES[one.kind]}`).join(", ") || "there are none";
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
function Typed({ name, route, placeholder, search, list }: { name: string; route: Route; placeholder: string; search?: boolean; list?: string }): JSX.Element {
  const [text, set] = useAmended(route.query.get(name) ?? "", (typed) => amend(route, { [name]: typed || undefined }), TYPING_MS);
  return (
    <input
      type="search"
      value={text}
      placeholder={placeholder}
      onInput={(event) => set(event.currentTarget.value)}
      spellcheck={false}
      autocomplete="off"
      {...(search ? { "data-search": true } : {})}
      {...(list ? { list } : {})}
    />
  );
}
