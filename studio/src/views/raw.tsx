// The stream as it is stored, to read and to take along; and a step of it as a test.

import type { JSX } from "preact";
import { answered, ask, path } from "../api";
import { useDoing, useLoad } from "../hooks";
import { Card, Copy, Json, Loading, ProblemBox } from "../parts/basics";

interface Asked {
  workflow: string;
  id: string;
  at: number;
  position: number;
}

const SHOWN_CHARACTERS = 200_000;

export function RawPanel({ workflow, id, at, position }: Asked): JSX.Element {
  const test = useLoad((signal) => ask<{ file: string; text: string }>(`tests/${path(workflow, id)}`, { query: { at }, signal }), [workflow, id, at]);
  const raw = useLoad(async (signal) => await (await answered(`exports/${path(workflow, id)}`, { signal })).text(), [workflow, id], position);
  const doing = useDoing();
  const download = () =>
    doing.run(async () => {
      const blob = await (await answered(`exports/${path(workflow, id)}`)).blob();
      const address = URL.createObjectURL(blob);
      const anchor = document.createElement("a");
      anchor.href = address;
      anchor.download = `${workflow}-${id}.jsonl`;
      anchor.click();
      setTimeout(() => URL.revokeObjectURL(address), 10_000);
    });
  return (
    <>
      <Card title={`Position ${at} as a test`} wide side={test.data && <Copy text={test.data.text}>Copy</Copy>}>
        {test.problem && <p class="note">{test.problem.detail}</p>}
        {test.data && <Json value={test.data.text} label={test.data.file} />}
        {!test.data && !test.problem && <Loading />}
      </Card>
      <Card
        title="The stream, as JSON lines"
        wide
        side={
          <button type="button" onClick={download} disabled={doing.busy}>
            Download
          </button>
        }
      >
        <ProblemBox problem={doing.problem ?? raw.problem} />
        {raw.data !== undefined ? <Json value={raw.data.slice(0, SHOWN_CHARACTERS)} label="The stream" /> : !raw.problem && <Loading />}
        {(raw.data?.length ?? 0) > SHOWN_CHARACTERS && <p class="faint">It is longer: download it to see all of it.</p>}
      </Card>
    </>
  );
}
