// Dead letters: grouped by what went wrong, corrected and carried out after all, one or many.

import type { JSX } from "preact";
import { useMemo, useState } from "preact/hooks";
import { ask, Problem, send } from "../api";
import type { LetterDocument } from "../documents";
import { useDoing } from "../hooks";
import { Card, Dialog, Empty, Json, ProblemBox, When } from "../parts/basics";
import { usePages } from "../parts/list";
import { amend, instanceLink, type Route } from "../route";
import { amount, brief, pretty, several } from "../text";

const SHOWN_PER_GROUP = 50;
const ERROR_CHARACTERS = 200;

export interface LetterGroup {
  key: string;
  type: string;
  reason: string;
  error: string;
  letters: LetterDocument[];
}

/** Errors that differ in numbers and quoted texts only are of one kind. */
export function alike(error: string): string {
  return error.slice(0, ERROR_CHARACTERS).replace(/'[^']*'|"[^"]*"/g, "'…'").replace(/\d+/g, "#");
}

export function grouped(letters: LetterDocument[]): LetterGroup[] {
  const groups = new Map<string, LetterGroup>();
  for (const letter of letters) {
    const error = letter.error ?? letter.reason;
    const key = `${letter.type}\n${letter.reason}\n${alike(error)}`;
    const group = groups.get(key) ?? { key, type: letter.type, reason: letter.reason, error, letters: [] };
    group.letters.push(letter);
    groups.set(key, group);
  }
  return [...groups.values()].sort((one, other) => other.letters.length - one.letters.length);
}

type Asked = { what: "retry" | "discard"; letters: LetterDocument[] } | { what: "edit"; letter: LetterDocument };

export function LettersView({ route }: { route: Route }): JSX.Element {
  const list = usePages<LetterDocument>("dead-letters", {});
  const [asked, ask_] = useState<Asked>();
  const groups = useMemo(() => grouped(list.items), [list.items]);
  const open = route.query.get("letter");
  const close = () => {
    ask_(undefined);
    list.restart();
  };
  return (
    <>
      <h1>Dead letters</h1>
      <div class="bar">
        <span role="status">
          {list.more ? `the first ${amount(list.items.length)}` : several(list.items.length, "dead letter")}, {several(groups.length, "kind")}
        </span>
        <span class="grow" />
        {list.more && (
          <button type="button" onClick={list.load} disabled={list.loading}>
            Load more
          </button>
        )}
        <button type="button" onClick={list.restart}>
          Look again
        </button>
      </div>
      <ProblemBox problem={list.problem} />
      {!list.items.length && !list.more && <Empty>No dead letters: everything was carried out.</Empty>}
      {groups.map((group) => (
        <Group key={group.key} group={group} open={open} onOpen={(id) => amend(route, { letter: id })} onAsk={ask_} />
      ))}
      {asked?.what === "edit" && <EditDialog letter={asked.letter} onClose={close} />}
      {asked && asked.what !== "edit" && <ManyDialog what={asked.what} letters={asked.letters} onClose={close} />}
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
      <button type="button" onClick={() => onAsk({ what: "retry", letters: group.letters })}>
        Retry {amount(group.letters.length)}
      </button>
      <button type="button" class="danger" onClick={() => onAsk({ what: "discard", letters: group.letters })}>
        Discard {amount(group.letters.length)}
      </button>
    </span>
  );
  return (
    <Card title={`${group.type} · ${group.reason}`} side={side} wide>
      <p class="error-text break">{brief(group.error, 400)}</p>
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
      {group.letters.length > SHOWN_PER_GROUP && <p class="faint">and {amount(group.letters.length - SHOWN_PER_GROUP)} more like these</p>}
    </Card>
  );
}

function Letter({ letter, onAsk }: { letter: LetterDocument; onAsk: (asked: Asked) => void }): JSX.Element {
  return (
    <>
      <p>
        <a href={instanceLink(letter.instance)}>{letter.instance}</a> · {letter.kind} · message {letter.message_id}
        {letter.actor && <> · from {letter.actor}</>}
      </p>
      {letter.error && <pre class="error-text">{letter.error}</pre>}
      <Json value={letter.message} label={`The message ${letter.type}`} />
      <div class="actions">
        <button type="button" onClick={() => onAsk({ what: "edit", letter })}>
          Edit and retry …
        </button>
        <button type="button" onClick={() => onAsk({ what: "retry", letters: [letter] })}>
          Retry …
        </button>
        <button type="button" class="danger" onClick={() => onAsk({ what: "discard", letters: [letter] })}>
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

function EditDialog({ letter, onClose }: { letter: LetterDocument; onClose: () => void }): JSX.Element {
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

/** One after the other, so that what fails can be told, and the rest is done. */
function ManyDialog({ what, letters, onClose }: { what: "retry" | "discard"; letters: LetterDocument[]; onClose: () => void }): JSX.Element {
  const [done, count] = useState(0);
  const doing = useDoing();
  const one = (letter: LetterDocument) =>
    what === "retry" ? ask<{ left: boolean }>(`dead-letters/${letter.id}/retry`, { method: "POST" }) : ask<{ left: boolean }>(`dead-letters/${letter.id}`, { method: "DELETE" });
  const confirm = async () => {
    const fine = await doing.run(async () => {
      let left = 0;
      for (const [index, letter] of letters.entries()) {
        left += (await one(letter)).left ? 1 : 0;
        count(index + 1);
      }
      if (left) throw new Problem(-1, "not all", `${several(left, "letter")} could not be carried out and stayed.`);
    });
    if (fine) onClose();
  };
  const action = what === "retry" ? `Retry ${amount(letters.length)}` : `Discard ${amount(letters.length)} for good`;
  return (
    <Dialog title={`${what === "retry" ? "Retry" : "Discard"} ${several(letters.length, "dead letter")}?`} action={action} danger={what === "discard"} doing={doing} onConfirm={confirm} onClose={onClose}>
      <p>{what === "retry" ? "Each is carried out after all, with the id it had." : "They are removed, and cannot be had back."}</p>
      {doing.busy && (
        <p role="status">
          {amount(done)} of {amount(letters.length)}
        </p>
      )}
    </Dialog>
  );
}
