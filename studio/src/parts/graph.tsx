// Boxes and lines. Where they lie is computed by dagre, which is loaded when the first graph is looked at.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Loading } from "./basics";

export interface GraphNode {
  id: string;
  title: string;
  lines?: string[];
  kind?: string;
  href?: string;
  hint?: string;
}

export interface GraphEdge {
  from: string;
  to: string;
  labels: string[];
  kind?: string;
  hint?: string;
}

export interface Graph {
  nodes: GraphNode[];
  edges: GraphEdge[];
}

interface Placed {
  width: number;
  height: number;
  nodes: (GraphNode & { x: number; y: number; width: number; height: number })[];
  edges: (GraphEdge & { path: string; x: number; y: number })[];
}

const CHARACTER_PIXELS = 7.2;
const LINE_PIXELS = 16;
const LABELS_SHOWN = 4;
const LABEL_CHARACTERS = 40;
const MARGIN = 12;

function wide(texts: string[]): number {
  return Math.max(1, ...texts.map((text) => text.length)) * CHARACTER_PIXELS;
}

function cut(text: string): string {
  return text.length > LABEL_CHARACTERS ? `${text.slice(0, LABEL_CHARACTERS - 1)}…` : text;
}

export function shownLabels(labels: string[]): string[] {
  if (labels.length <= LABELS_SHOWN) return labels.map(cut);
  return [...labels.slice(0, LABELS_SHOWN - 1).map(cut), `and ${labels.length - LABELS_SHOWN + 1} more`];
}

async function place(graph: Graph): Promise<Placed> {
  const { graphlib, layout } = (await import("@dagrejs/dagre")).default;
  const sheet = new graphlib.Graph({ multigraph: true });
  sheet.setGraph({ rankdir: "TB", nodesep: 36, ranksep: 44, marginx: MARGIN, marginy: MARGIN });
  for (const node of graph.nodes) {
    const round = node.kind === "begin" || node.kind === "end";
    const lines = [cut(node.title), ...(node.lines ?? []).map(cut)];
    const size = round && !node.title ? { width: 18, height: 18 } : { width: wide(lines) + 28, height: lines.length * LINE_PIXELS + 16 };
    sheet.setNode(node.id, size);
  }
  graph.edges.forEach((edge, index) => {
    const labels = shownLabels(edge.labels);
    const size = labels.length ? { width: wide(labels) * 0.9 + 8, height: labels.length * 14 + 4 } : { width: 0, height: 0 };
    sheet.setEdge(edge.from, edge.to, { ...size, labelpos: "c" }, String(index));
  });
  layout(sheet);
  const box = sheet.graph() as { width?: number; height?: number };
  return {
    width: box.width ?? 0,
    height: box.height ?? 0,
    nodes: graph.nodes.map((node) => ({ ...node, ...(sheet.node(node.id) as { x: number; y: number; width: number; height: number }) })),
    edges: graph.edges.map((edge, index) => {
      const found = sheet.edge({ v: edge.from, w: edge.to, name: String(index) }) as { points: { x: number; y: number }[]; x?: number; y?: number };
      const middle = found.points[Math.floor(found.points.length / 2)] ?? { x: 0, y: 0 };
      const at = { x: found.x ?? middle.x, y: found.y ?? middle.y };
      const own = sheet.node(edge.from) as { x: number; y: number; width: number; height: number };
      return { ...edge, ...at, path: edge.from === edge.to ? loop(own, at.x) : curve(found.points) };
    }),
  };
}

/** A line from a box back to it, around its label to the right of it. */
function loop(box: { x: number; y: number; width: number; height: number }, labelX: number): string {
  const side = box.x + box.width / 2;
  const far = side + Math.max(24, (labelX - side) * 1.33);
  return `M${side} ${box.y - box.height / 4}C${far} ${box.y - box.height} ${far} ${box.y + box.height} ${side} ${box.y + box.height / 4}`;
}

/** A line through points, rounded at each of them. */
export function curve(points: { x: number; y: number }[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  const said = [`M${first.x.toFixed(1)} ${first.y.toFixed(1)}`];
  rest.forEach((point, index) => {
    const next = rest[index + 1];
    if (!next) said.push(`L${point.x.toFixed(1)} ${point.y.toFixed(1)}`);
    else said.push(`Q${point.x.toFixed(1)} ${point.y.toFixed(1)} ${((point.x + next.x) / 2).toFixed(1)} ${((point.y + next.y) / 2).toFixed(1)}`);
  });
  return said.join("");
}

interface Drawn {
  graph: Graph;
  label: string;
  /** The node that is emphasised, and where it was come from. */
  at?: string | undefined;
  from?: string | undefined;
}

export function GraphView({ graph, label, at, from }: Drawn): JSX.Element {
  const [placed, set] = useState<Placed>();
  const [failed, fail] = useState("");
  useEffect(() => {
    let current = true;
    place(graph).then(
      (found) => current && set(found),
      (error: unknown) => current && fail(String(error)),
    );
    return () => {
      current = false;
    };
  }, [graph]);
  if (failed) return <p class="problem">It cannot be drawn: {failed}</p>;
  if (!placed) return <Loading what="Drawing" />;
  return (
    <div class="graph" tabIndex={0} role="group" aria-label={label}>
      <svg viewBox={`0 0 ${placed.width} ${placed.height}`} width={placed.width} height={placed.height} role="img" aria-label={label}>
        <defs>
          <marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="8" markerHeight="8" orient="auto">
            <path d="M0 0L8 4L0 8z" class="tip" />
          </marker>
        </defs>
        {placed.edges.map((edge, index) => (
          <Line key={index} edge={edge} taken={from !== undefined && edge.from === from && edge.to === at} />
        ))}
        {placed.nodes.map((node) => (
          <Box key={node.id} node={node} at={node.id === at} />
        ))}
      </svg>
    </div>
  );
}

function Line({ edge, taken }: { edge: Placed["edges"][number]; taken: boolean }): JSX.Element {
  const labels = shownLabels(edge.labels);
  return (
    <g class={`line ${edge.kind ?? ""} ${taken ? "taken" : ""}`}>
      <title>{edge.hint ?? edge.labels.join("\n")}</title>
      <path d={edge.path} marker-end="url(#tip)" />
      {labels.map((text, index) => (
        <text key={index} x={edge.x} y={edge.y + (index - (labels.length - 1) / 2) * 14 + 4}>
          {text}
        </text>
      ))}
    </g>
  );
}

function Box({ node, at }: { node: Placed["nodes"][number]; at: boolean }): JSX.Element {
  const lines = [node.title, ...(node.lines ?? [])].map(cut);
  const inside = (
    <g class={`box ${node.kind ?? ""} ${at ? "at" : ""}`} {...(at ? { "aria-current": "true" } : {})}>
      {node.hint && <title>{node.hint}</title>}
      <rect x={node.x - node.width / 2} y={node.y - node.height / 2} width={node.width} height={node.height} rx={node.kind === "begin" || node.kind === "end" ? node.height / 2 : 6} />
      {lines.map((text, index) => (
        <text key={index} class={index ? "small" : ""} x={node.x} y={node.y + (index - (lines.length - 1) / 2) * LINE_PIXELS + 4}>
          {text}
        </text>
      ))}
    </g>
  );
  return node.href ? <a href={node.href}>{inside}</a> : inside;
}
