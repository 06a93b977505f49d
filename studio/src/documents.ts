// What the server answers: docs/reference/http.md, and the models in src/mainspring/web.

export type * from "./described";

export interface InstanceDocument {
  instance: string;
  workflow: string;
  id: string;
  status: string;
  state: string | null;
  workflow_version: number;
  position: number;
  error: string | null;
  began: string;
  updated: string;
  key: number;
}

export type AttributeValue = string | number | boolean;

export interface AttributeName {
  name: string;
  kind: "text" | "number" | "flag" | "time";
}

export interface LetterKind {
  kind: string;
  workflow: string;
  type: string;
  reason: string;
  error: string | null;
  count: number;
  first: number;
}

export interface LetterKinds {
  kinds: LetterKind[];
  others: number;
  looked_at: number;
  cut: boolean;
}

export interface ManySettled {
  matched: number;
  done: number;
  left: number;
  refusals: number;
  refused: { id: number; why: string }[];
}

export interface AttributesDocument {
  instance: string;
  attributes: Record<string, AttributeValue>;
}

export interface EventDocument {
  position: number;
  time: string;
  event: string;
  direction: "input" | "output" | "lifecycle";
  kind: string | null;
  type: string | null;
  message: unknown;
  message_id: string | null;
  actor: string | null;
  state: string | null;
  attempt: number | null;
  key: string | null;
  after_seconds: number | null;
  at: string | null;
  to: string | null;
  reason: string | null;
}

export interface InputDocument {
  message_id: string;
  kind: string;
  type: string;
  message: unknown;
  time: string;
  actor: string | null;
}

export interface OutputDocument {
  instance: string;
  position: number;
  kind: string;
  key: string | null;
  type: string;
  message: unknown;
  due: string;
  attempts: number;
}

export interface ChildDocument {
  position: number;
  type: string | null;
  began: string;
  done: number | null;
  total: number | null;
  instance: string | null;
}

export interface WaitingDocument {
  inbox: InputDocument[];
  outbox: OutputDocument[];
  timers: OutputDocument[];
  children: ChildDocument[];
  children_since: number;
  tasks: string[];
  held_back: string[];
}

export interface LetterDocument {
  id: number;
  instance: string;
  message_id: string;
  kind: string;
  type: string;
  message: unknown;
  time: string;
  reason: string;
  error: string | null;
  attempts: number;
  actor: string | null;
  letter_kind: string;
}

export interface TaskDocument {
  id: string;
  workflow: string;
  instance: string;
  key: string;
  title: string;
  answers: string[];
  role: string | null;
  person: string | null;
  excludes: string[];
  reject: string | null;
  data: Record<string, unknown>;
  opened_at: string;
  due_at: string | null;
  overdue: boolean;
  status: "open" | "answered" | "closed";
  claimed_by: string | null;
  claimed_at: string | null;
  answered_by: string | null;
  answer: string | null;
  ended_at: string | null;
}

export interface Schema {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: Schema[];
  $ref?: string;
  format?: string;
  title?: string;
  description?: string;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
}

export interface FormField {
  name: string;
  schema: Schema;
  required: boolean;
  value: unknown;
}

export interface FormDocument {
  answer: string;
  message_version: number;
  rejects: boolean;
  fields: FormField[];
  definitions: Record<string, Schema>;
}

export interface TaskWithForms extends TaskDocument {
  forms: FormDocument[];
}

export interface TaskOutcome {
  id: string;
  first: boolean;
  status: string;
  answered_by: string;
  answered_at: string;
  answer: string;
}

export interface PauseDocument {
  what: string;
  kind: "handler" | "workflow";
  name: string;
  reason: string;
  actor: string | null;
  since: string;
  waiting: number;
  more: boolean;
}

export interface PausesDocument {
  paused: PauseDocument[];
  pausable: string[];
}

