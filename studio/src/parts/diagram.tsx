// The diagram of a workflow: its states and the steps between them, as the code says, as they happened, or both.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ask, path } from "../api";
import type { DiagramDocument, DiagramNode, DiagramStep } from "../documents";
import { useLoad } from "../hooks";
import { link } from "../route";
import { amount, duration } from "../text";
import { Shown } from "./basics";
import { GraphView, type Graph } from "./graph";

interface Asked {
  name: string;
  source?: string;
  from?: string | undefined;
  at?: string | undefined;
}

export function WorkflowDiagram({ name, source = "code", from, at }: Asked): JSX.Element {
  const diagram = useLoad((signal) => ask<{ diagram: DiagramDocument }>(`workflows/${path(name)}/diagram`, { query: { from: source, format: "json" }, signal }), [name, source]);
  return <Shown of={diagram}>{(found) => <Drawn diagram={found.diagram} from={from} at={at} />}</Shown>;
}

function Drawn({ diagram, from, at }: { diagram: DiagramDocument; from?: string | undefined; at?: string | undefined }): JSX.Element {
  const graph = useMemo(() => graphOf(diagram), [diagram]);
  return (
    <>
      <GraphView graph={graph} label={`The states of ${diagram.workflow}`} at={at} from={from} />
      {diagram.notes.map((note) => (
        <p key={note} class="faint">
          {note}
        </p>
      ))}
    </>
  );
}

export function graphOf(diagram: DiagramDocument): Graph {
  return {
    nodes: diagram.nodes.map((node) => ({
      id: node.name,
      title: node.kind === "begin" ? "" : node.name,
      lines: node.kind === "state" ? figures(node) : [],
      kind: node.kind === "state" ? node.seen : node.kind,
      hint: [node.doc, node.seen === "code" && "never visited", node.seen === "history" && "not in the code any more"].filter(Boolean).join("\n"),
      ...(node.kind === "state" ? { href: link(["instances"], { workflow: diagram.workflow, state: node.name }) } : {}),
    })),
    edges: diagram.arrows.map((arrow) => ({
      from: arrow.source,
      to: arrow.target,
      labels: arrow.steps.map(label),
      kind: seen(arrow.steps),
      hint: arrow.steps.map(told).join("\n"),
    })),
  };
}

function figures(node: DiagramNode): string[] {
  const said = [
    node.visits === null ? "" : `${amount(node.visits)} visits`,
    node.now ? `${amount(node.now)} now` : "",
    node.dwell_seconds === null ? "" : duration(node.dwell_seconds),
  ].filter(Boolean);
  return said.length ? [said.join(" · ")] : [];
}

function label(step: DiagramStep): string {
  return `${step.message}${step.then ? ` → ${step.then}` : ""}${step.count ? ` ×${amount(step.count)}` : ""}${step.guards.length === 1 ? ` [${step.guards[0]}]` : ""}`;
}

function told(step: DiagramStep): string {
  const never = { code: "never happened", history: "not in the code: older code did it", both: "" }[step.seen];
  return [label(step), ...(step.guards.length > 1 ? step.guards : []), ...step.outputs, ...step.places, never].filter(Boolean).join(" · ");
}

function seen(steps: DiagramStep[]): string {
  const found = new Set(steps.map((step) => step.seen));
  return found.size === 1 ? [...found].join("") : "both";
}
