// One operation on all instances that a search finds: counted first, then confirmed, then watched, and stopped if need be.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ask, path, Problem, send, type Query } from "../api";
import type { BulkDocument } from "../documents";
import { useDoing, useEvery, useLoad } from "../hooks";
import { Card, Dialog, ProblemBox } from "../parts/basics";
import { Meter } from "../parts/chart";
import { amount, several } from "../text";
import { MANY_OPERATIONS } from "./operations";

const LOOK_MS = 500;
const REFRESH_SECONDS = 2;
const REASONS_SHOWN = 5;
const REFUSALS_SHOWN = 10;

export function BulkDialog({ search, onClose }: { search: Query; onClose: () => void }): JSX.Element {
  const [operation, choose] = useState("suspend");
  const [reason, say] = useState("");
  const [to, aim] = useState("");
  const [counted, count] = useState<BulkDocument>();
  const [job, watch] = useState<BulkDocument>();
  const doing = useDoing();
  const open = useOpen();
  const chosen = MANY_OPERATIONS.find((one) => one.name === operation);
  const order = (dry: boolean) =>
    send<BulkDocument>(`bulk/${operation}`, {
      ...search,
      ...(chosen?.reason && reason.trim() ? { reason: reason.trim() } : {}),
      ...(chosen?.to ? { to: Number(to) } : {}),
      dry_run: dry,
    });
  const confirm = () =>
    doing.run(async () => {
      if (!counted) return count(await finished(await order(true), open, () => undefined));
      watch(await finished(await order(false), open, watch));
    });
  // Something else has to be counted anew: what was counted belongs to what was asked before.
  useEffect(() => count(undefined), [operation, to]);
  const running = job?.status === "running";
  return (
    <Dialog
      title="Operate on all found"
      action={job && !running ? "Done" : counted ? `${chosen?.title} ${several(able(counted), "instance")}` : "Count first"}
      danger={Boolean(counted && chosen?.danger && !job)}
      doing={doing}
      disabled={!job && (!Object.keys(search).length || (counted !== undefined && able(counted) === 0))}
      leave={job ? "Close" : "Do nothing"}
      onConfirm={job ? onClose : confirm}
      onClose={onClose}
    >
      <Meant search={search} />
      {!job && (
        <>
          <label>
            Operation
            <select value={operation} onChange={(event) => choose(event.currentTarget.value)}>
              {MANY_OPERATIONS.map((one) => (
                <option key={one.name} value={one.name}>
                  {one.title}
                </option>
              ))}
            </select>
            <small>{chosen?.tells}</small>
          </label>
          {chosen?.to && (
            <label>
              {chosen.to}
              <input type="number" min={1} value={to} onInput={(event) => aim(event.currentTarget.value)} required />
            </label>
          )}
          {chosen?.reason && (
            <label>
              Reason
              <input value={reason} maxLength={1_000} onInput={(event) => say(event.currentTarget.value)} placeholder="by an operator" />
            </label>
          )}
          {counted && <Counted counted={counted} />}
        </>
      )}
      {job && <Progress job={job} />}
      {running && <Stop id={job.id} />}
    </Dialog>
  );
}

/** How many of those that were counted do not refuse already. */
function able(counted: BulkDocument): number {
  return counted.matched - counted.refusals;
}

function Meant({ search }: { search: Query }): JSX.Element {
  const words = Object.entries(search);
  if (!words.length) return <p class="note">Nothing narrows the search: it would mean every instance there is. Filter first.</p>;
  return (
    <p>
      Those with{" "}
      {words.map(([name, value], index) => (
        <span key={name}>
          {index > 0 && ", "}
          {name.replace("_", " ")} <b class="break">{String(value)}</b>
        </span>
      ))}
      .
    </p>
  );
}

function Counted({ counted }: { counted: BulkDocument }): JSX.Element {
  return (
    <div role="status">
      <p>
        {able(counted) ? `${several(able(counted), "instance")} would be operated on. ` : counted.matched ? "" : "None is found. "}
        {counted.refusals > 0 && `${several(counted.refusals, "instance")} would refuse. `}
        Nothing was done yet.
      </p>
      <Refused job={counted} />
    </div>
  );
}

/** Whether a dialog is still there: who closed it wants to hear no more of it. */
function useOpen(): () => boolean {
  const open = useRef(true);
  useEffect(() => () => void (open.current = false), []);
  return () => open.current;
}

async function finished(begun: BulkDocument, open: () => boolean, watch: (job: BulkDocument) => void): Promise<BulkDocument> {
  let job = begun;
  while (job.status === "running" && open()) {
    watch(job);
    await new Promise((over) => setTimeout(over, LOOK_MS));
    job = await ask<BulkDocument>(`bulk/${path(job.id)}`);
  }
  if (job.status === "failed") throw new Problem(-1, "it failed midway", job.error ?? "The log of the server says more.");
  return job;
}

function Progress({ job }: { job: BulkDocument }): JSX.Element {
  const over = job.done + job.refusals;
  return (
    <div role="status">
      <p>
        {job.status === "running" ? "Under way" : job.status}: {amount(job.done)} done, {amount(job.left)} left, {amount(job.refusals)} refused of {amount(job.matched)}.
      </p>
      <Meter share={job.matched ? over / job.matched : 0} label={`${amount(over)} of ${amount(job.matched)}`} />
      <Refused job={job} />
    </div>
  );
}

function Refused({ job }: { job: BulkDocument }): JSX.Element | null {
  if (!job.refused.length) return null;
  const reasons = new Map<string, string[]>();
  for (const one of job.refused) reasons.set(one.why, [...(reasons.get(one.why) ?? []), one.instance]);
  return (
    <ul class="plain">
      {[...reasons].slice(0, REASONS_SHOWN).map(([why, instances]) => (
        <li key={why}>
          {why}{" "}
          <span class="faint">
            {instances.slice(0, REFUSALS_SHOWN).join(", ")}
            {instances.length > REFUSALS_SHOWN && " …"}
          </span>
        </li>
      ))}
    </ul>
  );
}

function Stop({ id, onStopped }: { id: string; onStopped?: () => void }): JSX.Element {
  const doing = useDoing();
  const stop = async () => {
    if (await doing.run(() => ask(`bulk/${path(id)}`, { method: "DELETE" }))) onStopped?.();
  };
  return (
    <>
      <ProblemBox problem={doing.problem} />
      <div class="bar">
        <button type="button" class="danger" onClick={stop} disabled={doing.busy}>
          Stop it
        </button>
        <span class="faint">Those that were not reached stay as they are.</span>
      </div>
    </>
  );
}

/** Operations on many that go on, whoever began them: also when their dialog was closed. */
export function BulkUnderWay(): JSX.Element | null {
  const jobs = useLoad((signal) => ask<BulkDocument[]>("bulk", { signal }), []);
  useEvery(REFRESH_SECONDS, jobs.poll);
  const running = jobs.data?.filter((job) => job.status === "running") ?? [];
  if (!running.length) return null;
  return (
    <Card title="Under way" wide>
      {running.map((job) => (
        <div key={job.id}>
          <b>{job.dry_run ? `Counting for ${job.operation}` : job.operation}</b>
          <Progress job={job} />
          <Stop id={job.id} onStopped={jobs.reload} />
        </div>
      ))}
    </Card>
  );
}
