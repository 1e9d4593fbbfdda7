// The API's answers; see src/matrix_coder/web/shapes.py. A test holds the two to each other.
export interface Problem {
  code: string;
  message: string;
  next: string;
}

export interface RunSummary {
  run_id: string;
  workflow: string;
  goal: string;
  workspace: string;
  origin: string;
  session_id: string;
  domain: string;
  status: string;
  outcome: string | null;
  reason: string;
  iteration: number;
  cap: number;
  steps: number;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number;
  unpriced_tokens: number;
  money_usd: number;
  seconds: number;
  created_at: number;
  started_at: number;
  ended_at: number;
}

export interface RunPage {
  runs: RunSummary[];
  next_before: number | null;
  total: number;
  counts: Record<string, number>;
  last_event: number;
  now: number;
}

export interface CheckResult {
  index: number;
  name: string;
  command: string;
  passed: boolean;
  counts: string;
  exit_code: number | null;
  duration_s: number;
  tree: string;
  cases: Record<string, number>;
  failing: string[];
  has_output: boolean;
}

export interface FindingShape {
  severity: string;
  summary: string;
  file: string;
  line: number | null;
}

export interface PlannedUnit {
  name: string;
  role: string;
  goal: string;
  files: string[];
  topic: string;
}

export interface ReportShape {
  verdict: string;
  summary: string;
  findings: FindingShape[];
  open_questions: string[];
  positive_observations: string[];
  recommendation: string;
  dropped_findings: number;
  units: PlannedUnit[];
}

export interface UnitShape {
  name: string;
  state: "" | "ready" | "merging" | "merged" | "done" | "empty" | "failed";
  goal: string;
  owns: string[];
  topic: string;
  why: string;
  files: string[];
  files_total: number;
  checkout: string;
  branch: string;
  command: string;
}

export interface StepShape {
  number: number;
  name: string;
  iteration: number;
  role: string;
  lens: string;
  domain: string;
  status: string;
  attempt: number;
  report: ReportShape | null;
  evidence: CheckResult[];
  note: string;
  input_tokens: number;
  output_tokens: number;
  cost_usd: number;
  unpriced_tokens: number;
  seconds: number;
  started_at: number;
  ended_at: number;
  child_session: string;
  has_diff: boolean;
  unit: UnitShape | null;
}

export interface Budget {
  name: "iterations" | "tokens" | "seconds" | "money";
  used: number;
  limit: number;
}

export interface CommandArgument {
  name: string;
  label: string;
  kind: "text" | "number" | "choice";
  required: boolean;
  choices: string[];
}

export interface CommandOffer {
  name: string;
  label: string;
  confirm: string;
  arguments: CommandArgument[];
}

export interface RunDetail {
  run: RunSummary;
  question: string;
  checks: string[];
  baseline: CheckResult[];
  steps: StepShape[];
  evidence: CheckResult[];
  changed: string[];
  changed_count: number;
  budgets: Budget[];
  step_limit_s: number;
  commands: CommandOffer[];
  has_report: boolean;
  has_diff: boolean;
  last_event: number;
  now: number;
}

export interface CaseShape {
  id: string;
  result: string;
}

export interface EvidenceDetail {
  check: CheckResult;
  environment: string;
  cases: CaseShape[];
  cases_total: number;
}

export interface OutputPart {
  text: string;
  start: number;
  end: number;
  size: number;
}

export interface ReportText {
  markdown: string;
}

export interface DiffFile {
  index: number;
  path: string;
  old_path: string;
  change: "added" | "deleted" | "changed" | "mode";
  added: number;
  removed: number;
  size: number;
  patch: string | null;
}

export interface Diff {
  files: DiffFile[];
  files_total: number;
  added: number;
  removed: number;
  cut: boolean;
}

export interface CommandAnswer {
  message: string;
  run: RunSummary;
}

export interface SignalShape {
  text: string;
  span: [number, number];
  rule: string;
  vote: string;
  weight: number;
}

export interface RouteAnswer {
  outcome: string;
  verdict: string;
  coding: boolean;
  route: string | null;
  role: string | null;
  workflow: boolean;
  lens: string | null;
  domain: string | null;
  goal: string;
  asks: boolean;
  answer: string;
  options: Record<string, string | number | boolean | string[]>;
  signals: SignalShape[];
  score: number | null;
  roles: Record<string, number>;
  runner_up: string | null;
  masked: string[];
}

export interface KeptDecision {
  at: number;
  message: string;
  cut: boolean;
  decision: RouteAnswer;
}

export interface DecidedSession {
  session_id: string;
  at: number;
  message: string;
  outcome: string;
  route: string | null;
}

export interface DecisionsAnswer {
  remembers: boolean;
  sessions: DecidedSession[];
  session_id: string;
  decisions: KeptDecision[];
  now: number;
}

export interface Setting {
  name: string;
  value: string;
  default: string;
  source: string;
  what: string;
}

export interface SettingsAnswer {
  file: string;
  settings: Setting[];
  places: Setting[];
  problem: Problem | null;
}

export interface RunEvent {
  id: number;
  run_id: string;
  at: number;
  kind: string;
  data: Record<string, unknown>;
}
