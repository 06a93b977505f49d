// Where somebody is stands in the address, behind the #: everything can be linked to, and "back" goes back.

import { useEffect, useRef, useState } from "preact/hooks";

export interface Route {
  parts: string[];
  query: URLSearchParams;
}

export function read(hash: string): Route {
  const text = hash.replace(/^#\/?/, "");
  const cut = text.indexOf("?");
  const where = cut < 0 ? text : text.slice(0, cut);
  return {
    parts: where.split("/").filter(Boolean).map(decoded),
    query: new URLSearchParams(cut < 0 ? "" : text.slice(cut + 1)),
  };
}

/** An address that somebody has typed may be no valid encoding; it then stands for itself. */
function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function link(parts: (string | number)[], query: Record<string, string | number | undefined> = {}): string {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined && value !== "") found.set(name, String(value));
  const asked = found.toString();
  return `#/${parts.map((part) => encodeURIComponent(part)).join("/")}${asked ? `?${asked}` : ""}`;
}

/** The link to an instance that is written as `OrderFulfilment/o-1`. */
export function instanceLink(identity: string, query: Record<string, string | number | undefined> = {}): string {
  const cut = identity.indexOf("/");
  return link(["instances", identity.slice(0, cut), identity.slice(cut + 1)], query);
}

let cameFrom: string | undefined;

interface Navigations {
  addEventListener(type: "navigate", call: (event: { navigationType: string }) => void): void;
}

// It is told before the address changes. Browsers that do not tell begin at the top of a list.
(window as { navigation?: Navigations }).navigation?.addEventListener("navigate", (event) => {
  cameFrom = event.navigationType === "traverse" ? location.hash : undefined;
});

/** Where somebody was before, if they came here by going back or forth. */
export function returnedFrom(): string | undefined {
  return cameFrom;
}

export function go(where: string): void {
  location.hash = where;
}

/** Change what is asked for, without another entry in the history: scrubbing is no navigation. */
export function amend(route: Route, changed: Record<string, string | number | undefined>): void {
  const query: Record<string, string | number | undefined> = { ...Object.fromEntries(route.query), ...changed };
  history.replaceState(null, "", link(route.parts, query));
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export function useRoute(): Route {
  const begun = useRef(location.hash);
  const [route, set] = useState(() => read(begun.current));
  useEffect(() => {
    const changed = () => set(read(location.hash));
    addEventListener("hashchange", changed);
    // Nobody listened between the first drawing and this moment: who was that quick is not left behind.
    if (location.hash !== begun.current) changed();
    return () => removeEventListener("hashchange", changed);
  }, []);
  return route;
}
