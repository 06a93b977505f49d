// One instance: what happened, why, what it waits for, and how it would have gone otherwise.

import type { JSX } from "preact";
import { useCallback, useState } from "preact/hooks";
import { ask, path } from "../api";
import type { InstanceInfo } from "../documents";
import { useAmended, useLoad } from "../hooks";
import { useLive } from "../live";
import { LiveSign, Shown, Status, Tabs, When } from "../parts/basics";
import { amend, link, type Route } from "../route";
import { amount } from "../text";
import { Attributes } from "./attributes";
import { LinksPanel } from "./links";
import { LogPanel } from "./log";
import { Operations } from "./operations";
import { RawPanel } from "./raw";
import { TravelPanel } from "./travel";
import { WaitingPanel } from "./waiting";
import { WhatIfPanel } from "./whatif";

const TABS = [
  { id: "history", title: "History" },
  { id: "waiting", title: "Waits for" },
  { id: "links", title: "Linked" },
  { id: "what-if", title: "What if" },
  { id: "log", title: "Log" },
  { id: "raw", title: "Raw and test" },
];
// The address follows a scrub when it pauses: a browser refuses to change it hundreds of times in a second.
const ADDRESS_MS = 250;
const OF_STREAMS = ["history", "what-if", "raw"];

interface Asked {
  workflow: string;
  id: string;
  route: Route;
}

export function InstanceView({ workflow, id, route }: Asked): JSX.Element {
  const instance = useLoad((signal) => ask<InstanceInfo>(`instances/${path(workflow, id)}`, { signal }), [workflow, id]);
  const [told, tell] = useState<InstanceInfo>();
  const live = useLive("live", { instance: `${workflow}/${id}` }, (event) => {
    if (event.type !== "instance") return;
    const now = event.data as InstanceInfo;
    if (now.position > (instance.data?.position ?? 0)) tell(now);
    else if (JSON.stringify(now) !== JSON.stringify(instance.data)) instance.reload();
  });
  const found = told && told.position > (instance.data?.position ?? 0) ? told : instance.data;
  return (
    <>
      <header class="title">
        <h1>
          <a href={link(["workflows", workflow])}>{workflow}</a>/<span class="break">{id}</span>
        </h1>
        {found && <Status status={found.status} />}
        <LiveSign state={live} />
      </header>
      <Shown of={{ ...instance, data: found }}>
        {(shown) => (
          <>
            <div class="top">
              <Facts instance={shown} />
              <Operations instance={shown} onDone={instance.reload} />
            </div>
            {shown.error && (
              <div class="problem" role="alert">
                <pre>{shown.error}</pre>
                {shown.status === "suspended" && shown.position > 0 && <a href={link(["dead-letters"])}>Look at the dead letters</a>}
              </div>
            )}
            <Inside instance={shown} route={route} />
          </>
        )}
      </Shown>
    </>
  );
}

function Facts({ instance }: { instance: InstanceInfo }): JSX.Element {
  return (
    <dl class="facts">
      <div>
        <dt>State</dt>
        <dd>{instance.state ?? "–"}</dd>
      </div>
      <div>
        <dt>Position</dt>
        <dd>{amount(instance.position)}</dd>
      </div>
      <div>
        <dt>Workflow version</dt>
        <dd>{amount(instance.workflow_version)}</dd>
      </div>
      <div>
        <dt>Began</dt>
        <dd>
          <When time={instance.began} />
        </dd>
      </div>
      <div>
        <dt>Moved</dt>
        <dd>
          <When time={instance.updated} />
        </dd>
      </div>
      <Attributes workflow={instance.workflow} id={instance.id} position={instance.position} />
    </dl>
  );
}

function Inside({ instance, route }: { instance: InstanceInfo; route: Route }): JSX.Element {
  const tab = route.query.get("tab") ?? "history";
  const [at, go] = usePosition(route, instance.position);
  const to = (id: string) => link(route.parts, { tab: id === "history" ? undefined : id, at: at === instance.position ? undefined : at });
  const { workflow, id, position } = instance;
  return (
    <>
      <Tabs tabs={TABS} at={tab} to={to} label="About this instance" />
      {OF_STREAMS.includes(tab) && position === 0 && (
        <p class="note">
          There is no event yet: a stream begins with the first input that is taken. <a href={to("waiting")}>What waits for it</a>
        </p>
      )}
      {tab === "history" && position > 0 && <TravelPanel workflow={workflow} id={id} count={position} at={at} onGo={go} />}
      {tab === "waiting" && <WaitingPanel instance={instance} />}
      {tab === "links" && <LinksPanel workflow={workflow} id={id} position={position} />}
      {tab === "what-if" && position > 0 && <WhatIfPanel workflow={workflow} id={id} count={position} at={at} onGo={go} />}
      {tab === "log" && <LogPanel workflow={workflow} id={id} position={position} />}
      {tab === "raw" && position > 0 && <RawPanel workflow={workflow} id={id} at={at} position={position} />}
    </>
  );
}

/** The position that is looked at: the one of the address, else the last one, and then whatever becomes the last one. */
function usePosition(route: Route, last: number): [number, (position: number) => void] {
  const found = Number(route.query.get("at") ?? 0);
  const asked = Number.isInteger(found) && found > 0 ? found : 0;
  const [chosen, choose] = useAmended(asked, (position) => amend(route, { at: position || undefined }), ADDRESS_MS);
  const at = chosen ? Math.min(chosen, Math.max(last, 1)) : last;
  const go = useCallback((position: number) => choose(position >= last ? 0 : Math.max(1, position)), [last]);
  return [at, go];
}
