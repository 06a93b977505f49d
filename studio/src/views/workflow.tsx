// A workflow: drawn from its code and its history, checked, documented, and how its instances do.

import type { JSX } from "preact";
import { ask, path } from "../api";
import type { Advice, Figures, FindingDocument, FindingsDocument, Message, Subject, WorkflowDocument, WorkflowFigures } from "../documents";
import { useLoad } from "../hooks";
import { Card, Empty, Shown, Tabs } from "../parts/basics";
import { WorkflowDiagram } from "../parts/diagram";
import { amend, link, type Route } from "../route";
import { amount } from "../text";
import { WhatIfSample } from "./sample";
import { Bottlenecks, Variants } from "./figures";

export function WorkflowsView(): JSX.Element {
  const list = useLoad((signal) => ask<WorkflowDocument[]>("workflows", { signal }), []);
  return (
    <>
      <h1>Workflows</h1>
      <Shown of={list}>
        {(workflows) => (
          <div class="cards">
            {workflows.length === 0 && <Empty>This app has no workflow.</Empty>}
            {workflows.map((workflow) => (
              <Card key={workflow.name} title={workflow.name} side={<span class="faint">version {workflow.workflow_version}</span>}>
                <p>{workflow.purpose?.split("\n\n")[0] ?? ""}</p>
                <p class="faint break">begins with {workflow.begins.join(", ") || "nothing"}</p>
                <p>
                  <a href={link(["workflows", workflow.name])} data-row>
                    Look at it
                  </a>{" "}
                  · <a href={link(["instances"], { workflow: workflow.name })}>Its instances</a>
                </p>
              </Card>
            ))}
          </div>
        )}
      </Shown>
    </>
  );
}

const TABS = [
  { id: "diagram", title: "Diagram" },
  { id: "bottlenecks", title: "Bottlenecks" },
  { id: "ways", title: "Ways" },
  { id: "findings", title: "Findings" },
  { id: "what-if", title: "What if" },
  { id: "documentation", title: "Documentation" },
];

export function WorkflowView({ name, route }: { name: string; route: Route }): JSX.Element {
  const tab = route.query.get("tab") ?? "diagram";
  return (
    <>
      <header class="title">
        <h1>{name}</h1>
        <a href={link(["instances"], { workflow: name })}>its instances</a>
      </header>
      <Tabs tabs={TABS} at={tab} to={(id) => link(["workflows", name], { tab: id === "diagram" ? undefined : id })} label="About this workflow" />
      {tab === "diagram" && <Diagram name={name} route={route} />}
      {tab === "bottlenecks" && <WithFigures name={name}>{(figures, advice) => <Bottlenecks figures={figures} advice={advice} />}</WithFigures>}
      {tab === "ways" && <WithFigures name={name}>{(figures) => <Variants figures={figures} />}</WithFigures>}
      {tab === "findings" && <Findings name={name} />}
      {tab === "what-if" && <WhatIfSample name={name} />}
      {tab === "documentation" && <Documentation name={name} />}
    </>
  );
}

const SOURCES = { both: "code and history", code: "code", history: "history" };

