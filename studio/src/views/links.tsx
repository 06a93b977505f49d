// The instances that an instance has to do with: who began it, whom it began, who wrote to it, to whom it wrote.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ask, path } from "../api";
import type { LinkedInstance, LinksDocument } from "../documents";
import { useDoing, useLoad } from "../hooks";
import { Card, Empty, ProblemBox, Shown, Status } from "../parts/basics";
import { GraphView, type Graph } from "../parts/graph";
import { instanceLink, link } from "../route";

const DRAWN = 60;
// So many neighbours are asked for theirs at a time.
const FURTHER = 12;

export function LinksPanel({ workflow, id, position }: { workflow: string; id: string; position: number }): JSX.Element {
  const links = useLoad((signal) => ask<LinksDocument>(`links/${path(workflow, id)}`, { signal }), [workflow, id], position);
  return <Shown of={links}>{(found) => (found.links.length ? <Linked found={found} /> : <Empty>It has to do with no other instance.</Empty>)}</Shown>;
}

function Linked({ found }: { found: LinksDocument }): JSX.Element {
  const [further, add] = useState<LinksDocument[]>([]);
  const all = useMemo(() => [found, ...further.filter((one) => one.instance !== found.instance)], [found, further]);
  const graph = useMemo(() => graphOf(all), [all]);
  const unasked = unaskedOf(all);
  const doing = useDoing();
  const look = () =>
    doing.run(async () => {
      const more = await Promise.all(unasked.slice(0, FURTHER).map((one) => ask<LinksDocument>(`links/${path(one.workflow, one.id)}`)));
      add([...further, ...more]);
    });
  return (
    <>
      <Card
        title="Who has to do with whom"
        wide
        side={
          unasked.length > 0 && (
            <button type="button" onClick={look} disabled={doing.busy}>
              {doing.busy ? "Looking …" : "Look further"}
            </button>
          )
        }
      >
        <ProblemBox problem={doing.problem} />
        <GraphView graph={graph} label={`Instances linked with ${found.instance}`} at={found.instance} />
        <p class="faint">Thick: began it. Thin: wrote to it.</p>
      </Card>
      <div class="scroll">
        <table aria-label="Linked instances">
          <thead>
            <tr>
              <th>Instance</th>
              <th>Relation</th>
              <th>By</th>
              <th>Status</th>
              <th>State</th>
            </tr>
          </thead>
          <tbody>
            {found.links.map((one, index) => (
              <tr key={index}>
                <td>
                  <a href={link(["instances", one.workflow, one.id])} data-row>
                    {one.instance}
                  </a>
                </td>
                <td>{one.relation}</td>
                <td>
                  {one.type ?? "–"}
                  {one.position !== null && <a href={instanceLink(found.instance, { at: one.position })}> at {one.position}</a>}
                </td>
                <td>{one.status ? <Status status={one.status} /> : "not there"}</td>
                <td>{one.state ?? "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {found.cut && <p class="faint">There are more.</p>}
    </>
  );
}

/** Those that are there, and have not been asked yet with whom they have to do. */
function unaskedOf(all: LinksDocument[]): LinkedInstance[] {
  const asked = new Set(all.map((one) => one.instance));
  const found = new Map<string, LinkedInstance>();
  for (const one of all.flatMap((document) => document.links)) if (one.status !== null && !asked.has(one.instance)) found.set(one.instance, one);
  return [...found.values()];
}

/** Who comes first stands above: parents and senders point to those that they began or wrote to. */
export function graphOf(all: LinksDocument[]): Graph {
  const nodes = new Map<string, Graph["nodes"][number]>();
  const edges = new Map<string, Graph["edges"][number]>();
  const put = (id: string, line: string, href?: string) => {
    if (nodes.size < DRAWN && !nodes.has(id)) nodes.set(id, { id, title: id, lines: [line], ...(href ? { href } : {}) });
  };
  if (all[0]) put(all[0].instance, "this one");
  for (const document of all) {
    for (const one of document.links) {
      put(one.instance, [one.status, one.state].filter(Boolean).join(" · ") || "not there", link(["instances", one.workflow, one.id]));
      const [from, to] = upwards(one) ? [one.instance, document.instance] : [document.instance, one.instance];
      if (!nodes.has(from) || !nodes.has(to)) continue;
      const family = one.relation === "parent" || one.relation === "child";
      const key = JSON.stringify([from, to]);
      const edge = edges.get(key) ?? { from, to, labels: [], kind: "" };
      // What both ends tell is one line; a child says who began it, its parent by which message.
      if (family) edge.kind = "family";
      if (one.type !== null && !edge.labels.includes(one.type)) edge.labels.push(one.type);
      edges.set(key, edge);
    }
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}

function upwards(one: LinkedInstance): boolean {
  return one.relation === "parent" || one.relation === "sender";
}
