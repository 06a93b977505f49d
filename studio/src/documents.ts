// What the server answers: docs/reference/http.md, and the models in src/mainspring/web.

export interface InstanceDocument {
  instance: string;
  workflow: string;
  id: string;
  status: string;
  state: string | null;
  version: number;
  error: string | null;
  began: string;
  updated: string;
  key: number;
}

export interface EventDocument {
  version: number;
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
  version: number;
  kind: string;
  key: string | null;
  type: string;
  message: unknown;
  due: string;
  attempts: number;
}

export interface WaitingDocument {
  inbox: InputDocument[];
  outbox: OutputDocument[];
  timers: OutputDocument[];
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
  version: number;
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

export interface ScheduleDocument {
  name: string;
  calendar: string;
  catch_up: string;
  message: string;
  status: string;
  next: string | null;
}

export interface WorkflowDocument {
  name: string;
  version: number;
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
  definition_version: number;
  fingerprint: string;
  asked: boolean;
  agrees: boolean;
  cut: boolean;
  decide: BranchDocument[];
  evolve: { version: number; branches: BranchDocument[] }[];
  decided: DecidedEvent[];
  error: string | null;
}

export interface MomentDocument {
  version: number;
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
  stopped: { version: number; problem: string } | null;
}

export interface ToldEvent extends DecidedEvent {
  version: number;
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
  untaken: { version: number; type: string; message: unknown; reason: string }[];
  waiting: ToldEvent[];
  left_out: ToldEvent[];
  error: string | null;
}

export interface LinkedInstance {
  relation: "parent" | "child" | "sender" | "receiver";
  instance: string;
  workflow: string;
  id: string;
  version: number | null;
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
  version: number;
  what: string;
  time: string | null;
  about: string;
  state: string | null;
  actor: string | null;
  kind: string | null;
  attempt: number | null;
  seconds: number | null;
}

export interface DiagramStep {
  message: string;
  seen: "both" | "code" | "history";
  guards: string[];
  outputs: string[];
  places: string[];
  count: number | null;
  then: string | null;
}

export interface DiagramNode {
  name: string;
  kind: "state" | "begin" | "end" | "unknown";
  seen: "both" | "code" | "history";
  ends: string[];
  doc: string;
  visits: number | null;
  now: number | null;
  dwell_seconds: number | null;
}

export interface DiagramDocument {
  workflow: string;
  source: string;
  nodes: DiagramNode[];
  arrows: { source: string; target: string; steps: DiagramStep[] }[];
  instances: number | null;
  notes: string[];
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
}

export interface FindingDocument {
  level: "error" | "warning" | "note";
  code: string;
  rule: string;
  about: string[];
  file: string;
  line: number;
  what: string;
  fix: string;
}

export interface FindingsDocument {
  workflow: string;
  findings: FindingDocument[];
  intended: (FindingDocument & { reason: string })[];
}

export interface Spread {
  count: number;
  p50: number;
  p90: number;
  p99: number;
  longest: number;
  total: number;
}

export interface WorkflowFigures {
  workflow: string;
  statuses: Record<string, number>;
  begun: number;
  ended: Record<string, number>;
  failure_rate: number | null;
  throughput: { width: string; intervals: { begin: string; begun: number; ended: Record<string, number> }[] };
  durations: Record<string, Spread>;
  faults: number;
  states: { state: string; dwell: Spread | null; share: number; waiting: number; again: number }[];
  commands: {
    type: string;
    sent: number;
    answered: number;
    failed: number;
    failure_rate: number | null;
    retry_rate: number | null;
    handling: Spread | null;
    until_answer: Spread | null;
  }[];
  variants: { top: { steps: [string, string][]; count: number; share: number }[]; distinct: number; others: number };
  events: number;
}

export interface Figures {
  at: string;
  instances: number;
  events: number;
  workflows: WorkflowFigures[];
}

export interface StuckFound {
  at: string;
  shown: {
    instance: string;
    workflow: string;
    id: string;
    status: string;
    state: string;
    by: "bound" | "dwell";
    running_seconds: number;
    state_seconds: number;
    limit_seconds: number;
    usual_seconds: number | null;
    stays: number;
    reason: { cause: string; texts: string[] };
  }[];
  found: number;
  looked_at: number;
}

export interface SubjectDocument {
  machine: {
    workflow: string;
    doc: string;
    states: { name: string; doc: string; initial: boolean }[];
  };
  settings: [string, string][];
  handlers: { name: string; message: string; results: string[]; doc: string; policies: string[]; subscribes: boolean }[];
  schedules: { name: string; calendar: string; message: string; catch_up: string }[];
  takers: Record<string, string[]>;
  senders: Record<string, string[]>;
  external: string[];
}
