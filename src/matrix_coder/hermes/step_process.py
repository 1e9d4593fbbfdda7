"""The process of one step: a headless parent of the host, one child through `delegate_task`, its report.

It talks to the engine over an inherited pipe: a JSON object a line says what the child does, its report, how the
call came back. Each line carries a word that the engine handed to this process alone, so that a program which finds
the pipe can't speak for the step. What the child runs inherits neither.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import threading
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..core.report import ReportRejected, parse_report, report_schema
from ..core.serde import dump
from ..engine.layer import written
from ..engine.workspace import is_cache
from .pricing import price

TOOLSET = "matrix_coder_step"
_PR_SET_DUMPABLE = 4
# The host loads most of itself when it first needs it; one that lacks any of these loads that later, as ever.
_HOST_MODULES = (
    *("hermes_cli.config", "hermes_cli.models", "hermes_cli.plugins", "hermes_cli.runtime_provider"),
    *("agent.agent_init", "agent.chat_completion_helpers", "agent.conversation_loop", "agent.system_prompt"),
    *("agent.tool_executor", "agent.transports.chat_completions", "agent.turn_finalizer", "agent.usage_pricing"),
    *("agent.agent_runtime_helpers", "agent.anthropic_adapter", "agent.coding_context", "tools.tool_search"),
    *("tools.approval", "tools.delegate_tool", "tools.environments.local", "tools.file_tools", "tools.terminal_tool"),
    *("run_agent", "toolsets", "hermes_logging", "openai.lib.streaming.chat", "openai.resources", "httpcore"),
)
_WRITE_TOOLS = frozenset({"write_file", "patch"})
# The process that has loaded the host for this one; empty where this one does that itself.
_loaded_before: list[int] = []


@dataclass(slots=True)
class Channel:
    """The way to the engine. One line, one message; safe to call from any thread."""

    fd: int
    token: str
    _lock: threading.Lock

    def send(self, kind: str, **data: object) -> None:
        line = json.dumps({"kind": kind, "token": self.token, **data}, ensure_ascii=False).encode() + b"\n"
        with self._lock:
            view = memoryview(line)
            while view:
                view = view[os.write(self.fd, view) :]


class Step:
    """What the host's hooks and the report tool share during one step."""

    def __init__(self, job: dict[str, Any], channel: Channel) -> None:
        self.job = job
        self.channel = channel
        self.reported = False
        self.error: dict[str, Any] | None = None
        self.session = ""
        self.discarded: set[str] = set()

    def report(self, args: dict[str, Any], **_: Any) -> str:
        """The tool `matrix_report`: the first readable report counts, any other changes nothing."""
        if self.reported:
            return json.dumps({"error": "a report for this step was handed in already; this one changes nothing"})
        try:
            report = parse_report(args)
        except ReportRejected as rejected:
            return json.dumps({"error": str(rejected)})
        self.reported = True
        self.channel.send("report", report=dump(report))
        return json.dumps({"accepted": True, "next": "finish your answer; nothing more is needed"})

    def on_subagent_start(self, **kw: Any) -> None:
        self.session = str(kw.get("child_session_id") or "")
        self.channel.send("child", session=self.session)

    def on_api_error(self, **kw: Any) -> None:
        self.error = {
            "status": kw.get("status_code"),
            "words": _words(kw.get("error")) or str(kw.get("reason") or ""),
        }

    def on_api_success(self, **kw: Any) -> None:
        self.error = None
        # At once, so that a step that is ended before its end has its cost too.
        priced = price(kw)
        if priced is not None:
            self.channel.send("usage", **asdict(priced))

    def before_tool(self, **kw: Any) -> dict[str, str] | None:
        """Tell the engine what the child is about to do; refuse what nobody was asked about."""
        name, args = str(kw.get("tool_name") or ""), kw.get("args") or {}
        refusal = self._refusal(name, args if isinstance(args, dict) else {})
        preview = str(args.get("command") or args.get("path") or "")[:200] if isinstance(args, dict) else ""
        self.channel.send("tool", name=name, preview=preview, refused=refusal)
        return {"action": "block", "message": refusal} if refusal else None

    def after_tool(self, **kw: Any) -> str | None:
        """Tell the child, and the engine, what it has just written although its step only reads."""
        if not self.job["layer"]:
            return None
        found = {f for f in written(Path(self.job["layer"])) if not is_cache(f)} - self.discarded
        self.discarded |= found
        if not found:
            return None
        files = sorted(found)
        self.channel.send("discarded", files=files[:50])
        note = f"This step only reads. Nobody else sees what you wrote, and it is thrown away: {', '.join(files[:5])}"
        return _with_note(str(kw.get("result") or ""), note)

    def _refusal(self, name: str, args: dict[str, Any]) -> str:
        from tools.approval import detect_dangerous_command, detect_hardline_command  # noqa: PLC0415 - the host's

        command = args.get("command")
        if name == "terminal" and isinstance(command, str):
            for found in (detect_hardline_command(command), detect_dangerous_command(command)):
                if found[0]:
                    return (
                        f"Not run: the host rates this command as dangerous ({found[-1]}), and nobody is there to ask. "
                        "Find another way, or report BLOCKED with the question."
                    )
        apart = self.job["layer"] or self.job["directory"] != self.job["workspace"]
        if name in _WRITE_TOOLS and apart and self._in_original(args):
            why = "works in a checkout of its own" if self.job["writes"] else "only reads"
            place = self.job["directory"]
            return f"Not written: the {self.job['role']} step {why}. Work in {place}; report what you found."
        return ""

    def _in_original(self, args: dict[str, Any]) -> bool:
        path = Path(self.job["directory"], str(args.get("path") or ""))
        return path.resolve().is_relative_to(Path(self.job["workspace"]).resolve())


