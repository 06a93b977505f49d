// Dead letters: grouped by what went wrong, corrected and carried out after all, one or many.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ask, Problem, send } from "../api";
import type { ShownLetter, LetterKind, LetterKinds, ManySettled } from "../documents";
import { useChanges, useDoing, useLoad } from "../hooks";
import { Card, Dialog, Empty, Json, Loading, LookAgain, ProblemBox, When } from "../parts/basics";
import { usePages } from "../parts/list";
import { amend, instanceLink, type Route } from "../route";
import { amount, brief, pretty, several, shortType } from "../text";

const SHOWN_PER_GROUP = 50;
const AT_ONCE = 1_000;

interface LetterGroup extends LetterKind {
  /** Those that are loaded. */
  letters: ShownLetter[];
}

/** The kinds, each with those of its letters that are loaded. */
function grouped(kinds: LetterKind[], letters: ShownLetter[]): LetterGroup[] {
  return kinds.map((kind) => ({ ...kind, letters: letters.filter((letter) => letter.letter_kind === kind.kind) }));
}

type Many = { what: "retry" | "discard"; count: number } & ({ kind: string } | { ids: number[] });
type Asked = Many | { what: "edit"; letter: ShownLetter };

export function LettersView({ route }: { route: Route }): JSX.Element {
  const list = usePages<ShownLetter>("dead-letters", {});
  const kinds = useLoad((signal) => ask<LetterKinds>("dead-letter-kinds", { signal }), []);
  const changes = useChanges((stats) => stats.dead_letters);
  const [asked, ask_] = useState<Asked>();
  const groups = useMemo(() => grouped(kinds.data?.kinds ?? [], list.items), [kinds.data, list.items]);
  const look = () => {
    changes.seen();
    kinds.reload();
    list.restart();
  };
  const close = () => {
    ask_(undefined);
    look();
  };
  return (
    <>
      <h1>Dead letters</h1>
      <div class="bar">
        {kinds.data && (
          <span role="status">
            {several(kinds.data.looked_at, "dead letter")}
            {kinds.data.cut ? " and more" : ""}, {several(groups.length, "kind")}
          </span>
        )}
        <span class="grow" />
        {list.more && list.items.length > 0 && (
          <button type="button" onClick={list.load} disabled={list.loading}>
            Load more
          </button>
        )}
        <LookAgain changed={changes.changed} onLook={look} busy={list.loading} />
      </div>
      <ProblemBox problem={list.problem ?? kinds.problem} />
      {!kinds.data && !kinds.problem && <Loading what="Looking" />}
      {kinds.data?.looked_at === 0 && <Empty>No dead letters: nothing waits for somebody to mend it here.</Empty>}
      {groups.map((group) => (
        <Group key={group.kind} group={group} open={route.query.get("letter")} onOpen={(id) => amend(route, { letter: id })} onAsk={ask_} />
      ))}
      {asked?.what === "edit" && <EditDialog letter={asked.letter} onClose={close} />}
      {asked && asked.what !== "edit" && <ManyDialog many={asked} onClose={close} />}
    </>
  );
}

interface Grouped {
  group: LetterGroup;
  open: string | null;
  onOpen: (id: number | undefined) => void;
  onAsk: (asked: Asked) => void;
}

function Group({ group, open, onOpen, onAsk }: Grouped): JSX.Element {
  const side = (
    <span class="actions">
      <button type="button" onClick={() => onAsk({ what: "retry", kind: group.kind, count: group.count })}>
        Retry {amount(group.count)}
      </button>
      <button type="button" class="danger" onClick={() => onAsk({ what: "discard", kind: group.kind, count: group.count })}>
        Discard {amount(group.count)}
      </button>
    </span>
  );
  return (
    <Card title={`${shortType(group.type)} of ${group.workflow}: ${group.reason}`} side={side} wide>
      {group.error && <p class="error-text break">{brief(group.error, 400)}</p>}
      <ul class="plain">
        {group.letters.slice(0, SHOWN_PER_GROUP).map((letter) => (
          <li key={letter.id}>
            <details open={open === String(letter.id)} onToggle={(event) => event.currentTarget.open && onOpen(letter.id)}>
              <summary data-row tabIndex={0}>
                {letter.instance} <span class="faint">#{letter.id}</span> · {several(letter.attempts, "attempt")} · <When time={letter.time} />
              </summary>
              <Letter letter={letter} onAsk={onAsk} />
            </details>
          </li>
        ))}
      </ul>
      {group.count > Math.min(group.letters.length, SHOWN_PER_GROUP) && (
        <p class="faint">
          {group.letters.length ? "and " : ""}
          {amount(group.count - Math.min(group.letters.length, SHOWN_PER_GROUP))} {group.letters.length ? "more like these" : "of them, further down in the list"}
        </p>
      )}
    </Card>
  );
}

