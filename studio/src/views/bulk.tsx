// One operation on all instances that a search finds: counted first, then confirmed, then watched.

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ask, Problem, send, type Query } from "../api";
import type { BulkDocument } from "../documents";
import { useDoing } from "../hooks";
import { Dialog } from "../parts/basics";
import { amount, several } from "../text";
import { OPERATIONS } from "./operations";

const LOOK_MS = 500;

export function BulkDialog({ search, onClose }: { search: Query; onClose: () => void }): JSX.Element {
  const [operation, choose] = useState("suspend");
  const [reason, say] = useState("");
  const [counted, count] = useState<BulkDocument>();
  const [job, watch] = useState<BulkDocument>();
  const doing = useDoing();
  const chosen = OPERATIONS.find((one) => one.name === operation);
  const order = (dry: boolean) => send<BulkDocument>(`bulk/${operation}`, { ...search, ...(reason.trim() ? { reason: reason.trim() } : {}), dry_run: dry });
  const confirm = () =>
    doing.run(async () => {
      if (!counted) return count(await order(true));
      watch(await finished(await order(false), watch));
    });
  // Another operation has to be counted anew: what was counted belongs to the one before.
  useEffect(() => count(undefined), [operation]);
  const words = Object.entries(search);
  return (
    <Dialog
      title="Operate on all found"
      action={job ? "Done" : counted ? `${chosen?.title} ${several(counted.matched, "instance")}` : "Count first"}
      danger={Boolean(counted && chosen?.danger)}
      doing={doing}
      disabled={counted?.matched === 0 && !job}
      onConfirm={job ? onClose : confirm}
      onClose={onClose}
    >
      <p>{words.length ? `Those with ${words.map(([name, value]) => `${name} ${String(value)}`).join(", ")}.` : "All instances: nothing narrows the search."}</p>
      {!job && (
        <>
          <label>
            Operation
            <select value={operation} onChange={(event) => choose(event.currentTarget.value)}>
              {OPERATIONS.map((one) => (
                <option key={one.name} value={one.name}>
                  {one.title}
                </option>
              ))}
            </select>
            <small>{chosen?.tells}</small>
          </label>
          {chosen?.reason && (
            <label>
              Reason
              <input value={reason} maxLength={1_000} onInput={(event) => say(event.currentTarget.value)} placeholder="by an operator" />
            </label>
          )}
          {counted && <p role="status">{counted.matched ? `${several(counted.matched, "instance")} would be operated on. Nothing was done yet.` : "None is found on which that makes sense."}</p>}
        </>
      )}
      {(job ?? (doing.busy && counted)) && <Progress job={job ?? counted} />}
    </Dialog>
  );
}

async function finished(begun: BulkDocument, watch: (job: BulkDocument) => void): Promise<BulkDocument> {
  let job = begun;
  while (job.status === "running") {
    watch(job);
    await new Promise((over) => setTimeout(over, LOOK_MS));
    job = await ask<BulkDocument>(`bulk/${job.id}`);
  }
  if (job.status === "failed") throw new Problem(-1, "it failed midway", job.error ?? "The log of the server says more.");
  return job;
}

function Progress({ job }: { job: BulkDocument | undefined }): JSX.Element | null {
  if (!job) return null;
  return (
    <div role="status">
      <p>
        {job.status === "running" ? "Under way" : job.status}: {amount(job.done)} done, {amount(job.left)} left, {amount(job.refusals)} refused of {amount(job.matched)}.
      </p>
      {job.refused.length > 0 && (
        <ul class="plain">
          {job.refused.slice(0, 10).map((one) => (
            <li key={one.instance}>
              {one.instance}: <span class="faint">{one.why}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
