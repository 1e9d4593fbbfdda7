"""Runs over code that nobody here wrote, with the suites it came with: a bug goes in, the run has to take it out."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import git
from contract.runbench import Bench, RunBench, says, scripts
from matrix_coder.core.models import RunOutcome
from matrix_coder.testing import Rule

from .projects import CHECK, PROJECTS, Project, unpack

pytestmark = [pytest.mark.real, pytest.mark.timeout(600)]


def _suite(repo: Path) -> dict[str, int]:
    """What the project's own suite says, asked without any of our code: passed, failed, skipped."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, *shlex.split(CHECK)[1:], "-p", "no:cacheprovider"]
    out = subprocess.run(words, cwd=repo, capture_output=True, text=True, timeout=200, env=env, check=False).stdout
    return {what: int(n) for n, what in re.findall(r"(\d+) (passed|failed|skipped)", out.splitlines()[-1])}


def _files(repo: Path) -> dict[str, bytes]:
    inside = (p for p in repo.rglob("*") if p.is_file())
    return {str(r): p.read_bytes() for p in inside if (r := p.relative_to(repo)).parts[0] != ".git"}


def _script(workflow: str, project: Project) -> list[Rule]:
    """A specialist that looks at the failing suite, mends the bug with the patch tool and looks again."""
    mend = {"mode": "replace", "path": project.file, "old_string": project.bad, "new_string": project.good}
    look = {"tool": "terminal", "args": {"command": f"{CHECK} -p no:cacheprovider 2>&1 | tail -5"}}
    executor = [says("PASS", look, {"tool": "patch", "args": mend}, look)]
    if workflow == "ralph":
        return scripts(executor=executor, verify=[says("PASS", look)])
    return scripts(
        plan=[says("PASS")], executor=executor, test=[says("PASS", look)], review=[says("PASS")], verify=[says("PASS")]
    )


def _broken(project: Project, target: Path) -> tuple[Path, dict[str, int]]:
    """The project as a repository, green at its commit and red in its working tree; how its suite was when green."""
    repo = unpack(project, target)
    git(repo, "init", "-q")
    git(repo, "add", "-A", "--force")
    git(repo, "commit", "-qm", "as released")
    green = _suite(repo)
    assert green["passed"] > 0
    assert not green.get("failed")
    file = repo / project.file
    text = file.read_bytes()
    assert text.count(project.good.encode()) == 1
    file.write_bytes(text.replace(project.good.encode(), project.bad.encode()))
    assert _suite(repo).get("failed"), f"the bug in {project.name} is seen by no test"
    return repo, green


@pytest.mark.parametrize("workflow", ["ralph", "autopilot"])
@pytest.mark.parametrize("project", PROJECTS, ids=lambda p: p.name)
def test_run_when_a_real_project_is_broken_then_mends_it_proves_it_and_can_be_undone(
    bench: Bench, row: Callable[..., None], tmp_path: Path, project: Project, workflow: str
) -> None:
    """Outcome, cases, changed files, diff, report and undo hold on a project's own suite."""
    repo, green = _broken(project, tmp_path / project.name)
    broken = _files(repo)
    place: RunBench = bench(_script(workflow, project))
    place.repo = repo
    begun = time.monotonic()
    run = place.start(workflow=workflow, goal=project.goal, checks=(CHECK,))
    result = place.finish(run.run_id, timeout_s=500)
    seconds = time.monotonic() - begun
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    before, after = result.baseline[0], result.evidence[0]
    assert any(project.breaks in case for case in before.failing)
    assert _count(after.cases) == green
    assert len(before.cases) == len(after.cases)
    assert result.changed_files == (project.file,)
    assert git(repo, "status", "--porcelain") == ""
    _diff_is_right(place, project)
    text = Path(result.report_path).read_text()
    assert f"`{CHECK}`" in text
    assert after.counts() in text
    assert place.client.undo(run.run_id) == (project.file,)
    assert _files(repo) == broken
    row(
        project.stem,
        workflow,
        len(after.cases),
        len(before.failing),
        len(result.steps),
        f"{after.duration_s:.1f}",
        f"{seconds:.0f}",
    )


def _count(cases: dict[str, Any]) -> dict[str, int]:
    found = {what: sum(s == what for s in cases.values()) for what in ("passed", "failed", "skipped")}
    return {what: n for what, n in found.items() if n}


def _diff_is_right(place: RunBench, project: Project) -> None:
    """The diff takes out and puts in just the lines of the bug."""
    lines = place.client.diff("r1").splitlines()
    gone = [x[1:] for x in lines if x.startswith("-") and not x.startswith("---")]
    come = [x[1:] for x in lines if x.startswith("+") and not x.startswith("+++")]
    bad, good = project.bad.splitlines(), project.good.splitlines()
    assert (gone, come) == ([x for x in bad if x not in good], [x for x in good if x not in bad])