function Diagram({ name, route }: { name: string; route: Route }): JSX.Element {
  const source = route.query.get("from") ?? "both";
  return (
    <>
      <label class="inline">
        Drawn from
        <select value={source} onChange={(event) => amend(route, { from: event.currentTarget.value })}>
          {Object.entries(SOURCES).map(([id, title]) => (
            <option key={id} value={id}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <Card title="States and steps" wide>
        <WorkflowDiagram name={name} source={source} />
        {source === "both" && <p class="faint">Dashed: in the code, but it never happened. Amber: it happened, but today's code does not do it.</p>}
      </Card>
    </>
  );
}

function WithFigures({ name, children }: { name: string; children: (figures: WorkflowFigures, advice: Advice[]) => JSX.Element }): JSX.Element {
  const figures = useLoad((signal) => ask<Figures>("analytics", { query: { workflow: name, variants: 20 }, signal }), [name]);
  return (
    <Shown of={figures} what="Counting">
      {(found) => {
        const own = found.workflows.find((one) => one.workflow === name);
        return own ? (
          <>
            <p class="faint">counted in {amount(found.instances)} instances</p>
            {children(own, found.advice)}
          </>
        ) : (
          <Empty>It has no instances yet.</Empty>
        );
      }}
    </Shown>
  );
}

function Findings({ name }: { name: string }): JSX.Element {
  const report = useLoad((signal) => ask<FindingsDocument>(`workflows/${path(name)}/findings`, { signal }), [name]);
  return (
    <Shown of={report} what="Reading the code">
      {(found) => (
        <>
          {!found.findings.length && <Empty>Nothing is wrong, as far as the code tells.</Empty>}
          {found.findings.map((finding, index) => (
            <Finding key={index} finding={finding} />
          ))}
          {found.intended.map((finding, index) => (
            <Finding key={index} finding={finding} intended={finding.reason} />
          ))}
        </>
      )}
    </Shown>
  );
}

function Finding({ finding, intended }: { finding: FindingDocument; intended?: string }): JSX.Element {
  return (
    <Card title={finding.what} wide side={<span class={finding.level === "error" ? "error-text" : "faint"}>{intended === undefined ? finding.level : "intended"}</span>}>
      <p>{intended === undefined ? finding.fix : intended}</p>
      <p class="faint">
        {finding.code} {finding.rule} · {finding.file}:{finding.line}
      </p>
    </Card>
  );
}

function Documentation({ name }: { name: string }): JSX.Element {
  const subject = useLoad((signal) => ask<Subject>(`workflows/${path(name)}/documentation`, { signal }), [name]);
  return <Shown of={subject}>{(found) => <Written subject={found} />}</Shown>;
}

function Written({ subject }: { subject: Subject }): JSX.Element {
  return (
    <div class="cards">
      {subject.machine.doc && (
        <Card title="What it is for" wide>
          <pre>{subject.machine.doc}</pre>
        </Card>
      )}
      <Card title="States">
        <dl>
          {subject.machine.states.map((state) => (
            <div key={state.name}>
              <dt>
                <b>{state.name}</b> {state.initial && <span class="faint">initial</span>} {state.ended && <span class="faint">may be the end</span>}
              </dt>
              <dd>{state.doc}</dd>
            </div>
          ))}
        </dl>
      </Card>
      <Messages title="Takes" messages={subject.machine.inputs} empty="It takes nothing." />
      <Messages title="Gives" messages={subject.machine.outputs} empty="It sends, publishes and replies nothing." />
      <Card title="Handlers">
        {!subject.handlers.length && <Empty>Nothing of it is carried out by a handler of this app.</Empty>}
        <ul class="plain">
          {subject.handlers.map((handler) => (
            <li key={handler.name}>
              <b>{handler.name}</b> {handler.subscribes ? "hears" : "carries out"} {handler.message}
              {handler.results.length > 0 && <> → {handler.results.join(" or ")}</>}
              <div class="faint">{[handler.doc, ...handler.policies].filter(Boolean).join(" · ")}</div>
            </li>
          ))}
        </ul>
      </Card>
      <Card title="Settings">
        <dl>
          {subject.settings.map(([title, value]) => (
            <div key={title}>
              <dt class="faint">{title}</dt>
              <dd>{value}</dd>
            </div>
          ))}
        </dl>
      </Card>
      <Card title="Other workflows">
        <Neighbours title="sends" others={subject.takers} empty="It writes to no other workflow." />
        <Neighbours title="takes" others={subject.senders} empty="No other workflow writes to it." />
      </Card>
    </div>
  );
}

function Messages({ title, messages, empty }: { title: string; messages: Message[]; empty: string }): JSX.Element {
  return (
    <Card title={title}>
      {!messages.length && <Empty>{empty}</Empty>}
      <dl>
        {messages.map((message) => (
          <div key={message.name}>
            <dt>
              <b>{message.name}</b>
            </dt>
            <dd>
              {message.doc}
              <div class="faint">{message.fields.map((field) => `${field.name}${field.required ? "" : "?"}: ${field.type}`).join(", ")}</div>
            </dd>
          </div>
        ))}
      </dl>
    </Card>
  );
}

function Neighbours({ title, others, empty }: { title: string; others: Record<string, string[]>; empty: string }): JSX.Element {
  const found = Object.entries(others);
  if (!found.length) return <Empty>{empty}</Empty>;
  return (
    <ul class="plain">
      {found.map(([message, names]) => (
        <li key={message}>
          {title} <b>{message}</b> {title === "sends" ? "to" : "from"}{" "}
          {names.map((name) => (
            <a key={name} href={link(["workflows", name])}>
              {name}{" "}
            </a>
          ))}
        </li>
      ))}
    </ul>
  );
}