export interface ScheduleDocument {
  name: string;
  calendar: string;
  catch_up: string;
  message: string;
  status: string;
  next: string | null;
}

export interface NextTimes {
  name: string;
  times: string[];
}

export interface WorkflowDocument {
  name: string;
  workflow_version: number;
  purpose: string | null;
  inputs: string[];
  begins: string[];
}

export interface StatsDocument {
  instances: Record<string, number>;
  inbox: number;
  outbox: number;
  timers: number;
  dead_letters: number;
  workers: number;
  oldest_due: string | null;
}

export interface StateDocument {
  position: number;
  type: string | null;
  state: unknown;
  problem: string | null;
}

export interface StateShown {
  type: string;
  state: unknown;
}

export interface PlaceChanged {
  path: string;
  what: "changed" | "added" | "removed";
  before: unknown;
  after: unknown;
}

export interface StateChanged {
  before: string;
  after: string;
  places: PlaceChanged[];
  cut: boolean;
}

export interface MomentEvent extends EventDocument {
  change: StateChanged | null;
}

export interface BranchDocument {
  kind: "case" | "no case" | "if" | "if not";
  text: string;
  function: string;
  file: string;
  line: number;
  refused: { line: number; text: string }[];
}

export interface DecidedEvent {
  event: string;
  direction: "input" | "output" | "lifecycle";
  kind: string | null;
  type: string | null;
  message: unknown;
  key: string | null;
  after_seconds: number | null;
  at: string | null;
  to: string | null;
  reason: string | null;
}

export interface ExplanationDocument {
  workflow_version: number;
  fingerprint: string;
  asked: boolean;
  agrees: boolean;
  cut: boolean;
  decide: BranchDocument[];
  evolve: { position: number; branches: BranchDocument[] }[];
  decided: DecidedEvent[];
  error: string | null;
}

export interface MomentDocument {
  position: number;
  last: number;
  step: boolean;
  begins: boolean;
  abandoned: boolean;
  migrated: boolean;
  events: MomentEvent[];
  after: StateShown;
  explanation: ExplanationDocument | null;
}

export interface MomentPage {
  items: MomentDocument[];
  before: StateShown | null;
  next: number | null;
  stopped: { position: number; problem: string } | null;
}

export interface ToldEvent extends DecidedEvent {
  position: number;
  time: string | null;
}

export interface CounterfactualDocument {
  instance: string;
  what: "replace" | "insert" | "drop";
  at: number;
  recorded: ToldEvent[];
  told: ToldEvent[];
  differs_at: number | null;
  recorded_state: StateShown;
  state: StateShown;
  change: StateChanged | null;
  unanswered: ToldEvent[];
  assumed: ToldEvent[];
  untaken: { position: number | null; type: string; message: unknown; reason: string }[];
  waiting: ToldEvent[];
  left_out: ToldEvent[];
  error: string | null;
}

export interface LinkedInstance {
  relation: "parent" | "child" | "sender" | "receiver";
  instance: string;
  workflow: string;
  id: string;
  position: number | null;
  type: string | null;
  status: string | null;
  state: string | null;
}

export interface LinksDocument {
  instance: string;
  links: LinkedInstance[];
  cut: boolean;
}

export interface LogLine {
  position: number;
  what: string;
  time: string | null;
  about: string;
  state: string | null;
  actor: string | null;
  kind: string | null;
  command: string | null;
  attempt: number | null;
  duration_seconds: number | null;
  answered_after_seconds: number | null;
  waited_seconds: number | null;
}

export interface BulkDocument {
  id: string;
  operation: string;
  dry_run: boolean;
  status: "running" | "done" | "stopped" | "failed";
  matched: number;
  done: number;
  left: number;
  refusals: number;
  refused: { instance: string; why: string }[];
  error: string | null;
}

export interface WorkerDocument {
  key: number;
  name: string;
  heard: string;
  until: string;
  lease_seconds: number;
  held_back: string[];
}
