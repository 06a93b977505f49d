// Pauses: what all workers begin nothing more of, by whom, since when and why; and how that is begun and ended.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { ask, path, send } from "../api";
import type { PauseInfo, PausesDocument } from "../documents";
import { useDoing, useEvery, useLoad } from "../hooks";
import { Dialog, Empty, ProblemBox, Shown, When } from "../parts/basics";
import { link } from "../route";
import { amount, several } from "../text";

const REFRESH_SECONDS = 5;

const load = (signal: AbortSignal) => ask<PausesDocument>("pauses", { signal });

/** A line for each thing that is paused, where everybody looks first; nothing where nothing is. */
export function PausedNow(): JSX.Element | null {
  const found = useLoad(load, []);
  useEvery(REFRESH_SECONDS, found.poll);
  const paused = found.data?.paused ?? [];
  if (!paused.length) return null;
  return (
    <div class="notice" role="status" aria-label="Paused">
      {paused.map((pause) => (
        <p key={pause.what}>
          <a href={link(["pauses"])}>{title(pause)} is paused</a>
          {pause.actor !== null && ` by ${pause.actor}`} since <When time={pause.since} />: {pause.reason} ({waiting(pause)})
        </p>
      ))}
    </div>
  );
}

export function PausesView(): JSX.Element {
  const list = useLoad(load, []);
  const [asked, pause] = useState<string>();
  const doing = useDoing();
  useEvery(REFRESH_SECONDS, list.poll);
  const resume = (what: string) => doing.run(() => ask(`pauses/${path(what)}`, { method: "DELETE" })).then(list.reload);
  return (
    <>
      <h1>Pauses</h1>
      <ProblemBox problem={doing.problem} />
      <Shown of={list}>
        {(found) => {
          const going = found.pausable.filter((what) => !found.paused.some((each) => each.what === what));
          return (
            <>
              {found.paused.length ? <Paused paused={found.paused} busy={doing.busy} onResume={(what) => void resume(what)} /> : <Empty>Nothing is paused.</Empty>}
              <h2>Handlers and workflows that go on</h2>
              <ul class="plain" aria-label="Going on">
                {going.map((what) => (
                  <li key={what} class="sides">
                    <span class="break">{what}</span>
                    <button type="button" aria-label={`Pause ${what}`} onClick={() => pause(what)}>
                      Pause …
                    </button>
                  </li>
                ))}
              </ul>
            </>
          );
        }}
      </Shown>
      {asked !== undefined && (
        <PauseDialog
          what={asked}
          onClose={() => {
            pause(undefined);
            list.reload();
          }}
        />
      )}
    </>
  );
}

function Paused({ paused, busy, onResume }: { paused: PauseInfo[]; busy: boolean; onResume: (what: string) => void }): JSX.Element {
  return (
    <table aria-label="Paused">
      <thead>
        <tr>
          <th>What</th>
          <th>By</th>
          <th>Since</th>
          <th>Why</th>
          <th class="number">Waiting</th>
          <th></th>
        </tr>
      </thead>
      <tbody>
        {paused.map((pause) => (
          <tr key={pause.what}>
            <td class="break">{pause.what}</td>
            <td class="break">{pause.actor ?? "–"}</td>
            <td>
              <When time={pause.since} />
            </td>
            <td class="break">{pause.reason}</td>
            <td class="number">
              {amount(pause.waiting)}
              {pause.more && " or more"}
            </td>
            <td>
              <button type="button" disabled={busy} aria-label={`Resume ${pause.what}`} onClick={() => onResume(pause.what)}>
                Resume
              </button>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function PauseDialog({ what, onClose }: { what: string; onClose: () => void }): JSX.Element {
  const [reason, say] = useState("");
  const doing = useDoing();
  const confirm = async () => {
    if (await doing.run(() => send(`pauses/${path(what)}`, reason.trim() ? { reason: reason.trim() } : {}))) onClose();
  };
  return (
    <Dialog title={`Pause ${what}?`} action="Pause" doing={doing} onConfirm={confirm} onClose={onClose}>
      <p>Within two seconds no worker begins anything more of it. What runs is finished, and what comes waits until it is resumed.</p>
      <label>
        Reason
        <input value={reason} maxLength={1_000} onInput={(event) => say(event.currentTarget.value)} placeholder="by an operator" />
      </label>
    </Dialog>
  );
}

function title(pause: PauseInfo): string {
  return `The ${pause.kind} ${pause.name}`;
}

function waiting(pause: PauseInfo): string {
  return `${several(pause.waiting, "message")}${pause.more ? " or more" : ""} waiting`;
}
