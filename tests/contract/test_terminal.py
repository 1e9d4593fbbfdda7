"""The command line at a real terminal and in a real pipe, over real runs."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.cli import EXIT_CODES
from matrix_coder.core.models import RunOutcome, RunStatus

from .runbench import MEND, Bench, RunBench, rules, says
from .terminal import Terminal

HOSTILE = "mended\x1b]0;owned\x07 \x1b[2J[bold]loud[/bold] \u202egnirts"
SLOW = {"tool": "terminal", "args": {"command": "sleep 60"}}
OWNED = ("\x1b]0;owned", "\x1b[2J", "\u202e", "\x07")


@pytest.fixture
def at_terminal() -> Iterator[Callable[..., Terminal]]:
    """A factory of command lines at a terminal; each is ended at last."""
    opened: list[Terminal] = []

    def start(place: RunBench, *words: str, **options: Any) -> Terminal:
        opened.append(Terminal(place.home, *words, cwd=place.repo, **options))
        return opened[-1]

    yield start
    for one in opened:
        one.close()


def at_work(bench: Bench) -> RunBench:
    """A run whose first step takes longer than any test."""
    place = bench(rules([says("PASS", SLOW)], [says("PASS")]))
    place.start()
    place.event_of(1, "tool", name="terminal")
    return place


def test_run_when_followed_at_a_terminal_then_a_live_view_and_the_report(
    bench: Bench, at_terminal: Callable[..., Terminal]
) -> None:
    """Steps, budgets and the child's calls are drawn live; the last state stays, the report follows; nothing is obeyed.

    Afterwards the list, the report, the diff and the logs are laid out for the terminal, and raw in a pipe.
    """
    refused = {"tool": "terminal", "args": {"command": "rm -rf / --no-preserve-root"}}
    odd = {"tool": "terminal", "args": {"command": "echo '\x1b[2J'; sleep 1"}}
    place = bench(rules([says("PASS", refused, odd, MEND, summary=HOSTILE)], [says("PASS")]))
    words = ("run", "ralph", f"make it pass {HOSTILE}", "--check", "pytest -q")
    shown = at_terminal(place, *words, width=90)
    shown.until("REFUSED rm -rf /")
    assert shown.end() == EXIT_CODES[RunOutcome.VERIFIED]
    view, report = shown.text.rsplit("Asked", 1)
    last = view[view.rindex("r1 ralph  verified  iteration 1/5") :]
    for words_seen in ("executor  PASS", "verify    PASS     pass 2/2", "iterations", "1 of 5", "tokens", "[bold]loud"):
        assert words_seen in last, words_seen
    assert "Claimed by the specialists" in report
    assert "| check |" not in report
    assert not [o for o in OWNED if o in shown.out.replace("\x1b[2K", "")]

    table = at_terminal(place, "runs", width=90)
    assert table.end() == 0
    assert [line.split()[:4] for line in table.text.splitlines()] == [
        ["run", "workflow", "state", "at"],
        ["r1", "ralph", "verified", "1/5"],
    ]
    patch = at_terminal(place, "diff", "r1")
    assert patch.end() == 0
    assert "\x1b[32m+    return a + b" in patch.out
    plain = at_terminal(place, "diff", "r1", env={"NO_COLOR": "1"})
    assert (plain.end(), "\x1b" in plain.out, "+    return a + b" in plain.out) == (0, False, True)
    paged = at_terminal(place, "diff", "r1", "--pager", env={"PAGER": "sed s/^/paged:/", "NO_COLOR": "1"})
    assert (paged.end(), "paged:+    return a + b" in paged.text) == (0, True)
    show = at_terminal(place, "show", "r1", env={"NO_COLOR": "1"})
    assert show.end() == 0
    assert "r1 ralph: verified" in show.text
    assert "## Asked" not in show.text
    assert place.home.command("matrix-coder", "show", "r1").out.startswith("# r1 ralph: verified\n")
    log = at_terminal(place, "logs", "r1", "--step", "2")
    assert log.end() == 0
    assert "2 passed" in log.text


def test_ctrl_c_when_a_terminal_follows_then_asks_and_keeps_cancels_or_detaches(
    bench: Bench, at_terminal: Callable[..., Terminal]
) -> None:
    """Ctrl-C asks; Enter, a second Ctrl-C and the end of input leave with 130; `k` goes on; `c` ends as cancelled."""
    place = at_work(bench)
    for keys in ("\n", "\x03", "\x04", "d\n"):
        leaves = at_terminal(place, "watch", "r1")
        leaves.until("sleep 60")
        leaves.press("\x03")
        leaves.until(r"\[d\]etach, \[c\]ancel, or \[k\]eep watching\?")
        leaves.press(keys)
        assert leaves.end() == 130, leaves.text
        assert "r1 goes on: matrix-coder watch r1 | matrix-coder cancel r1" in leaves.text
        # The terminal's own echo stands on a line without text, where it can move nothing that is drawn.
        assert re.search(r"\n\s*\^C", leaves.text), leaves.text
    assert place.client.show("r1").status is RunStatus.RUNNING
    # What a command names as the way on is a command of the terminal.
    assert "`matrix-coder resume r1`" in place.home.command("matrix-coder", "pause", "r1").out
    # It also takes back a pause that has not begun; where there is none, it says so.
    assert place.home.command("matrix-coder", "resume", "r1").out == "r1 goes on.\n"
    assert all(row["applied"] for row in place.client.store.controls(1, "pause"))
    assert "a paused or failed run to resume" in place.home.command("matrix-coder", "resume", "r1").err
    stays = at_terminal(place, "watch", "r1")
    stays.until("sleep 60")
    stays.press("\x03")
    asked = stays.until("eep watching")
    stays.press("what\n")
    asked = stays.until("eep watching", after=asked)
    stays.press("k\n")
    drawn = stays.until("sleep 60", after=asked)
    stays.press("\x03")
    stays.until("eep watching", after=drawn)
    stays.press("c\n")
    assert stays.end() == EXIT_CODES[RunOutcome.CANCELLED], stays.text
    assert "r1 ralph  cancelled" in stays.text
    assert "Nothing: no file was changed before the stop." in " ".join(stays.text.split())
    assert place.client.show("r1").outcome is RunOutcome.CANCELLED


def test_ctrl_c_when_nobody_can_be_asked_then_leaves(bench: Bench, at_terminal: Callable[..., Terminal]) -> None:
    """Without a terminal to answer from, Ctrl-C leaves at once with 130; a dumb terminal gets plain lines."""
    place = at_work(bench)
    alone = at_terminal(place, "watch", "r1", stdin=False, env={"TERM": "dumb"})
    alone.until("r1   terminal sleep 60")
    alone.press("\x03")
    assert alone.end() == 130
    assert "eep watching" not in alone.text
    assert "\x1b" not in alone.out
    assert place.client.show("r1").status is RunStatus.RUNNING
    place.client.cancel("r1")
    place.finish("r1", timeout_s=20)


def test_command_line_when_there_is_no_git_then_nothing_is_started(bench: Bench) -> None:
    """Without git no tree can be recorded: that is said at once, not by a run that fails."""
    place = bench([])
    alone = {"PATH": str(Path(sys.executable).parent)}
    done = place.home.command("matrix-coder", "run", "ralph", "goal", cwd=place.repo, env=alone)
    assert (done.rc, done.err.split(";")[0]) == (2, "matrix-coder: expected git on PATH")
    assert not place.client.runs()


def test_json_when_any_command_is_asked_then_one_document(bench: Bench) -> None:
    """Every command answers `--json` with one document, events as lines with `--jsonl`, errors as JSON on stderr."""
    place = bench(rules([says("PASS", MEND)], [says("PASS")]))

    def ask(*words: str, rc: int = 0) -> Any:
        done = place.home.command("matrix-coder", *words, cwd=place.repo)
        assert done.rc == rc, done
        return json.loads(done.out if rc in (0, 20) else done.err)

    flags = ("--check", "pytest -q", "--approve", "executor")
    waits = ask("run", "ralph", "make the tests pass", *flags, "--json", rc=20)
    assert (waits["run_id"], waits["status"], waits["reason"]) == (
        "r1",
        "paused",
        "waiting for approval of the executor",
    )
    assert [s["role"] for s in ask("show", "r1", "--json")["steps"]] == ["executor"]
    assert [r["run_id"] for r in ask("status", "--json")] == ["r1"]
    refused = ask("answer", "r1", "a word", "--json", rc=2)["error"]
    assert refused["code"] == "input"
    assert refused["remedy"] == "let it go on: matrix-coder approve r1"
    shown = place.home.command("matrix-coder", "show", "r1").out
    assert shown.endswith("\ngo on with: matrix-coder approve r1\n")
    told = ask("steer", "r1", "look at calc.py", "--json")
    assert (told["command"], told["run_id"], told["status"]) == ("steer", "r1", "paused")
    assert ask("raise", "r1", "cap=8", "--json")["cap"] == 8
    told = ask("approve", "r1", "--json")
    assert (told["message"], told["outcome"]) == ("r1 goes on.", None)
    lines = place.home.command("matrix-coder", "watch", "r1", "--jsonl")
    assert lines.rc == 0
    events = [json.loads(line) for line in lines.out.splitlines()]
    assert [e["kind"] for e in events[:3]] == ["queued", "baseline", "step"]
    assert [e["id"] for e in events[:-1]] == sorted({e["id"] for e in events[:-1]})
    assert events[-1]["report"]["outcome"] == "verified"
    assert ask("watch", "r1", "--json")["outcome"] == ask("show", "r1", "--json")["outcome"] == "verified"
    _look_back(ask)


def _look_back(ask: Callable[..., Any]) -> None:
    found = ask("diff", "r1", "--json")
    assert [(f["path"], f["change"], f["added"], f["removed"]) for f in found["files"]] == [
        ("calc.py", "changed", 1, 1)
    ]
    assert "+    return a + b" in found["patch"]
    step = ask("logs", "r1", "--step", "2", "--json")["steps"][0]
    assert (step["number"], step["checks"][0]["passed"], "2 passed" in step["checks"][0]["output"]) == (2, True, True)
    assert step["log"].endswith("process.log")
    assert ask("logs", "r1", "--step", "9", "--json", rc=2)["error"]["found"] == "9"
    assert ask("undo", "r1", "--json")["message"] == "1 file put back: calc.py"
    assert ask("cancel", "r1", "--json")["message"] == "r1 had ended already: verified"
    assert ask("show", "r9", "--json", rc=2)["error"]["code"] == "run_unknown"
    assert ask("show", "--json", rc=2)["error"]["code"] == "usage"
    assert ask("never", "a phrase", "--json")["phrases"] == ["a phrase"]
    assert ask("forget", "a phrase", "--json")["phrases"] == []
    assert ask("words", "check", "--json")["in_use"] is False
    assert ask("why", "fix src/app.py", "--json")["signals"]
    assert "linked" in ask("dashboard-link", "--json")["message"]


def test_json_when_commands_are_looked_through_then_each_offers_it() -> None:
    """No command prints something for people alone."""
    from matrix_coder.cli import cli

    groups = {"words": cli.commands["words"].commands}  # type: ignore[attr-defined]
    every = {**{n: c for n, c in cli.commands.items() if n not in groups and not c.hidden}, **groups["words"]}
    assert [n for n, c in every.items() if not any("--json" in p.opts for p in c.params)] == []


def test_diff_when_a_file_is_no_text_then_its_bytes_come_through(bench: Bench, git_repo: Path) -> None:
    """A patch in a pipe is byte for byte what git wrote, also where it is no UTF-8."""
    odd = {"tool": "terminal", "args": {"command": r"printf 'caf\351\n' > latin.txt"}}
    place = bench(rules([says("PASS", odd)], [says("PASS")]))
    place.run(cap=1)
    done = place.home.command("sh", "-c", f"matrix-coder diff r1 > {git_repo.parent / 'out'}")
    assert done.rc == 0, done
    assert b"+caf\xe9\n" in (git_repo.parent / "out").read_bytes()
