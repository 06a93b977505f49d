// Attributes: what an instance can be searched by. Each leads to those that have the same.

import type { JSX } from "preact";
import { ask, path } from "../api";
import type { AttributesDocument } from "../documents";
import { useLoad } from "../hooks";
import { link } from "../route";

// Between two conditions stands a comma; one inside of a text is followed by no comparison.
const BETWEEN = /,\s*(?=[A-Za-z_][\w.]*\s*(?:[<>]=?|=))/;
const MOMENT = /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/;

/** The conditions in a text, each as the server reads it. */
export function conditions(text: string): string[] {
  return text.split(BETWEEN).map((one) => one.trim()).filter(Boolean);
}

/** A condition that finds those with the same value; a text is quoted, lest it be taken for a number. */
function condition(name: string, value: unknown): string {
  return typeof value === "string" && !MOMENT.test(value) ? `${name}='${value}'` : `${name}=${String(value)}`;
}

export function Attributes({ workflow, id, position }: { workflow: string; id: string; position: number }): JSX.Element | null {
  const found = useLoad((signal) => ask<AttributesDocument>(`attributes/${path(workflow, id)}`, { signal }), [workflow, id], position);
  if (!found.data) return null;
  return (
    <>
      {Object.entries(found.data.attributes).map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>
            <a href={link(["instances"], { workflow, attribute: condition(name, value) })} title={`All ${workflow} with the same ${name}`}>
              {String(value)}
            </a>
          </dd>
        </div>
      ))}
    </>
  );
}
