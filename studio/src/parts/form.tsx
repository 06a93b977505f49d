// A form that is generated from the schema of a message. What is known already is filled in; what is no plain value is JSON.

import type { JSX } from "preact";
import { Problem } from "../api";
import type { Form, FormField } from "../documents";
import { pretty, words } from "../text";

export type Values = Record<string, string>;
type Kind = "text" | "integer" | "number" | "boolean" | "choice" | "json" | "date" | "date-time";

/** What is used of JSON Schema. */
interface Schema {
  type?: string | string[];
  enum?: unknown[];
  anyOf?: Schema[];
  $ref?: string;
  format?: string;
  description?: string;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
}

/** What a schema says in the end: references followed, and "or nothing" left aside. */
function resolved(schema: Schema, definitions: Record<string, Schema>, depth = 8): Schema {
  if (depth === 0) return schema;
  if (schema.$ref) {
    const found = definitions[schema.$ref.replace(/^#\/\$defs\//, "")];
    return found ? resolved(found, definitions, depth - 1) : schema;
  }
  const others = schema.anyOf?.filter((one) => one.type !== "null");
  return others?.length === 1 && others[0] ? resolved(others[0], definitions, depth - 1) : schema;
}

function schemaOf(field: FormField, form: Form): Schema {
  return resolved(field.schema, form.definitions as Record<string, Schema>);
}

function kindOf(schema: Schema): Kind {
  if (schema.enum) return "choice";
  switch (schema.type) {
    case "string":
      return schema.format === "date" || schema.format === "date-time" ? schema.format : "text";
    case "integer":
    case "number":
    case "boolean":
      return schema.type;
    default:
      return "json";
  }
}

function written(kind: Kind, value: unknown): string {
  if (value === null || value === undefined) return "";
  if (kind === "json" || kind === "choice") return kind === "json" ? pretty(value) : JSON.stringify(value);
  if (kind === "date-time") return localTime(String(value));
  return String(value);
}

function localTime(time: string): string {
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? "" : new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

export function start(form: Form): Values {
  return Object.fromEntries(form.fields.map((field) => [field.name, written(kindOf(schemaOf(field, form)), field.value)]));
}

/** What was filled in, as the message's fields. What is left as it was known is not sent. */
export function read(form: Form, values: Values): Record<string, unknown> {
  const known = start(form);
  const found: Record<string, unknown> = {};
  for (const field of form.fields) {
    const text = values[field.name] ?? "";
    if (text === known[field.name] && (text !== "" || !field.required)) continue;
    const kind = kindOf(schemaOf(field, form));
    if (text === "" && kind !== "text") {
      if (field.required) throw new Problem(-1, "not filled in", `${field.name} is missing.`);
      continue;
    }
    found[field.name] = valueOf(field, kind, text);
  }
  return found;
}

function valueOf(field: FormField, kind: Kind, text: string): unknown {
  switch (kind) {
    case "boolean":
      return text === "true";
    case "integer":
    case "number":
      if (!Number.isFinite(Number(text))) throw new Problem(-1, "no number", `${field.name} has to be a number.`);
      return Number(text);
    case "choice":
    case "json":
      try {
        return JSON.parse(text);
      } catch {
        throw new Problem(-1, "no JSON", `${field.name} has to be JSON.`);
      }
    case "date-time":
      return new Date(text).toISOString();
    default:
      return text;
  }
}

interface Shown {
  form: Form;
  values: Values;
  onChange: (name: string, value: string) => void;
}

/** What is asked for, and folded away what is known already. */
export function FormFields({ form, values, onChange }: Shown): JSX.Element {
  const known = form.fields.filter((field) => field.value !== null);
  const shown = (fields: FormField[]) =>
    fields.map((field) => (
      <label key={field.name}>
        <span>
          {words(field.name)}
          {!field.required && <span class="faint"> (may be left out)</span>}
        </span>
        <Input
          field={field}
          schema={schemaOf(field, form)}
          value={values[field.name] ?? ""}
          onChange={(value) => onChange(field.name, value)}
        />
        {typeof field.schema.description === "string" && <small>{field.schema.description}</small>}
      </label>
    ));
  return (
    <>
      {shown(form.fields.filter((field) => field.value === null))}
      {known.length > 0 && (
        <details>
          <summary>Known already: {known.map((field) => words(field.name)).join(", ")}</summary>
          <div class="fields">{shown(known)}</div>
        </details>
      )}
    </>
  );
}

interface Filled {
  field: FormField;
  schema: Schema;
  value: string;
  onChange: (value: string) => void;
}

function Input({ field, schema, value, onChange }: Filled): JSX.Element {
  const kind = kindOf(schema);
  const changed = (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value);
  switch (kind) {
    case "boolean":
    case "choice": {
      const choices = kind === "boolean" ? [["true", "yes"], ["false", "no"]] : (schema.enum ?? []).map((one) => [JSON.stringify(one), String(one)]);
      return (
        <select value={value} onChange={changed} required={field.required}>
          <option value="">–</option>
          {choices.map(([chosen, title]) => (
            <option key={chosen} value={chosen}>
              {title}
            </option>
          ))}
        </select>
      );
    }
    case "integer":
    case "number":
      return <input type="number" step={kind === "integer" ? 1 : "any"} value={value} onInput={changed} required={field.required} {...bounds(schema)} />;
    case "date":
      return <input type="date" value={value} onInput={changed} required={field.required} />;
    case "date-time":
      return <input type="datetime-local" step={1} value={value} onInput={changed} required={field.required} />;
    case "text":
      return <input type="text" value={value} onInput={changed} />;
    case "json":
      return <textarea rows={4} value={value} onInput={changed} required={field.required} spellcheck={false} placeholder="JSON" />;
  }
}

function bounds(schema: Schema): { min?: number; max?: number } {
  return { ...(schema.minimum === undefined ? {} : { min: schema.minimum }), ...(schema.maximum === undefined ? {} : { max: schema.maximum }) };
}
