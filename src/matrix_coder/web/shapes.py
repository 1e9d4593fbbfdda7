"""The JSON that the dashboard's API speaks. Times are seconds since the epoch, 0 when not yet; lengths are seconds.

Money is dollars, estimated by the host: `cost_usd` of what it knows a price for, `unpriced_tokens` are the others.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class Shape(BaseModel):
    """A frozen answer."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Problem(Shape):
    """Any error: a stable code, what was expected and found, what to do next."""

    code: str
    message: str
    next: str


class RunSummary(Shape):
    """One run in a list. `money_usd` is its money budget, 0 for none; `origin` the repository of an isolated run."""

    run_id: str
    workflow: str
    goal: str
    workspace: str
    origin: str
    session_id: str
    domain: str
    status: str
    outcome: str | None
    reason: str
    iteration: int
    cap: int
    steps: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    unpriced_tokens: int
    money_usd: float
    seconds: float
    created_at: float
    started_at: float
    ended_at: float


class RunPage(Shape):
    """Runs, newest first. `next_before` goes into `before` for the next page; None on the last.

    `counts` says how many runs there are in each state: an outcome, or `live`. `last_event` is where a
    stream that misses nothing since this page begins.
    """

    runs: list[RunSummary]
    next_before: int | None
    total: int
    counts: dict[str, int]
    last_event: int
    now: float


class CheckResult(Shape):
    """What one check of the engine said. `failing` holds the first of the failing cases."""

    index: int
    name: str
    command: str
    passed: bool
    counts: str
    exit_code: int | None
    duration_s: float
    tree: str
    cases: dict[str, int]
    failing: list[str]
    has_output: bool


class FindingShape(Shape):
    """One finding of a specialist."""

    severity: str
    summary: str
    file: str
    line: int | None


class PlannedUnit(Shape):
    """A part of a goal that can be worked on by itself: the files it owns, or its topic."""

    name: str
    role: str
    goal: str
    files: list[str]
    topic: str


class ReportShape(Shape):
    """What a specialist claims about its step. A claim, never proof. `units` are those that it plans."""

    verdict: str
    summary: str
    findings: list[FindingShape]
    open_questions: list[str]
    positive_observations: list[str]
    recommendation: str
    dropped_findings: int
    units: list[PlannedUnit]


class UnitShape(Shape):
    """What a unit came to: `state` is empty while it is at work. `files` are those that it changed.

    `checkout` is where its work is kept, if it still is, and `branch` holds it there; `command` is what takes it into
    the workspace later.
    """

    name: str
    state: Literal["", "ready", "merging", "merged", "done", "empty", "failed"]
    goal: str
    owns: list[str]
    topic: str
    why: str
    files: list[str]
    files_total: int
    checkout: str
    branch: str
    command: str


class StepShape(Shape):
    """One step: what its specialist claimed beside what the engine verified.

    `unit` is there for one of the units that a step is made of; those come right after it.
    """

    number: int
    name: str
    iteration: int
    role: str
    lens: str
    domain: str
    status: str
    attempt: int
    report: ReportShape | None
    evidence: list[CheckResult]
    note: str
    input_tokens: int
    output_tokens: int
    cost_usd: float
    unpriced_tokens: int
    seconds: float
    started_at: float
    ended_at: float
    child_session: str
    has_diff: bool
    unit: UnitShape | None


class Budget(Shape):
    """How much of a limit is used. One of money is there for runs that have it."""

    name: Literal["iterations", "tokens", "seconds", "money"]
    used: float
    limit: float


class CommandArgument(Shape):
    """What a command wants to be told; `choices` are all that can be chosen."""

    name: str
    label: str
    kind: Literal["text", "number", "choice"]
    required: bool
    choices: list[str]


class CommandOffer(Shape):
    """A command that can be given to this run now. A page asks once with `confirm` where it is not empty."""

    name: str
    label: str
    confirm: str
    arguments: list[CommandArgument]


class RunDetail(Shape):
    """Everything about a run but outputs and diffs, which have addresses of their own."""

    run: RunSummary
    question: str
    checks: list[str]
    baseline: list[CheckResult]
    steps: list[StepShape]
    evidence: list[CheckResult]
    changed: list[str]
    changed_count: int
    budgets: list[Budget]
    step_limit_s: float
    commands: list[CommandOffer]
    has_report: bool
    has_diff: bool
    last_event: int
    now: float


