// Workers: who is alive, as far as their leases tell.

import type { JSX } from "preact";
import { ask } from "../api";
import type { WorkerDocument } from "../documents";
import { useEvery, useLoad } from "../hooks";
import { Empty, Shown, When } from "../parts/basics";
import { duration } from "../text";

const REFRESH_SECONDS = 2;

export function WorkersView(): JSX.Element {
  const list = useLoad((signal) => ask<WorkerDocument[]>("workers", { signal }), []);
  useEvery(REFRESH_SECONDS, list.poll);
  return (
    <>
      <h1>Workers</h1>
      <Shown of={list}>
        {(workers) =>
          workers.length ? (
            <table aria-label="Workers">
              <thead>
                <tr>
                  <th>Name</th>
                  <th class="number">Key</th>
                  <th>Heard of</th>
                  <th>Lease ends</th>
                  <th class="number">Lease</th>
                  <th>Holds back</th>
                </tr>
              </thead>
              <tbody>
                {workers.map((worker) => (
                  <tr key={worker.key}>
                    <td class="break">{worker.name}</td>
                    <td class="number">{worker.key}</td>
                    <td>
                      <When time={worker.heard} />
                    </td>
                    <td>
                      <When time={worker.until} />
                    </td>
                    <td class="number">{duration(worker.lease_seconds)}</td>
                    <td class="break">
                      {worker.held_back.map((why) => (
                        <div key={why}>{why}</div>
                      ))}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          ) : (
            <Empty>No worker is alive: no handler runs, and no timer fires. Start one with `mainspring worker module:app`.</Empty>
          )
        }
      </Shown>
    </>
  );
}
