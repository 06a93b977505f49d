// The execution log: what happened, who did it, and how long it took.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { path } from "../api";
import type { LogLine } from "../documents";
import { Empty, Loading, LookAgain, ProblemBox } from "../parts/basics";
import { usePages, VirtualRows } from "../parts/list";
import { link } from "../route";
import { clock, duration } from "../text";

export function LogPanel({ workflow, id, position }: { workflow: string; id: string; position: number }): JSX.Element {
  const list = usePages<LogLine>(`log/${path(workflow, id)}`, {});
  const [seen, see] = useState(position);
  const look = () => {
    see(position);
    list.restart();
  };
  return (
    <>
      <div class="bar">
        <span class="faint">as it was at position {seen}</span>
        <span class="grow" />
        <LookAgain changed={position !== seen} onLook={look} busy={list.loading} />
      </div>
      <ProblemBox problem={list.problem} />
      {!list.items.length && list.more && !list.problem && <Loading />}
      {!list.items.length && !list.more && <Empty>Nothing has happened.</Empty>}
      {list.items.length > 0 && (
        <VirtualRows
          count={list.items.length}
          label="Execution log"
          onSeen={(_, last) => {
            if (last > list.items.length - 50) list.load();
          }}
          head={["Position", "Time", "What", "About", "State", "By", "Took", "Answered after"]}
          row={(index) => {
            const line = list.items[index];
            return line && <Line line={line} href={link(["instances", workflow, id], { at: line.position })} />;
          }}
        />
      )}
    </>
  );
}

function Line({ line, href }: { line: LogLine; href: string }): JSX.Element {
  return (
    <>
      <span role="cell">
        <a href={href} data-row>
          {line.position}
        </a>
      </span>
      <span role="cell">{clock(line.time)}</span>
      <span role="cell">
        {line.what}
        {line.attempt !== null && line.attempt > 1 && <span class="faint"> attempt {line.attempt}</span>}
      </span>
      <span role="cell">{line.command === null ? line.about : `${line.command}: ${line.about}`}</span>
      <span role="cell">{line.state ?? ""}</span>
      <span role="cell">{line.actor ?? ""}</span>
      <span role="cell">{line.duration_seconds === null ? "" : duration(line.duration_seconds)}</span>
      <span role="cell" title={line.waited_seconds === null ? "" : `${duration(line.waited_seconds)} after it was due`}>
        {line.answered_after_seconds === null ? "" : duration(line.answered_after_seconds)}
      </span>
    </>
  );
}
