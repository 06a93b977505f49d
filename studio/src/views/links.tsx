// The instances that an instance has to do with: who began it, whom it began, who wrote to it, to whom it wrote.

import type { JSX } from "preact";
import { useMemo } from "preact/hooks";
import { ask, path } from "../api";
import type { LinkedInstance, LinksDocument } from "../documents";
import { useLoad } from "../hooks";
import { Card, Empty, Shown, Status } from "../parts/basics";
import { GraphView, type Graph } from "../parts/graph";
import { instanceLink, link } from "../route";

const DRAWN = 60;

export function LinksPanel({ workflow, id, version }: { workflow: string; id: string; version: number }): JSX.Element {
  const links = useLoad((signal) => ask<LinksDocument>(`links/${path(workflow, id)}`, { signal }), [workflow, id, version]);
  return <Shown of={links}>{(found) => (found.links.length ? <Linked found={found} /> : <Empty>It has to do with no other instance.</Empty>)}</Shown>;
}

function Linked({ found }: { found: LinksDocument }): JSX.Element {
  const graph = useMemo(() => graphOf(found), [found]);
  return (
    <>
      <Card title="Who has to do with whom" wide>
        <GraphView graph={graph} label={`Instances linked with ${found.instance}`} at={found.instance} />
      </Card>
      <table>
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
                {one.version !== null && <a href={instanceLink(found.instance, { at: one.version })}> at {one.version}</a>}
              </td>
              <td>{one.status ? <Status status={one.status} /> : "not there"}</td>
              <td>{one.state ?? "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {found.cut && <p class="faint">There are more.</p>}
    </>
  );
}

/** Who comes first stands above: parents and senders point here, and from here it goes to children and receivers. */
export function graphOf(found: LinksDocument): Graph {
  const nodes = new Map<string, Graph["nodes"][number]>();
  const edges = new Map<string, Graph["edges"][number]>();
  nodes.set(found.instance, { id: found.instance, title: found.instance, lines: ["this one"] });
  for (const one of found.links.slice(0, DRAWN)) {
    if (!nodes.has(one.instance)) {
      nodes.set(one.instance, {
        id: one.instance,
        title: one.instance,
        lines: [[one.status, one.state].filter(Boolean).join(" · ") || "not there"],
        href: link(["instances", one.workflow, one.id]),
      });
    }
    const [from, to] = upwards(one) ? [one.instance, found.instance] : [found.instance, one.instance];
    const key = JSON.stringify([from, to]);
    const edge = edges.get(key) ?? { from, to, labels: [], kind: one.relation === "parent" || one.relation === "child" ? "family" : "" };
    const label = one.type ?? one.relation;
    if (!edge.labels.includes(label)) edge.labels.push(label);
    edges.set(key, edge);
  }
  return { nodes: [...nodes.values()], edges: [...edges.values()] };
}

function upwards(one: LinkedInstance): boolean {
  return one.relation === "parent" || one.relation === "sender";
}
