// What the server answers. Written by `python -m docs.site --pages` from the OpenAPI document.

export interface Advice {
  kind: "branch never taken" | "failures" | "retries" | "time in a state" | "timer never fires" | "waiting for a worker";
  workflow: string;
  subject: string;
  figure: string;
  text: string;
  link: string;
  command: string;
}

export interface Arrow {
  source: string;
  target: string;
  steps: Step[];
}

export interface AttributeName {
  name: string;
  kind: "flag" | "number" | "text" | "time";
}

export interface AttributesDocument {
  instance: string;
  attributes: Record<string, unknown>;
}

export interface Bin {
  low: number;
  high: number;
  count: number;
}

export interface Branch {
  kind: "case" | "if" | "if not" | "no case";
  text: string;
  function: string;
  file: string;
  line: number;
  refused: Guard[];
}

export interface BulkDocument {
  id: string;
  operation: string;
  dry_run: boolean;
  status: "done" | "failed" | "running" | "stopped";
  matched: number;
  done: number;
  left: number;
  refusals: number;
  refused: Refusal[];
  error: string | null;
}

export interface CommandFigures {
  type: string;
  sent: number;
  answered: number;
  failed: number;
  failure_rate: number | null;
  calls: number;
  attempts: number;
  retried: number;
  retry_rate: number | null;
  handling: Spread | null;
  until_answer: Spread | null;
  again: number;
}

export interface Compared {
  decisions: number;
  state_names: number;
  states: number;
  before_migration: number;
  unreadable_snapshots: number;
  states_passed: number;
}

export interface CounterfactualDocument {
  instance: string;
  what: "drop" | "insert" | "replace";
  at: number;
  recorded: ToldEvent[];
  told: ToldEvent[];
  differs_at: number | null;
  recorded_state: StateShown;
  state: StateShown;
  change: StateChanged | null;
  unanswered: ToldEvent[];
  assumed: ToldEvent[];
  untaken: UntakenDocument[];
  waiting: ToldEvent[];
  left_out: ToldEvent[];
  error: string | null;
}

export interface DecidedEvent {
  event: string;
  direction: "input" | "lifecycle" | "output";
  kind: string | null;
  type: string | null;
  message: unknown;
  key: string | null;
  after_seconds: number | null;
  at: string | null;
  to: string | null;
  reason: string | null;
}

export interface Diagram {
  workflow: string;
  source: "both" | "code" | "history";
  nodes: Node[];
  arrows: Arrow[];
  workflow_version: number | null;
  instances: number | null;
  notes: string[];
}

export interface Difference {
  workflow: string;
  workflow_version: number;
  kind: "decision" | "error" | "evolve" | "state" | "unreadable";
  what: string;
  instances: number;
  in_flight: number;
  steps: number;
  examples: Example[];
}

