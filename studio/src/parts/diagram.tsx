// The diagram of a workflow: its states and the steps between them, as the code says, as they happened, or both.

import type { JSX } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { ask, path } from "../api";
import type { Diagram, Node, Step } from "../documents";
import { useLoad } from "../hooks";
import { link } from "../route";
import { amount, duration, shortType } from "../text";
import { Shown } from "./basics";
import { expectGraph, GraphView, type Graph } from "./graph";

interface Asked {
  name: string;
  source?: string;
  from?: string | undefined;
  at?: string | undefined;
  /** A map in a small place: there are no words beside it. */
  small?: boolean;
}

export function WorkflowDiagram({ name, source = "code", from, at, small }: Asked): JSX.Element {
  useEffect(expectGraph, []);
  const diagram = useLoad((signal) => ask<{ diagram: Diagram }>(`workflows/${path(name)}/diagram`, { query: { from: source, format: "json" }, signal }), [name, source]);
  return <Shown of={diagram}>{(found) => <Drawn diagram={found.diagram} from={from} at={at} small={small ?? false} />}</Shown>;
}

interface Told {
  diagram: Diagram;
  from: string | undefined;
  at: string | undefined;
  small: boolean;
}

function Drawn({ diagram, from, at, small }: Told): JSX.Element {
  const graph = useMemo(() => graphOf(diagram), [diagram]);
  return (
    <>
      <GraphView graph={graph} label={`The states of ${diagram.workflow}`} at={at} from={from} />
      {!small && <AsTable diagram={diagram} />}
      {!small &&
        diagram.notes.map((note) => (
          <p key={note} class="faint">
            {note}
          </p>
        ))}
    </>
  );
}

/** The same in words: for who does not see it, or wants to read all of a long label. */
function AsTable({ diagram }: { diagram: Diagram }): JSX.Element {
  const known = new Map(diagram.nodes.map((node) => [node.name, node.kind === "begin" ? "the beginning" : node.name]));
  return (
    <details>
      <summary>As a table</summary>
      <div class="scroll">
        <table aria-label="Steps">
          <thead>
            <tr>
              <th>From</th>
              <th>By</th>
              <th>To</th>
              <th>Decides</th>
              <th class="number">happened</th>
            </tr>
          </thead>
          <tbody>
            {diagram.arrows.flatMap((arrow) =>
              arrow.steps.map((step, index) => (
                <tr key={`${arrow.source} ${arrow.target} ${index}`}>
                  <td>{known.get(arrow.source)}</td>
                  <td>
                    {step.message}
                    {step.guards.length > 0 && <div class="faint">{step.guards.join(" · ")}</div>}
                  </td>
                  <td>{known.get(arrow.target)}</td>
                  <td>{step.outputs.join(", ") || "–"}</td>
                  <td class="number">{step.seen === "code" && diagram.source !== "code" ? "never" : amount(step.count)}</td>
                </tr>
              )),
            )}
          </tbody>
        </table>
      </div>
    </details>
  );
}

export function graphOf(diagram: Diagram): Graph {
  const often = (steps: Step[]) => steps.reduce((sum, step) => sum + (step.count ?? 0), 0);
  const most = Math.max(1, ...diagram.arrows.map((arrow) => often(arrow.steps)));
  return {
    nodes: diagram.nodes.map((node) => ({
      id: node.name,
      title: node.kind === "begin" ? "" : node.name,
      lines: node.kind === "state" ? figures(node) : [],
      kind: node.kind === "state" ? `${node.seen} ${node.ends.length ? "ending" : ""}` : node.kind,
      hint: [node.doc, node.ends.length > 0 && `may end here: ${node.ends.join(", ")}`, node.seen === "code" && "never visited", node.seen === "history" && "not in the code any more"].filter(Boolean).join("\n"),
      ...(node.kind === "state" ? { href: link(["instances"], { workflow: diagram.workflow, state: node.name }) } : {}),
    })),
    edges: diagram.arrows.map((arrow) => ({
      from: arrow.source,
      to: arrow.target,
      labels: arrow.steps.map(label),
      kind: seen(arrow.steps),
      weight: often(arrow.steps) / most,
      hint: arrow.steps.map(told).join("\n"),
    })),
  };
}

function figures(node: Node): string[] {
  const said = [
    node.visits === null ? "" : `${amount(node.visits)} visits`,
    node.now ? `${amount(node.now)} now` : "",
    node.dwell_seconds === null ? "" : duration(node.dwell_seconds),
  ].filter(Boolean);
  return said.length ? [said.join(" · ")] : [];
}

function label(step: Step): string {
  return `${shortType(step.message)}${step.then ? ` → ${step.then}` : ""}${step.count ? ` ×${amount(step.count)}` : ""}${step.guards.length === 1 ? ` [${step.guards[0]}]` : ""}`;
}

function told(step: Step): string {
  const never = { code: "never happened", history: "not in the code: older code did it", both: "" }[step.seen];
  return [label(step), step.message !== shortType(step.message) && step.message, ...(step.guards.length > 1 ? step.guards : []), ...step.outputs, ...step.places, never].filter(Boolean).join(" · ");
}

function seen(steps: Step[]): string {
  const found = new Set(steps.map((step) => step.seen));
  return found.size === 1 ? [...found].join("") : "both";
}