def _with_note(result: str, note: str) -> str:
    """A tool's result, which is JSON where the host keeps to its own form, with a word of ours."""
    with suppress(ValueError):
        data = json.loads(result)
        if isinstance(data, dict):
            return json.dumps({**data, "note": note}, ensure_ascii=False)
    return f"{result}\n\n{note}"


def _words(error: object) -> str:
    if isinstance(error, dict):
        return str(error.get("message") or error)[:500]
    return str(error or "")[:500]


def preload() -> None:
    """Load what of the host a step needs, and start nothing of it."""
    for name in _HOST_MODULES:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    _loaded_before.append(os.getpid())


def main(job_file: str, channel_fd: int) -> int:
    """Run the step that the job file describes; the engine reads the result from the channel."""
    job: dict[str, Any] = json.loads(Path(job_file).read_text(encoding="utf-8"))
    os.set_inheritable(channel_fd, False)
    channel = Channel(channel_fd, _private_word(), threading.Lock())
    step = Step(job, channel)
    parent = _parent(step)
    _ask(parent, step, job["task"], job["context"])
    if not step.reported and step.error is None:
        _ask(parent, step, job["task"], _again(job))
    channel.send("end")
    return 0


def _private_word() -> str:
    """The word that messages carry, from a standard input that nobody reads after us; and no look into our memory."""
    word = sys.stdin.readline().strip()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    return word


def _again(job: dict[str, Any]) -> str:
    return (
        f"{job['context']}\n\n## Asked again\n\nAn earlier attempt at this step ended without a call to matrix_report, "
        "so it counts for nothing. Look at the workspace as it is now, finish what is left, and hand your report in "
        "with matrix_report."
    )


def _ask(parent: Any, step: Step, task: str, context: str) -> None:
    from tools.delegate_tool import delegate_task  # noqa: PLC0415 - the host's

    step.error = None
    answer = delegate_task(goal=task, context=context, parent_agent=parent)
    step.channel.send("call", answer=answer, error=step.error)


def _parent(step: Step) -> Any:
    """A parent agent of the host, made from the person's own configuration."""
    from hermes_cli.config import load_config  # noqa: PLC0415 - the host's, imported once the environment is set
    from hermes_cli.plugins import PluginContext, PluginManifest, discover_plugins, get_plugin_manager  # noqa: PLC0415
    from hermes_cli.runtime_provider import resolve_runtime_provider  # noqa: PLC0415
    from run_agent import AIAgent  # noqa: PLC0415
    from toolsets import create_custom_toolset  # noqa: PLC0415

    _load_settings()
    discover_plugins()
    context = PluginContext(PluginManifest(name=TOOLSET, key=TOOLSET), get_plugin_manager())
    context.register_tool("matrix_report", TOOLSET, report_schema(units=bool(step.job.get("units"))), step.report)
    for hook, callback in (
        ("subagent_start", step.on_subagent_start),
        ("api_request_error", step.on_api_error),
        ("post_api_request", step.on_api_success),
        ("pre_tool_call", step.before_tool),
        ("transform_tool_result", step.after_tool),
    ):
        context.register_hook(hook, callback)
    create_custom_toolset(TOOLSET, "the report of one workflow step", ["matrix_report"], [])
    _hide_foreign_credentials()
    config = load_config()
    model = config["model"]
    name = model.get("default", "") if isinstance(model, dict) else str(model)
    runtime = resolve_runtime_provider(requested=None, target_model=name)
    parent = AIAgent(
        api_key=runtime.get("api_key"),
        base_url=runtime.get("base_url"),
        provider=runtime.get("provider"),
        api_mode=runtime.get("api_mode"),
        model=name,
        enabled_toolsets=["terminal", "file", TOOLSET],
        quiet_mode=True,
        platform="cli",
        session_db=None,
        credential_pool=runtime.get("credential_pool"),
    )
    parent._print_fn = _quiet
    parent._safe_print = _quiet
    return parent


def _load_settings() -> None:
    """Take in the person's `.env` files and stored secrets as they are now.

    The host does that when it is loaded, which for a forked process was long ago and into another environment.
    """
    import run_agent  # noqa: PLC0415 - the host's
    from hermes_cli.env_loader import load_hermes_dotenv, reset_secret_source_cache  # noqa: PLC0415
    from hermes_constants import get_hermes_home  # noqa: PLC0415

    if not _loaded_before:
        return
    reset_secret_source_cache()
    load_hermes_dotenv(hermes_home=get_hermes_home(), project_env=Path(run_agent.__file__).with_name(".env"))


def _hide_foreign_credentials() -> None:
    """Drop what looks like a credential and is none of the host's: it would reach the child's shell unfiltered."""
    from tools.environments.local import _HERMES_PROVIDER_ENV_BLOCKLIST as known  # noqa: PLC0415, N811 - the host's

    for name in [n for n in os.environ if n.endswith(("_API_KEY", "_API_BASE", "_BASE_URL")) and n not in known]:
        del os.environ[name]


def _quiet(*_: object, **__: object) -> None:
    """The parent has no terminal to talk to."""