function Letter({ letter, onAsk }: { letter: ShownLetter; onAsk: (asked: Asked) => void }): JSX.Element {
  return (
    <>
      <p>
        {letter.kind === "undelivered" ? letter.instance : <a href={instanceLink(letter.instance)}>{letter.instance}</a>} · {letter.kind} · message{" "}
        {letter.message_id}
        {letter.actor && <> · from {letter.actor}</>}
      </p>
      {letter.error && <pre class="error-text">{letter.error}</pre>}
      <Json value={letter.message} label={`The message ${letter.type}`} />
      <div class="actions">
        <button type="button" onClick={() => onAsk({ what: "edit", letter })}>
          Edit and retry …
        </button>
        <button type="button" onClick={() => onAsk({ what: "retry", ids: [letter.id], count: 1 })}>
          Retry …
        </button>
        <button type="button" class="danger" onClick={() => onAsk({ what: "discard", ids: [letter.id], count: 1 })}>
          Discard …
        </button>
      </div>
    </>
  );
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Problem(-1, "no JSON", error instanceof Error ? error.message : String(error));
  }
}

function EditDialog({ letter, onClose }: { letter: ShownLetter; onClose: () => void }): JSX.Element {
  const [text, set] = useState(() => pretty(letter.message));
  const doing = useDoing();
  const confirm = async () => {
    const done = await doing.run(async () => {
      const settled = await send<{ left: boolean }>(`dead-letters/${letter.id}/retry`, parsed(text));
      if (settled.left) throw new Problem(-1, "still a dead letter", "It could not be carried out, and is kept with its new error.");
    });
    if (done) onClose();
  };
  return (
    <Dialog title={`Correct ${letter.type} and retry it`} action="Retry" doing={doing} onConfirm={confirm} onClose={onClose}>
      <label>
        Message
        <textarea rows={12} value={text} onInput={(event) => set(event.currentTarget.value)} spellcheck={false} />
      </label>
    </Dialog>
  );
}

/** A thousand by a question at most: what refuses is told, and the rest is done. */
function ManyDialog({ many, onClose }: { many: Many; onClose: () => void }): JSX.Element {
  const { what, count, ...which } = many;
  const [done, tell] = useState(0);
  const [refused, refuse] = useState(false);
  const [force, insist] = useState(false);
  const doing = useDoing();
  const confirm = async () => {
    const fine = await doing.run(async () => {
      let sum = 0;
      // Those that fail once more come back: they are not tried for ever.
      for (let turn = 0; turn <= count / AT_ONCE; turn += 1) {
        const settled = await send<ManySettled>(`dead-letter-operations/${what}`, { ...which, ...(force && { force }), dry_run: false });
        sum += settled.done;
        tell(sum);
        const [first] = settled.refused;
        if (first) refuse(what === "retry");
        if (first) throw new Problem(-1, "not all", `${several(settled.refusals, "letter")} stayed. The first: ${first.why}`);
        if (!settled.left) break;
      }
    });
    if (fine) onClose();
  };
  const action = what === "retry" ? `Retry ${amount(count)}` : `Discard ${amount(count)} for good`;
  return (
    <Dialog title={`${what === "retry" ? "Retry" : "Discard"} ${several(count, "dead letter")}?`} action={action} danger={what === "discard"} doing={doing} onConfirm={confirm} onClose={onClose}>
      <p>{what === "retry" ? "Each is carried out after all, with the id it had." : "They are removed, and cannot be had back."}</p>
      {refused && (
        <label>
          <input type="checkbox" checked={force} onChange={(event) => insist(event.currentTarget.checked)} /> Carry out also what its instance has gone on without: it
          may have been undone, and nothing will undo it again
        </label>
      )}
      {doing.busy && (
        <p role="status">
          {amount(done)} of {amount(count)}
        </p>
      )}
    </Dialog>
  );
}
