// What an operator can do to an instance. Each is asked about first, and recorded in the stream with who did it.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { path, send } from "../api";
import type { InstanceInfo } from "../documents";
import { useDoing } from "../hooks";
import { Dialog } from "../parts/basics";

interface Operation {
  name: string;
  title: string;
  tells: string;
  danger?: boolean;
  reason?: boolean;
  /** What the number means to which it goes. */
  to?: string;
}

const OPERATIONS: Operation[] = [
  { name: "suspend", title: "Suspend", tells: "It takes no more inputs until it is resumed; they wait.", reason: true },
  { name: "resume", title: "Resume", tells: "It takes inputs again." },
  { name: "retry", title: "Retry", tells: "The input at which it stopped is tried again." },
  { name: "skip", title: "Skip", tells: "The input at which it stopped is left out; those behind it are taken.", danger: true },
  { name: "cancel", title: "Cancel", tells: "It ends, and what was done is compensated where the workflow says how.", danger: true, reason: true },
  { name: "terminate", title: "Terminate", tells: "It ends at once, and nothing is compensated.", danger: true, reason: true },
];
const RESET: Operation = {
  name: "reset",
  title: "Reset",
  tells: "It goes back to a position in its stream; what came later does not count any more.",
  danger: true,
  reason: true,
  to: "Back to position",
};
const MIGRATE: Operation = {
  name: "migrate",
  title: "Migrate",
  tells: "It goes on under another version of its workflow's code. Each is asked first whether it could.",
  to: "To version of the workflow",
};
export const MANY_OPERATIONS: Operation[] = [...OPERATIONS, RESET, MIGRATE];

/** What makes sense for an instance of a status; the server knows better, and says so. */
function possible(status: string): Operation[] {
  const names =
    status === "suspended"
      ? ["resume", "retry", "skip", "cancel", "terminate"]
      : status === "running" || status === "compensating"
        ? ["suspend", "cancel", "terminate"]
        : [];
  return [...OPERATIONS.filter((one) => names.includes(one.name)), RESET];
}

export function Operations({ instance, onDone }: { instance: InstanceInfo; onDone: () => void }): JSX.Element {
  const [asked, ask] = useState<Operation>();
  return (
    <div class="bar" role="group" aria-label="Operate">
      {possible(instance.status).map((operation) => (
        <button key={operation.name} type="button" class={operation.danger ? "danger" : ""} onClick={() => ask(operation)}>
          {operation.title} …
        </button>
      ))}
      {asked && (
        <OperationDialog
          instance={instance}
          operation={asked}
          onClose={(done) => {
            ask(undefined);
            if (done) onDone();
          }}
        />
      )}
    </div>
  );
}

function OperationDialog({ instance, operation, onClose }: { instance: InstanceInfo; operation: Operation; onClose: (done: boolean) => void }): JSX.Element {
  const [reason, say] = useState("");
  const [to, choose] = useState(String(Math.max(1, instance.position - 1)));
  const doing = useDoing();
  const confirm = async () => {
    const order = { ...(reason.trim() ? { reason: reason.trim() } : {}), ...(operation.to ? { to: Number(to) } : {}) };
    const done = await doing.run(() => send(`operations/${operation.name}/${path(instance.workflow, instance.id)}`, order));
    if (done) onClose(true);
  };
  return (
    <Dialog
      title={`${operation.title} ${instance.instance}?`}
      action={operation.title}
      danger={operation.danger ?? false}
      doing={doing}
      onConfirm={confirm}
      onClose={() => onClose(false)}
    >
      <p>{operation.tells}</p>
      {operation.to && (
        <label>
          {operation.to}
          <input type="number" min={1} max={instance.position} value={to} onInput={(event) => choose(event.currentTarget.value)} required />
        </label>
      )}
      {operation.reason && (
        <label>
          Reason
          <input value={reason} maxLength={1_000} onInput={(event) => say(event.currentTarget.value)} placeholder="by an operator" />
        </label>
      )}
    </Dialog>
  );
}
