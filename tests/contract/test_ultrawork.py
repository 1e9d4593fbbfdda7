"""ultrawork with the real host: units side by side in checkouts of their own, merged one at a time."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from matrix_coder.core.errors import InputError
from matrix_coder.core.models import RunOutcome, RunStatus, StepStatus, StepView
from matrix_coder.testing import Rule

from .runbench import Bench, RunBench, report, says, scripts

GOOD = "def value() -> int:\n    return 1\n"
BAD = "def value() -> int:\n    return 0\n"


def project(repo: Path, *names: str) -> None:
    """A module for each name whose one test fails, and one module that all is well with."""
    for old in (*repo.glob("*.py"),):
        old.unlink()
    for name in names:
        (repo / f"{name}.py").write_text(BAD)
        (repo / f"test_{name}.py").write_text(
            f"from {name} import value\n\n\ndef test_{name}():\n    assert value() == 1\n"
        )
    (repo / "keep.py").write_text("def kept() -> int:\n    return 7\n")
    (repo / "test_keep.py").write_text("from keep import kept\n\n\ndef test_keep():\n    assert kept() == 7\n")


def write(path: str, content: str = GOOD) -> dict[str, Any]:
    return {"tool": "write_file", "args": {"path": path, "content": content}}


def shell(command: str) -> dict[str, Any]:
    return {"tool": "terminal", "args": {"command": command}}


def unit(name: str, *files: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "role": "executor", "goal": f"mend {name}", "files": list(files or (f"{name}.py",)), **more}


def plan(*units: dict[str, Any]) -> tuple[dict[str, Any], ...]:
    return says("PASS", units=list(units))


def works(name: str, *before: dict[str, Any], verdict: str = "PASS", **more: Any) -> Rule:
    """What the unit's specialist does."""
    return Rule(match=rf"step \d+: units/{name}\b", steps=says(verdict, *before, **more))


def rest(*, aggregate: str = "PASS", verify: str = "PASS") -> list[Rule]:
    return scripts(aggregate=[says(aggregate)], verify=[says(verify)])


def units_of(place: RunBench, run_id: str = "r1") -> dict[str, StepView]:
    return {s.unit: s for s in place.client.show(run_id).steps if s.unit}


def told(place: RunBench, step: str) -> str:
    """All that the step's specialist was sent."""
    return "\n".join(t for t in map(json.dumps, place.model.bodies) if f": {step}. See the context" in t)


def test_ultrawork_when_every_unit_is_merged_then_is_verified(bench: Bench) -> None:
    """Units work side by side, are merged in plan order, and the whole is verified; nothing is left lying about."""
    place = bench(
        [
            Rule(match=r"step \d+: plan\b", steps=plan(unit("a"), unit("b"), reader("look"))),
            works("a", write("a.py")),
            works("b", write("b.py")),
            works("look", shell("rm -f keep.py; echo x > extra.py"), summary="The sky is blue."),
            *rest(),
        ]
    )
    project(place.repo, "a", "b")
    before = place.repo.joinpath("keep.py").read_text()
    result = place.run(workflow="ultrawork")
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    assert result.changed_files == ("a.py", "b.py")
    names = [s.name for s in result.steps]
    assert names == ["plan", "units", "units/a", "units/b", "units/look", "aggregate", "verify"]
    assert [s.number for s in result.steps] == list(range(1, 8))
    assert {n: s.note.split()[0] for n, s in units_of(place).items()} == {"a": "merged", "b": "merged", "look": "done"}
    assert place.repo.joinpath("keep.py").read_text() == before
    assert "The sky is blue." in told(place, "aggregate")
    assert not (place.home.path / "matrix_coder" / "units" / "r1").exists()
    assert place.client.diff("r1", 3).count("+++ b/a.py") == 1
    assert place.client.undo("r1", 3) == ("a.py",)
    assert (place.repo / "a.py").read_text() == BAD
    assert (place.repo / "b.py").read_text() == GOOD


def reader(name: str) -> dict[str, Any]:
    return {"name": name, "role": "explore", "goal": f"look into {name}", "topic": "the sky"}
