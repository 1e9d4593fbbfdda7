"""The values that pass between the layers. Pure data: identity and storage are the engine's concern."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class StepVerdict(StrEnum):
    """What one specialist says about its step."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    FAIL = "FAIL"
    BLOCKED = "BLOCKED"
    UNVERIFIABLE = "UNVERIFIABLE"


class Severity(StrEnum):
    """How much a finding matters, worst first."""

    BLOCKER = "BLOCKER"
    HIGH = "HIGH"
    MED = "MED"
    LOW = "LOW"
    NIT = "NIT"


class RunOutcome(StrEnum):
    """How a run ended. Each run ends in exactly one."""

    VERIFIED = "verified"
    UNVERIFIED = "unverified"
    CAP_REACHED = "cap_reached"
    STALLED = "stalled"
    BLOCKED = "blocked"
    BUDGET = "budget"
    TAMPERED = "tampered"
    CANCELLED = "cancelled"
    FAILED = "failed"


class RunStatus(StrEnum):
    """Where a run is on its way to an outcome."""

    QUEUED = "queued"
    RUNNING = "running"
    PAUSED = "paused"
    ENDED = "ended"


class StepStatus(StrEnum):
    """Where a step is."""

    RUNNING = "running"
    DONE = "done"
    BLOCKED = "blocked"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing a specialist found."""

    severity: Severity
    summary: str
    file: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A part of a goal that can be worked on by itself. It owns files (paths or patterns), or a topic to read up on."""

    name: str
    role: str
    goal: str
    files: tuple[str, ...] = ()
    topic: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepReport:
    """One specialist's answer to its step, as it was handed in or as the engine had to judge it."""

    verdict: StepVerdict
    summary: str = ""
    findings: tuple[Finding, ...] = ()
    open_questions: tuple[str, ...] = ()
    positive_observations: tuple[str, ...] = ()
    recommendation: str = ""
    dropped_findings: int = 0
    units: tuple[Unit, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What something cost: tokens as the model's server counted them, seconds of wall clock, dollars.

    `cost_usd` is the host's estimate for what it knew a price for; `unpriced_tokens` are those it knew none for.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    cost_usd: float = 0.0
    unpriced_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            seconds=self.seconds + other.seconds,
            cost_usd=self.cost_usd + other.cost_usd,
            unpriced_tokens=self.unpriced_tokens + other.unpriced_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What one check said about one tree.

    `exit_code` is None when the command ran into its time limit. `cases` maps a test's id to
    passed, failed, error or skipped, where the command's runner tells (pytest); else it is empty.
    """

    name: str
    command: str
    exit_code: int | None
    duration_s: float
    tree: str
    cases: dict[str, str] = field(default_factory=dict)
    environment: str = ""
    tail: str = ""
    output_path: str = ""

    @property
    def passed(self) -> bool:
        """The exit code says so, and no case that the check told of says otherwise."""
        return self.exit_code == 0 and not self.failing

    @property
    def failing(self) -> tuple[str, ...]:
        return tuple(sorted(c for c, s in self.cases.items() if s in ("failed", "error")))

    def counts(self) -> str:
        """`13/15` where the cases are known, else `exit 1` or `timed out`."""
        if self.cases:
            ran = [s for s in self.cases.values() if s != "skipped"]
            return f"{sum(s == 'passed' for s in ran)}/{len(ran)}"
        return "timed out" if self.exit_code is None else f"exit {self.exit_code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class StepView:
    """One step of a run as the store shows it. Times are seconds since the epoch, 0 when not yet.

    `name` is the step's in its definition, or `units/<unit>` for one of the units that a step is made of.
    """

    name: str = ""
    number: int
    iteration: int
    role: str
    lens: str = ""
    domain: str = ""
    status: StepStatus
    attempt: int = 1
    report: StepReport | None = None
    evidence: tuple[Evidence, ...] = ()
    note: str = ""
    usage: Usage = Usage()
    started_at: float = 0.0
    ended_at: float = 0.0
    child_session: str = ""

    @property
    def unit(self) -> str:
        """The unit's name; empty for a step of its own."""
        return self.name.partition("/")[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One run as the store shows it. Times are seconds since the epoch, 0 when not yet.

    `money_usd` is its money budget in dollars, 0 for none.
    """

    run_id: str
    workflow: str
    goal: str
    workspace: str
    session_id: str = ""
    origin: str = ""
    domain: str = ""
    checks: tuple[str, ...] = ()
    cap: int = 5
    money_usd: float = 0.0
    status: RunStatus
    outcome: RunOutcome | None = None
    reason: str = ""
    question: str = ""
    iteration: int = 0
    usage: Usage = Usage()
    steps: tuple[StepView, ...] = ()
    created_at: float = 0.0
    started_at: float = 0.0
    ended_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecialistResult:
    """What a whole run comes to: the one honest result that `run_workflow` returns.

    `money_usd` is its money budget in dollars, 0 for none.
    """

    run_id: str
    workflow: str
    goal: str
    outcome: RunOutcome
    reason: str
    iterations: int
    cap: int
    steps: tuple[StepView, ...] = ()
    baseline: tuple[Evidence, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    question: str = ""
    changed_files: tuple[str, ...] = ()
    usage: Usage = Usage()
    money_usd: float = 0.0
    origin: str = ""
    report_path: str = ""

    @property
    def verified(self) -> bool:
        return self.outcome is RunOutcome.VERIFIED
