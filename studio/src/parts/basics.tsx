// What all views are made of. Whatever comes from the server is text here: nothing is ever taken for HTML.

import type { ComponentChildren, JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { Problem } from "../api";
import { useTick, type Doing, type Loaded } from "../hooks";
import type { LiveState } from "../live";
import { ago, clock, pretty, words } from "../text";

export function Loading({ what = "Loading" }: { what?: string }): JSX.Element {
  return (
    <p class="loading" role="status">
      {what} …
    </p>
  );
}

export function Empty({ children }: { children: ComponentChildren }): JSX.Element {
  return <p class="empty">{children}</p>;
}

export function ProblemBox({ problem }: { problem: Problem | undefined }): JSX.Element | null {
  if (!problem) return null;
  return (
    <div class="problem" role="alert">
      <strong>{problem.title}</strong>
      {problem.status > 0 && <span class="faint"> {problem.status}</span>}
      <p>{problem.detail}</p>
    </div>
  );
}

/** What was loaded, or why it is not there. */
export function Shown<T>({ of, children, what }: { of: Loaded<T>; children: (data: T) => ComponentChildren; what?: string }): JSX.Element {
  return (
    <>
      <ProblemBox problem={of.problem} />
      {of.data !== undefined ? children(of.data) : !of.problem && <Loading {...(what ? { what } : {})} />}
    </>
  );
}

const LIVE_WORDS = { connecting: "connecting", live: "live", away: "away: trying again", refused: "not let in" };

/** Whether what happens is shown at once. */
export function LiveSign({ state }: { state: LiveState }): JSX.Element {
  return (
    <span class={`live ${state}`} role="status" title={state === "live" ? "What happens is shown at once" : "What is shown may be old"}>
      {LIVE_WORDS[state]}
    </span>
  );
}

const KNOWN = new Set(["running", "completed", "failed", "suspended", "cancelled", "terminated", "compensating"]);

export function Status({ status }: { status: string }): JSX.Element {
  return <span class={`status ${KNOWN.has(status) ? status : ""}`}>{status}</span>;
}

/** How long ago, or how soon; it goes on while it is looked at. */
export function When({ time }: { time: string | null }): JSX.Element {
  useTick();
  return time ? (
    <time dateTime={time} title={clock(time)}>
      {ago(time)}
    </time>
  ) : (
    <span class="faint">–</span>
  );
}

export function Json({ value, label }: { value: unknown; label?: string }): JSX.Element {
  return (
    <pre class="json" tabIndex={0} aria-label={label ?? "JSON"}>
      {typeof value === "string" ? value : pretty(value)}
    </pre>
  );
}

/** What a record says: its fields where they are plain, JSON where they are not. */
export function Fields({ of }: { of: Record<string, unknown> }): JSX.Element {
  const plain = Object.values(of).every((value) => typeof value !== "object" || value === null);
  if (!plain) return <Json value={of} />;
  return (
    <dl class="facts">
      {Object.entries(of).map(([name, value]) => (
        <div key={name}>
          <dt>{words(name)}</dt>
          <dd class="break">{value === null ? "–" : String(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

export function Copy({ text, children }: { text: string; children: ComponentChildren }): JSX.Element {
  const [said, say] = useState("");
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
    } catch {
      say("The browser does not let this page copy: select the text instead");
    }
    setTimeout(() => say(""), 2_000);
  };
  return (
    <span class="actions">
      <span class="faint" role="status">
        {said}
      </span>
      <button type="button" onClick={copy}>
        {children}
      </button>
    </span>
  );
}

interface Confirmed {
  title: string;
  children?: ComponentChildren;
  action: string;
  danger?: boolean;
  doing: Doing;
  disabled?: boolean;
  /** What the button that does nothing says. */
  leave?: string;
  onConfirm: () => void;
  onClose: () => void;
}

/** A question before something is done. The element brings focus, the key Escape, and what is behind it out of reach. */
export function Dialog({ title, children, action, danger, doing, disabled, leave = "Do nothing", onConfirm, onClose }: Confirmed): JSX.Element {
  const element = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    element.current?.showModal();
    // As long as the dialog is in the page, nothing else can have the focus.
    return () => queueMicrotask(() => before instanceof HTMLElement && before.isConnected && before.focus());
  }, []);
  // Escape would close it at once, and tell of that later: a key pressed in between would ask for what is still asked.
  const leaveOut = (event: Event) => {
    event.preventDefault();
    onClose();
  };
  return (
    <dialog ref={element} aria-label={title} onCancel={leaveOut} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          onConfirm();
        }}
      >
        <h2>{title}</h2>
        {children}
        <ProblemBox problem={doing.problem} />
        <div class="actions">
          <button type="button" onClick={onClose}>
            {leave}
          </button>
          <button type="submit" class={danger ? "danger" : "main"} disabled={doing.busy || disabled}>
            {doing.busy ? "…" : action}
          </button>
        </div>
      </form>
    </dialog>
  );
}

/** Asks for a list once more; says so if it has changed meanwhile. */
export function LookAgain({ changed, onLook, busy }: { changed?: boolean; onLook: () => void; busy?: boolean }): JSX.Element {
  return (
    <button type="button" class={changed ? "main" : ""} onClick={onLook} disabled={busy}>
      {changed ? "Changed: look again" : "Look again"}
    </button>
  );
}

interface Tab {
  id: string;
  title: string;
}

/** Tabs as links: each has an address of its own. */
export function Tabs({ tabs, at, to, label }: { tabs: Tab[]; at: string; to: (id: string) => string; label: string }): JSX.Element {
  return (
    <nav class="tabs" aria-label={label}>
      {tabs.map((tab) => (
        <a key={tab.id} href={to(tab.id)} aria-current={tab.id === at ? "page" : undefined}>
          {tab.title}
        </a>
      ))}
    </nav>
  );
}

export function Figure({ title, value, href, tone }: { title: string; value: ComponentChildren; href?: string; tone?: string }): JSX.Element {
  const inside = (
    <>
      <span class="figure-title">{title}</span>
      <span class="figure-value">{value}</span>
    </>
  );
  return href ? (
    <a class={`figure ${tone ?? ""}`} href={href}>
      {inside}
    </a>
  ) : (
    <div class={`figure ${tone ?? ""}`}>{inside}</div>
  );
}

export function Card({ title, children, side, wide }: { title: string; children: ComponentChildren; side?: ComponentChildren; wide?: boolean }): JSX.Element {
  return (
    <section class={wide ? "card wide" : "card"} aria-label={title}>
      <header>
        <h2>{title}</h2>
        {side}
      </header>
      {children}
    </section>
  );
}
