// Boxes and lines. Where they lie is computed by dagre, which is loaded when the first graph is looked at.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Loading } from "./basics";

interface GraphNode {
  id: string;
  title: string;
  lines?: string[];
  kind?: string;
  href?: string;
  hint?: string;
}

interface GraphEdge {
  from: string;
  to: string;
  labels: string[];
  kind?: string;
  hint?: string;
  /** How often it was gone, of the most that any was: 0 to 1. */
  weight?: number;
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
// Labels of lines are written smaller than those of boxes.
const LABEL_SCALE = 0.9;
const THICKEST_PIXELS = 3;

function wide(texts: string[]): number {
  return Math.max(1, ...texts.map((text) => text.length)) * CHARACTER_PIXELS;
}

function cut(text: string): string {
  return text.length > LABEL_CHARACTERS ? `${text.slice(0, LABEL_CHARACTERS - 1)}…` : text;
}

function shownLabels(labels: string[]): string[] {
  if (labels.length <= LABELS_SHOWN) return labels.map(cut);
  return [...labels.slice(0, LABELS_SHOWN - 1).map(cut), `and ${labels.length - LABELS_SHOWN + 1} more`];
}

const layouter = () => import("@dagrejs/dagre");

async function place(graph: Graph): Promise<Placed> {
  const { graphlib, layout } = (await layouter()).default;
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
    const size = labels.length ? { width: wide(labels) * LABEL_SCALE + 8, height: labels.length * 14 + 4 } : { width: 0, height: 0 };
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
      return edge.from === edge.to ? { ...edge, ...loop(own, at, shownLabels(edge.labels)) } : { ...edge, ...at, path: curve(found.points) };
    }),
  };
}

/** A line from a box back to it, with its label to the right of it. */
function loop(box: { x: number; y: number; width: number; height: number }, at: { x: number; y: number }, labels: string[]): { path: string; x: number; y: number } {
  const side = box.x + box.width / 2;
  const half = (wide(labels) * LABEL_SCALE) / 2;
  // A curve goes three quarters of the way to where it is drawn to.
  const reach = Math.max(18, at.x - half - side - 4);
  const far = side + reach / 0.75;
  const path = `M${side} ${box.y - box.height / 4}C${far} ${box.y - box.height * 0.8} ${far} ${box.y + box.height * 0.8} ${side} ${box.y + box.height / 4}`;
  return { path, x: side + reach + half + 4, y: box.y };
}

/** A line through points, rounded at each of them. */
function curve(points: { x: number; y: number }[]): string {
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

/** Something is going to be drawn: what draws it may come meanwhile. */
export function expectGraph(): void {
  void layouter().catch(() => undefined);
}

interface Drawn {
  graph: Graph;
  label: string;
  /** The node that is emphasised and kept in sight, and where it was come from. */
  at?: string | undefined;
  from?: string | undefined;
}

export function GraphView({ graph, label, at, from }: Drawn): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
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
  useEffect(() => {
    const node = placed?.nodes.find((one) => one.id === at) ?? placed?.nodes[0];
    if (node && box.current) centre(box.current, node);
  }, [placed, at]);
  if (failed) return <p class="problem">It cannot be drawn: {failed}</p>;
  if (!placed) return <Loading what="Drawing" />;
  return (
    <div class="graph" ref={box} tabIndex={0} role="figure" aria-label={label}>
      <svg viewBox={`0 0 ${placed.width} ${placed.height}`} width={placed.width} height={placed.height}>
        <defs>
          <marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="9" markerHeight="9" markerUnits="userSpaceOnUse" orient="auto">
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

/** Scroll a box, and nothing around it, so that a node is in its middle. */
function centre(box: HTMLElement, node: { x: number; y: number }): void {
  const drawing = box.querySelector("svg");
  const scale = drawing ? drawing.getBoundingClientRect().width / drawing.viewBox.baseVal.width : 1;
  box.scrollTo(node.x * scale - box.clientWidth / 2, node.y * scale - box.clientHeight / 2);
}

function Line({ edge, taken }: { edge: Placed["edges"][number]; taken: boolean }): JSX.Element {
  const labels = shownLabels(edge.labels);
  return (
    <g class={`line ${edge.kind ?? ""} ${taken ? "taken" : ""}`}>
      <title>{edge.hint ?? edge.labels.join("\n")}</title>
      <path d={edge.path} marker-end="url(#tip)" {...(edge.weight ? { "stroke-width": 1 + (THICKEST_PIXELS - 1) * edge.weight } : {})} />
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
