"""Runs in a chat: started by a header, told of in the turns that follow."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core.decision import Decision
from ..core.models import RunOutcome, RunStatus, RunView
from ..core.prompts import fenced, workflow_chat_text
from ..core.registry import load_workflow
from ..core.render import headline
from ..engine.paths import hermes_home, run_dir
from . import surface
from .follow import progress_line
from .markers import has_marker, raise_marker

_MAX_REPORT = 5_000


class ChatRuns:
    """The intake's port to the engine. The engine is imported when a run is started or looked at, not before."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = home or hermes_home()
        self._adopted: set[str] = set()

    def start_from_chat(
        self, decision: Decision, *, session_id: str, platform: str, kwargs: Mapping[str, object]
    ) -> str:
        """Start the run that a header asks for; the text for the model. Raises MatrixError when none was started."""
        from ..engine.client import Client, Start, require_engine  # noqa: PLC0415 - routing must work without it
        from .settings import load_settings, run_options  # noqa: PLC0415 - only a start needs them

        require_engine()
        options: dict[str, Any] = dict(decision.options)
        limits = load_settings(self.home).run_limits(options)
        start = Start(
            workflow=str(decision.role),
            goal=decision.goal,
            workspace=Path(surface.working_directory(), Path(options.get("in") or "").expanduser()),
            session_id=session_id,
            domain=decision.domain or "",
            commands=tuple(options.get("check") or ()),
            limits=limits,
            options=run_options(options),
        )
        start.check()
        run = Client(self.home).start(start)
        if session_id:
            raise_marker(self.home, session_id)
        if surface.is_one_shot(platform):
            return self._wait(run, limits.budget_s)
        checks = ", ".join(run.checks) or "none found"
        surface.notice(f"{run.run_id} {run.workflow} started in {run.workspace}; checks: {checks}; {limits.words()}")
        surface.notice(f"/matrix show {run.run_id} looks at it, /matrix cancel {run.run_id} stops it")
        return workflow_chat_text(
            load_workflow(run.workflow),
            run_id=run.run_id,
            workspace=run.workspace,
            checks=run.checks,
            cap=run.cap,
            budget_text=limits.words(),
            watch_command=f"matrix-coder watch {run.run_id}",
            cancel_command=f"matrix-coder cancel {run.run_id}",
        )

    def _wait(self, run: RunView, budget_s: float) -> str:
        """One-shot surfaces end with their answer, so the turn waits; what happens meanwhile goes to stderr."""
        from ..engine.client import Client  # noqa: PLC0415 - as above

        client = Client(self.home)
        _say(
            f"{run.run_id} {run.workflow}: started in {run.workspace}; checks: {', '.join(run.checks) or 'none found'}"
        )
        _say(f"it goes on if you leave: matrix-coder watch {run.run_id} | matrix-coder cancel {run.run_id}")

        def tell(kind: str, data: dict[str, object]) -> None:
            line = progress_line(run.run_id, kind, data)
            if line:
                _say(line)

        ended = client.wait(run.run_id, timeout_s=budget_s * 1.5 + 60, on_event=tell)
        if ended.status is RunStatus.PAUSED:
            way = "approve" if "approval" in ended.reason else "resume"
            _say(f"go on with: matrix-coder {way} {run.run_id}")
            return f"Matrix Coder run {run.run_id} is {ended.reason}. Tell the person: matrix-coder {way} {run.run_id}"
        if ended.status is not RunStatus.ENDED:
            return (
                f"Matrix Coder run {run.run_id} is still at work. Tell the person: `matrix-coder watch {run.run_id}`."
            )
        self._told(ended)
        return self._result_text(ended)

    def session_note(self, session_id: str) -> str | None:
        """What this turn should know of the session's runs: each result once, live ones in a line; None for nothing."""
        self._follow_session(session_id)
        if not has_marker(self.home, session_id):
            return None
        from ..engine.client import Client  # noqa: PLC0415 - as above
        from ..engine.spawn import ensure_worker  # noqa: PLC0415
        from .bridge import HermesBridge  # noqa: PLC0415

        bridge = HermesBridge(Client(self.home).store)
        ended, live = bridge.untold(session_id), bridge.live(session_id)
        parts = [self._result_text(run) for run in ended] + [_live_text(run) for run in live]
        for run in ended:
            surface.notice(headline(run))
            bridge.told(session_id, run.run_id)
        if live:
            ensure_worker(self.home)
        return "\n\n".join(parts) or None

    def _follow_session(self, session_id: str) -> None:
        """A session that goes on under a new id keeps its runs. Looked up once for each id, and only while any wait."""
        if not session_id or session_id in self._adopted:
            return
        self._adopted.add(session_id)
        predecessor = next((p for p in self._ancestors(session_id) if has_marker(self.home, p)), "")
        if predecessor:
            from ..engine.client import Client  # noqa: PLC0415 - as above
            from .bridge import HermesBridge  # noqa: PLC0415

            HermesBridge(Client(self.home).store).adopt(session_id, predecessor)

    def _ancestors(self, session_id: str) -> list[str]:
        waiting = self.home / "matrix_coder" / "sessions"
        if not waiting.is_dir() or not any(waiting.iterdir()):
            return []
        return surface.ancestors(session_id)

    def _told(self, run: RunView) -> None:
        from ..engine.client import Client  # noqa: PLC0415 - as above
        from .bridge import HermesBridge  # noqa: PLC0415

        if run.session_id:
            HermesBridge(Client(self.home).store).told(run.session_id, run.run_id)

    def _result_text(self, run: RunView) -> str:
        report = run_dir(self.home, run.run_id) / "report.md"
        text = report.read_text(encoding="utf-8") if report.is_file() else headline(run)
        if len(text) > _MAX_REPORT:
            text = text[:_MAX_REPORT] + f"\n[the whole report: {report}]"
        proof = "" if run.outcome is RunOutcome.VERIFIED else " It is not verified: do not present it as a success."
        return (
            f"Matrix Coder run {run.run_id} has ended as {run.outcome}.{proof} Tell the person its outcome, what it "
            "rests on and what to do next, from the report in the fence. Do not do the run's work in this turn."
            f"\n\n{fenced(text)}"
        )


def _live_text(run: RunView) -> str:
    at = f"step {run.steps[-1].number} ({run.steps[-1].role})" if run.steps else "its opening checks"
    return (
        f"Matrix Coder run {run.run_id} ({run.workflow}) of this session is live in {run.workspace}: iteration "
        f"{run.iteration} of {run.cap}, {at}. `/matrix show {run.run_id}` tells more, "
        f"`/matrix cancel {run.run_id}` stops it."
    )


def _say(line: str) -> None:
    print(f"[matrix] {line}", file=sys.__stderr__, flush=True)
