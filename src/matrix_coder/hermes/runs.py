"""Runs in a chat: started by a header, told of in the turns that follow."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..core.chat_texts import live_note, question_note, result_note
from ..core.decision import Decision
from ..core.models import RunStatus, RunView
from ..core.prompts import workflow_chat_text
from ..core.registry import load_workflow
from ..core.render import headline
from ..core.shown import cleaned
from ..engine.paths import hermes_home, run_dir
from . import chats, surface
from .follow import progress_line
from .markers import has_marker, raise_marker
from .successors import Successors
from .troubles import store_troubles

if TYPE_CHECKING:
    from .bridge import HermesBridge, Milestone

_MOST_REPORT = 5_000
# What speaks to a run itself: the text after the colon is the person's, to the letter.
_SAID = re.compile(
    r"\s*(?:matrix\s+(?P<named>answer|steer)(?:\s+(?P<run>r\d{1,12})(?:\s*:|\s)|\s*:)|answer\s*:)(?P<text>.*)",
    re.IGNORECASE | re.DOTALL,
)


class ChatRuns:
    """The intake's port to the engine. The engine is imported when a run is started or looked at, not before."""

    def __init__(self, home: Path | None = None) -> None:
        self.home = home or hermes_home()
        self._successors = Successors(self.home)

    @store_troubles()
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
        self._watch(session_id)
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
            result_way=self._result_way(run, platform, session_id),
        )

    def _watch(self, session_id: str) -> None:
        if session_id and chats.can_show():
            from .milestones import watch  # noqa: PLC0415 - opens the store

            watch(self.home)

    def _result_way(self, run: RunView, platform: str, session_id: str) -> str:
        """How the result comes to this chat, which the turn can promise."""
        if platform == "api_server":
            return (
                f"nothing can be sent to an API session by itself; ask with the message `/matrix show {run.run_id}` "
                f"in this session, or with `matrix-coder show {run.run_id} --json` on the host. The session's first "
                "message after the end tells it once, too"
            )
        if session_id and chats.can_show() and self._shows_milestones():
            return "a short message in this chat when it ends, or when it needs the person"
        return "told in this chat with the person's first message after it ends"

    def _shows_milestones(self) -> bool:
        from .settings import Milestones, chat_settings  # noqa: PLC0415 - only a session with runs needs them

        return chat_settings(self.home).chat.milestones is not Milestones.OFF

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

    @store_troubles()
    def session_note(self, session_id: str) -> str | None:
        """What this turn should know of the session's runs: questions, live ones, each result once; None for nothing.

        Raises MatrixError.
        """
        self._successors.follow(session_id)
        if not has_marker(self.home, session_id):
            return None
        from ..engine.spawn import ensure_worker  # noqa: PLC0415 - routing must work without the engine

        bridge = self._bridge()
        live = bridge.live(session_id)
        results = [self._told_now(bridge, session_id, run) for run in bridge.untold(session_id)]
        parts = [*map(question_note, bridge.asking(session_id)), *map(live_note, live), *filter(None, results)]
        bridge.settle(session_id)
        self._watch(session_id)
        if live:
            ensure_worker(self.home)
        return "\n\n".join(parts) or None

    def _told_now(self, bridge: HermesBridge, session_id: str, run: RunView) -> str:
        """The model's one note of a result. The person sees its lines here if they were not shown to them before."""
        if not bridge.told(session_id, run.run_id):
            return ""
        from ..engine import views  # noqa: PLC0415 - routing must work without the engine

        shown = False
        if self._shows_milestones():
            milestone = bridge.milestone(views.run_number(run.run_id), iterations=False)
            if milestone is not None:
                shown = self._shows(bridge, session_id, milestone)
        return result_note(run, self._report(run), shown=shown)

    def _shows(self, bridge: HermesBridge, session_id: str, milestone: Milestone) -> bool:
        """Whether the person has seen the milestone, or sees it now. One that claimed it and fell silent counts not."""
        if not bridge.claim(session_id, milestone):
            return bridge.is_shown(session_id, milestone)
        shown = chats.print_lines(milestone.text)
        bridge.shown(session_id, milestone)
        return shown

    @store_troubles()
    def said(self, message: str, session_id: str) -> str | None:
        """What `answer: ...`, `matrix answer [R]: ...` or `matrix steer [R]: ...` came to; None for another message.

        A bare `answer:` speaks to the session's one blocked run; without one it is a message like any other.
        Raises MatrixError.
        """
        found = _SAID.match(message)
        if found is None:
            return None
        named, run_id, text = found["named"], found["run"] or "", found["text"]
        if not named and not (has_marker(self.home, session_id) and self._bridge().asking(session_id)):
            return None
        from .commands import Commands  # noqa: PLC0415 - with the first such message

        kind = (named or "answer").lower()
        return Commands(self.home).call(kind, [*filter(None, [run_id]), text], session_id)

    def _bridge(self) -> HermesBridge:
        from ..engine.client import Client  # noqa: PLC0415 - routing must work without the engine
        from .bridge import HermesBridge  # noqa: PLC0415

        return HermesBridge(Client(self.home).store)

    def _told(self, run: RunView) -> None:
        """A one-shot turn has waited for the result: it is no news to the session."""
        if not run.session_id:
            return
        bridge = self._bridge()
        bridge.told(run.session_id, run.run_id)
        bridge.settle(run.session_id)

    def _result_text(self, run: RunView) -> str:
        return result_note(run, self._report(run), shown=False)

    def _report(self, run: RunView) -> str:
        report = run_dir(self.home, run.run_id) / "report.md"
        text = report.read_text(encoding="utf-8") if report.is_file() else headline(run)
        return text if len(text) <= _MOST_REPORT else text[:_MOST_REPORT] + f"\n[the whole report: {report}]"


def _say(line: str) -> None:
    print(f"[matrix] {cleaned(line)}", file=sys.__stderr__, flush=True)
