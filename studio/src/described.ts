// What the server answers about workflows, and about many instances together.

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
  timers: { type: string; set: number; fired: number; over: number }[];
  variants: { top: { steps: [string, string][]; count: number; share: number }[]; distinct: number; others: number };
  events: number;
}

export interface Advice {
  kind: string;
  workflow: string;
  subject: string;
  figure: string;
  text: string;
  link: string;
  command: string;
}

export interface Figures {
  at: string;
  instances: number;
  events: number;
  workflows: WorkflowFigures[];
  advice: Advice[];
}

export interface WhatIfDocument {
  instances: number;
  in_flight: number;
  events: number;
  compared: { decisions: number; state_names: number; states: number; states_passed: number };
  differing: number;
  differing_in_flight: number;
  differences: {
    workflow: string;
    workflow_version: number;
    kind: string;
    what: string;
    instances: number;
    in_flight: number;
    steps: number;
    examples: { instance: string; status: string; position: number; lines: string[] }[];
  }[];
  unchecked: { why: string; instances: number; in_flight: number; example: string }[];
}

export interface StuckFound {
  at: string;
  shown: {
    instance: string;
    workflow: string;
    id: string;
    status: string;
    state: string;
    by: "suspended" | "bound" | "dwell";
    running_seconds: number;
    state_seconds: number;
    limit_seconds: number | null;
    usual_seconds: number | null;
    stays: number;
    reason: { cause: string; texts: string[] };
  }[];
  found: number;
  looked_at: number;
}

export interface MessageDescribed {
  name: string;
  doc: string;
  fields: { name: string; type: string; required: boolean }[];
}

export interface SubjectDocument {
  machine: {
    workflow: string;
    doc: string;
    states: { name: string; doc: string; initial: boolean; ended: boolean }[];
    inputs: MessageDescribed[];
    outputs: MessageDescribed[];
  };
  settings: [string, string][];
  handlers: { name: string; message: string; results: string[]; doc: string; policies: string[]; subscribes: boolean }[];
  schedules: { name: string; calendar: string; message: string; catch_up: string }[];
  takers: Record<string, string[]>;
  senders: Record<string, string[]>;
  external: string[];
}