export interface EventInfo {
  position: number;
  time: string;
  event: string;
  direction: "input" | "lifecycle" | "output";
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

export interface Evolved {
  position: number;
  branches: Branch[];
}

export interface Example {
  instance: string;
  status: string;
  position: number;
  lines: string[];
}

export interface ExplanationDocument {
  workflow_version: number;
  fingerprint: string;
  asked: boolean;
  agrees: boolean;
  cut: boolean;
  decide: Branch[];
  evolve: Evolved[];
  decided: DecidedEvent[];
  error: string | null;
}

export interface Field {
  name: string;
  type: string;
  required: boolean;
}

export interface Figures {
  at: string;
  since: string | null;
  until: string | null;
  instances: number;
  events: number;
  workflows: WorkflowFigures[];
  advice: Advice[];
}

export interface FindingDocument {
  level: "error" | "note" | "warning";
  code: string;
  rule: string;
  workflow: string;
  about: string[];
  file: string;
  line: number;
  what: string;
  fix: string;
  witness: string[] | null;
}

export interface FindingsDocument {
  workflow: string;
  findings: FindingDocument[];
  intended: IntendedFinding[];
}

export interface Form {
  answer: string;
  message_version: number;
  rejects: boolean;
  fields: FormField[];
  definitions: Record<string, unknown>;
}

export interface FormField {
  name: string;
  schema: Record<string, unknown>;
  required: boolean;
  value: unknown;
}

export interface Frame {
  file: string;
  line: number;
  function: string;
  text: string;
  variables: Variable[];
  more: number;
}

export interface FunctionText {
  file: string;
  function: string;
  line: number;
  text: string;
}

export interface Gap {
  source: string;
  message: string;
  guard: string;
  ways: ("answer" | "child" | "join" | "message" | "reply" | "result" | "then" | "timer" | "undone")[];
  begins: boolean;
  failed: string[];
}

export interface Guard {
  line: number;
  text: string;
}

export interface HandlerFacts {
  name: string;
  message: string;
  results: string[];
  doc: string;
  policies: string[];
  subscribes: boolean;
}

export interface InstanceInfo {
  instance: string;
  workflow: string;
  id: string;
  status: "cancelled" | "compensating" | "completed" | "failed" | "running" | "suspended" | "terminated";
  state: string | null;
  workflow_version: number;
  position: number;
  error: string | null;
  began: string;
  updated: string;
  key: number;
  purged?: string | null;
}

export interface IntendedFinding {
  level: "error" | "note" | "warning";
  code: string;
  rule: string;
  workflow: string;
  about: string[];
  file: string;
  line: number;
  what: string;
  fix: string;
  witness: string[] | null;
  reason: string;
}

export interface Interval {
  begin: string;
  begun: number;
  ended: Record<string, number>;
}

export type Kind = "answer" | "command" | "event" | "reply" | "result" | "task" | "timer";

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

export interface LetterRefusal {
  id: number;
  why: string;
}

export interface Line {
  after: string;
  what: string;
  event: string;
  state: string;
}

export interface LinkedInstance {
  relation: "child" | "parent" | "receiver" | "sender";
  instance: string;
  workflow: string;
  id: string;
  position: number | null;
  type: string | null;
  status: "cancelled" | "compensating" | "completed" | "failed" | "running" | "suspended" | "terminated" | null;
  state: string | null;
}

export interface LinksDocument {
  instance: string;
  links: LinkedInstance[];
  cut: boolean;
  unread: number;
}

export interface LogLine {
  position: number;
  what: "Attempted" | "Cancelled" | "Compensated" | "Compensating" | "Completed" | "Failed" | "Faulted" | "Kept" | "Migrated" | "Refused" | "Resent" | "Reset" | "Resumed" | "Retried" | "Skipped" | "Started" | "Stepped" | "Suspended" | "Terminated";
  time: string | null;
  about: string;
  state: string | null;
  actor: string | null;
  kind: Kind | null;
  attempt: number | null;
  duration_seconds: number | null;
  answered_after_seconds: number | null;
  waited_seconds: number | null;
  command: string | null;
}

export interface Machine {
  workflow: string;
  version: number;
  doc: string;
  states: State[];
  inputs: Message[];
  outputs: Message[];
  transitions: Transition[];
  gaps: Gap[];
  unresolved: Unresolved[];
  cases: Place[];
  place: Place | null;
}

export interface ManySettled {
  operation: "discard" | "retry";
  dry_run: boolean;
  matched: number;
  done: number;
  left: number;
  refusals: number;
  refused: LetterRefusal[];
}

export interface Message {
  name: string;
  doc: string;
  fields: Field[];
  begins: boolean;
  ways: ("answer" | "child" | "join" | "message" | "reply" | "result" | "then" | "timer" | "undone")[];
  place: Place | null;
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

export interface MomentEvent {
  position: number;
  time: string;
  event: string;
  direction: "input" | "lifecycle" | "output";
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
  cause: number | null;
  change: StateChanged | null;
}

export interface MomentPage {
  items: MomentDocument[];
  before: StateShown | null;
  next: number | null;
  stopped: StoppedDocument | null;
}

export interface NewFields {
  workflow: string;
  workflow_version: number;
  state: string;
  fields: string[];
}

export interface NextTimes {
  name: string;
  times: string[];
}

export interface Node {
  name: string;
  kind: "begin" | "end" | "state" | "unknown";
  seen: "both" | "code" | "history";
  ends: string[];
  doc: string;
  visits: number | null;
  now: number | null;
  dwell_seconds: number | null;
}

export interface OpenChild {
  position: number;
  type: string | null;
  began: string;
  done: number | null;
  total: number | null;
  instance: string | null;
}

export interface Output {
  decision: string;
  message: string | null;
  messages: string[];
  detail: string;
  when: string;
  key: string | null;
  timers: number;
  repeated: boolean;
  compensate: string | null;
  place: Place | null;
}

export interface PauseInfo {
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
  paused: PauseInfo[];
  pausable: string[];
}

export interface Place {
  file: string;
  line: number;
}

export interface PlaceChanged {
  path: string;
  what: "added" | "changed" | "removed";
  before: unknown;
  after: unknown;
}

export interface Reason {
  cause: "child" | "damaged" | "dead letter" | "failing" | "gone" | "handler" | "held back" | "inbox" | "lost" | "nothing" | "paused" | "suspended" | "task" | "timer" | "unread";
  texts: string[];
}

export interface Refusal {
  instance: string;
  why: string;
}

export interface Report {
  instances: number;
  in_flight: number;
  events: number;
  compared: Compared;
  differing: number;
  differing_in_flight: number;
  differences: Difference[];
  unchecked: Unchecked[];
  against: string | null;
  new_fields: NewFields[];
}

export interface ScheduleFacts {
  name: string;
  calendar: string;
  message: string;
  catch_up: string;
}

export interface ScheduleInfo {
  name: string;
  calendar: string;
  catch_up: "all" | "once" | "skip";
  message: string;
  status: "active" | "not started" | "paused" | "removed" | "suspended";
  next: string | null;
}

export interface ShownLetter {
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
  headers?: Record<string, string> | null;
  unreadable?: string | null;
  letter_kind: string;
}

export interface Spread {
  count: number;
  p50: number;
  p90: number;
  p99: number;
  longest: number;
  total: number;
  exact: boolean;
}

export interface State {
  name: string;
  doc: string;
  fields: Field[];
  initial: boolean;
  ended: boolean;
  reachable: boolean;
  place: Place | null;
}

export interface StateChanged {
  before: string;
  after: string;
  places: PlaceChanged[];
  cut: boolean;
}

export interface StateFigures {
  state: string;
  dwell: Spread | null;
  share: number;
  waiting: number;
  again: number;
}

export interface StateInfo {
  position: number;
  type: string | null;
  state: unknown;
  problem: string | null;
}

export interface StateShown {
  type: string;
  state: unknown;
}

export interface Stats {
  instances: Record<string, number>;
  inbox: number;
  outbox: number;
  timers: number;
  dead_letters: number;
  workers: number;
  oldest_due: string | null;
}

export interface Step {
  message: string;
  seen: "both" | "code" | "history";
  guards: string[];
  outputs: string[];
  places: string[];
  count: number | null;
  then: string | null;
}

export interface StepFigures {
  source: string | null;
  message: string;
  target: string;
  count: number;
}

export interface StoppedDocument {
  position: number;
  problem: string;
}

export interface Stuck {
  instance: string;
  workflow: string;
  id: string;
  status: string;
  state: string;
  by: "bound" | "dwell" | "suspended";
  running_seconds: number;
  state_seconds: number;
  limit_seconds: number | null;
  usual_seconds: number | null;
  stays: number;
  reason: Reason;
}

export interface StuckFound {
  at: string;
  shown: Stuck[];
  found: number;
  looked_at: number;
  held_back: string[];
  lines: StuckLine[];
}

export interface StuckLine {
  line: string;
  text: string;
  instances: string[];
}

export interface Subject {
  machine: Machine;
  diagram: Diagram;
  settings: [string, string][];
  handlers: HandlerFacts[];
  schedules: ScheduleFacts[];
  takers: Record<string, string[]>;
  senders: Record<string, string[]>;
  external: string[];
  stories: Told[];
}

export interface Task {
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
  status: "answered" | "closed" | "open";
  claimed_by: string | null;
  claimed_at: string | null;
  answered_by: string | null;
  answer: string | null;
  ended_at: string | null;
}

export interface TaskOutcome {
  id: string;
  first: boolean;
  status: "accepted" | "dead letter" | "duplicate" | "kept" | "pending" | "refused" | "stepped" | "suspended";
  answered_by: string;
  answered_at: string;
  answer: string;
  message: unknown;
}

export interface TaskWithForms {
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
  status: "answered" | "closed" | "open";
  claimed_by: string | null;
  claimed_at: string | null;
  answered_by: string | null;
  answer: string | null;
  ended_at: string | null;
  forms: Form[];
}

export interface Throughput {
  width: "day" | "hour" | "minute" | "week";
  intervals: Interval[];
}

export interface TimerFigures {
  type: string;
  set: number;
  fired: number;
  over: number;
}

export interface Told {
  status: string;
  state: string;
  took: string;
  like: number;
  lines: Line[];
}

export interface ToldEvent {
  event: string;
  direction: "input" | "lifecycle" | "output";
  kind: string | null;
  type: string | null;
  message: unknown;
  key: string | null;
  after_seconds: number | null;
  at: string | null;
  to: string | null;
  reason: string | null;
  position: number;
  time: string | null;
}

export interface Transition {
  source: string;
  message: string;
  target: string;
  guard: string;
  outputs: Output[];
  ends: "completed" | "failed" | null;
  begins: boolean;
  ignored: boolean;
  ways: ("answer" | "child" | "join" | "message" | "reply" | "result" | "then" | "timer" | "undone")[];
  decided: Place | null;
  evolved: Place[];
  failed: string[];
}

export interface Unchecked {
  why: string;
  instances: number;
  in_flight: number;
  example: string;
}

export interface Unresolved {
  place: Place;
  text: string;
  reason: string;
  source: string;
  message: string;
}

export interface UntakenDocument {
  position: number | null;
  type: string;
  message: unknown;
  reason: string;
}

export interface Variable {
  name: string;
  type: string;
  value: string | null;
}

export interface Variant {
  steps: [string, string][];
  count: number;
  share: number;
}

export interface VariantsFound {
  top: Variant[];
  distinct: number;
  others: number;
  uncertain: number;
}

export interface Waiting {
  inbox: WaitingInput[];
  outbox: WaitingOutput[];
  timers: WaitingOutput[];
  children: OpenChild[];
  children_since: number;
  tasks: string[];
  held_back: string[];
}

export interface WaitingCode {
  task: string;
  awaits: string;
  kind: "child" | "code" | "command" | "fan-out" | "message" | "step" | "task" | "timer";
  frames: Frame[];
  position: number | null;
  due: string | null;
  times_out: string | null;
  more: number;
}

export interface WaitingInput {
  message_id: string;
  kind: string;
  type: string;
  message: unknown;
  time: string;
  actor: string | null;
  unreadable?: string | null;
}

export interface WaitingOutput {
  instance: string;
  position: number;
  kind: string;
  key: string | null;
  type: string;
  message: unknown;
  due: string;
  attempts: number;
  error?: string | null;
  unreadable?: string | null;
}

export interface WaitsAt {
  position: number;
  is_flow: boolean;
  ended: boolean;
  waiting: WaitingCode[];
  more: number;
  functions: FunctionText[];
  problem: string | null;
}

export interface WorkerDocument {
  key: number;
  name: string;
  heard: string;
  until: string;
  lease_seconds: number;
  held_back: string[];
}

export interface WorkflowDocument {
  name: string;
  workflow_version: number;
  purpose: string | null;
  inputs: string[];
  begins: string[];
}

export interface WorkflowFigures {
  workflow: string;
  statuses: Record<string, number>;
  begun: number;
  ended: Record<string, number>;
  failure_rate: number | null;
  throughput: Throughput;
  durations: Record<string, Spread>;
  completion_times: Bin[];
  faults: number;
  suspensions: number;
  resets: number;
  states: StateFigures[];
  commands: CommandFigures[];
  timers: TimerFigures[];
  steps: StepFigures[];
  variants: VariantsFound;
  events: number;
  bytes: number;
  handler_seconds: number;
  incomplete: number;
}