class CaseShape(Shape):
    """One test case of a check."""

    id: str
    result: str


class EvidenceDetail(Shape):
    """One check with its cases, failing ones first. `cases_total` counts those left off, too."""

    check: CheckResult
    environment: str
    cases: list[CaseShape]
    cases_total: int


class OutputPart(Shape):
    """A part of an output: bytes `start` to `end` of `size`, as text."""

    text: str
    start: int
    end: int
    size: int


class ReportText(Shape):
    """The final report of a run, as Markdown. Text of models and files stands in it: show it as text."""

    markdown: str


class DiffFile(Shape):
    """One file of a diff. `patch` is None where it has to be asked for on its own because it is large.

    Asked for on its own it has `size` characters, or fewer where even that is too much: then its end is left off.
    """

    index: int
    path: str
    old_path: str
    change: Literal["added", "deleted", "changed", "mode"]
    added: int
    removed: int
    size: int
    patch: str | None


class Diff(Shape):
    """A diff, file by file. `cut` is true where the rest was too large to read."""

    files: list[DiffFile]
    files_total: int
    added: int
    removed: int
    cut: bool


class StartRequest(BaseModel):
    """A run to start. What is left out is as the settings say; without `checks` the engine looks for some."""

    model_config = ConfigDict(extra="forbid")

    workflow: str = Field(max_length=40)
    goal: str = Field(max_length=100_000)
    workspace: str = Field(max_length=4_096, description="an absolute path inside the repository")
    domain: str = Field("", max_length=40)
    checks: list[str] = Field(default_factory=list, max_length=20)
    cap: int | None = Field(None, ge=1, le=100)
    minutes: float | None = Field(None, gt=0, le=10_080, allow_inf_nan=False)
    tokens: int | None = Field(None, ge=1, le=1_000_000_000)
    money: float | None = Field(None, gt=0, le=100_000, allow_inf_nan=False)
    isolate: bool = False
    check_runs: int = Field(1, ge=1, le=20)
    approve: list[str] = Field(default_factory=list, max_length=20)


class CommandRequest(BaseModel):
    """A command for a run."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=40)
    arguments: dict[str, str | int | float] = Field(default_factory=dict, max_length=8)


class CommandAnswer(Shape):
    """What came of a command."""

    message: str
    run: RunSummary


class RouteRequest(BaseModel):
    """A message to route. Nothing starts."""

    model_config = ConfigDict(extra="forbid")

    text: str = Field(max_length=100_000)


class SignalShape(Shape):
    """One reason of a decision; `span` is where it stands in the message."""

    text: str
    span: tuple[int, int]
    rule: str
    vote: str
    weight: float


class RouteAnswer(Shape):
    """The decision for a message, with every signal. `score` is above 0 for coding, None where nothing was scored."""

    outcome: str
    verdict: str
    coding: bool
    route: str | None
    role: str | None
    workflow: bool
    lens: str | None
    domain: str | None
    goal: str
    asks: bool
    answer: str
    options: dict[str, str | int | bool | list[str]]
    signals: list[SignalShape]
    score: float | None
    roles: dict[str, float]
    runner_up: str | None
    masked: list[str]


class KeptDecision(Shape):
    """A decision of a chat on the message that begins with `message`; `cut` where the message was longer."""

    at: float
    message: str
    cut: bool
    decision: RouteAnswer


class DecidedSession(Shape):
    """A chat session with kept decisions: when its newest was made, and on what."""

    session_id: str
    at: float
    message: str
    outcome: str
    route: str | None


class DecisionsAnswer(Shape):
    """The sessions, newest first, and the last decisions of one of them, newest first.

    `remembers` says whether the settings let decisions be kept.
    """

    remembers: bool
    sessions: list[DecidedSession]
    session_id: str
    decisions: list[KeptDecision]
    now: float


class Setting(Shape):
    """One effective value and where it comes from."""

    name: str
    value: str
    default: str
    source: str
    what: str


class SettingsAnswer(Shape):
    """The effective configuration. `problem` says why the file's values are not in force, if they are not."""

    file: str
    settings: list[Setting]
    places: list[Setting]
    problem: Problem | None
