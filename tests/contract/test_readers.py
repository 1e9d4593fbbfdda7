"""Roles that only read, tried by a real child: thirty ways of writing, none of which reaches the workspace."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from kernel import has_layers
from matrix_coder.core.models import RunOutcome
from matrix_coder.engine import views

from .runbench import MEND, Bench, RunBench, rules, says

SHELL = [
    "echo x > planted.txt; echo x > {ws}/absolute.txt",
    "echo x >> calc.py",
    "sed -i s/a/z/ calc.py",
    "perl -pi -e 's/a/z/' calc.py",
    "rm calc.py",
    "mv {ws}/test_calc.py {ws}/moved.py",
    "cp calc.py {ws}/copied.py",
    "ln -s calc.py {ws}/link.py",
    "ln {ws}/calc.py {ws}/hard.py",
    "mkdir {ws}/folder",
    "touch {ws}/touched.py",
    "truncate -s 0 {ws}/calc.py",
    "tee {ws}/teed.py < /dev/null",
    "dd if=/dev/zero of={ws}/zeros bs=1 count=1",
    "install -m 755 calc.py {ws}/installed.py",
    "chmod 777 {ws}/calc.py",
    "python3 {tmp}/by_python.py",
    "git -C {ws} commit --allow-empty -m no",
    "git -C {ws} checkout -b other",
    "git -C {ws} stash --include-untracked",
    "git -C {ws} config user.name planted",
    "git -C {ws} rm -f calc.py",
    "git -C {ws} apply {tmp}/no.patch; git -C {ws} tag planted",
    "tar -C / -cf {tmp}/t.tar etc/hostname; tar -C {ws} -xf {tmp}/t.tar",
    "(cd {ws} && setsid sh {tmp}/by_shell.sh late.txt &)",
    "env -i sh {tmp}/by_shell.sh {ws}/no_environment.txt",
    "nohup sh {tmp}/by_shell.sh {ws}/nohup.txt > /dev/null",
    "cd {ws}/.git && sh {tmp}/by_shell.sh hooks/pre-commit",
    "python3 -m pip install --no-index --no-deps --target {ws}/lib . ; mkdir {ws}/lib",
    "python3 -m compileall -q {ws}; python3 -m zipfile -e {tmp}/none.zip {ws}",
    "find {ws} -name '*.py' -exec sh {tmp}/by_shell.sh {{}} +",
    "exec 3>{ws}/descriptor.txt; echo x >&3",
]
TOOLS = [
    {"tool": "write_file", "args": {"path": "{ws}/planted.txt", "content": "x"}},
    {"tool": "write_file", "args": {"path": "planted.txt", "content": "x"}},
    {
        "tool": "patch",
        "args": {"mode": "replace", "path": "{ws}/calc.py", "old_string": "return", "new_string": "return 1 +"},
    },
]


def fingerprint(root: Path) -> dict[str, str]:
    """Everything below a directory, its repository too: kind, mode, and the hash of its bytes."""
    found = {}
    for path in sorted(root.rglob("*")):
        if "__pycache__" in path.parts:
            continue
        stat = path.lstat()
        data = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        found[str(path.relative_to(root))] = f"{stat.st_mode:o} {stat.st_nlink} {hashlib.sha256(data).hexdigest()}"
    return found


def filled(value: Any, **names: str) -> Any:
    text = json.dumps(value)
    for name, word in names.items():
        text = text.replace(f"{{{name}}}", word)
    return json.loads(text)


def ways(repo: Path, tmp: Path) -> list[dict[str, Any]]:
    by_python = f"import os\nopen('{repo}/by_python.py', 'w').write('x')\nos.symlink('/etc/hosts', '{repo}/hosts')\n"
    (tmp / "by_python.py").write_text(by_python)
    (tmp / "by_shell.sh").write_text('for file; do echo x >> "$file"; done\n')
    shell = [{"tool": "terminal", "args": {"command": w.format(ws=repo, tmp=tmp) + "; true"}} for w in SHELL]
    return [*filled(TOOLS, ws=str(repo)), *shell]


@pytest.fixture(params=["in-its-own-place", "in-a,copy"])
def place(request: pytest.FixtureRequest, bench: Bench, git_repo: Path, tmp_path: Path) -> RunBench:
    """A bench whose workspace gets a layer, and one whose name a mount can't hold, so that it is copied."""
    if "," not in request.param and not has_layers():
        pytest.skip("no overlay and Landlock for this user here: the copies are tested beside it")
    repo = tmp_path / request.param / "repo"
    shutil.copytree(git_repo, repo)
    made = bench([])
    made.repo = repo
    return made


def test_verify_when_it_tries_thirty_ways_of_writing_then_the_workspace_keeps_every_byte(
    place: RunBench, tmp_path: Path
) -> None:
    """By file tools, by shell and by git: nothing of it arrives, the tries are kept, and the child is told."""
    tries = ways(place.repo, tmp_path)
    assert len(tries) >= 30
    place.model.script.rules = rules([says("PASS", MEND)], [says("PASS", *tries)])
    before = fingerprint(place.repo)
    result = place.run()
    assert result.outcome is RunOutcome.VERIFIED, result.reason
    after = fingerprint(place.repo)
    assert (place.repo / "calc.py").read_text().count("a + b") == 1
    assert {n: after[n] for n in after if n != "calc.py"} == {n: before[n] for n in before if n != "calc.py"}
    sent = json.dumps(place.model.bodies)
    step = views.view(place.client.store, 1).steps[1]
    assert "refused: write_file" in step.note
    if "," in str(place.repo):
        assert "Permission denied" in sent or "Read-only" in sent
    else:
        assert "thrown away, as the step only reads:" in step.note
        discarded = {f for kind, data in place.events if kind == "discarded" for f in data["files"]}
        assert {"planted.txt", "absolute.txt", "by_python.py", "no_environment.txt"} <= discarded
        assert "This step only reads. Nobody else sees what you wrote" in sent
        assert "Not written: the verify step only reads" in sent


@pytest.mark.parametrize("environment", ["venv", "node_modules"])
def test_verify_when_it_runs_the_suite_then_installed_dependencies_are_there(
    bench: Bench, git_repo: Path, environment: str
) -> None:
    """A reading step runs what is installed in the workspace, from where it was installed, and imports its own code."""
    program = git_repo / (".venv/bin/tool" if environment == "venv" else "node_modules/.bin/tool")
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat {git_repo}/calc.py {program.parent.parent}/data\n")
    program.chmod(0o755)
    (program.parent.parent / "data").write_text("installed\n")
    (git_repo / ".gitignore").write_text(".venv/\nnode_modules/\n")
    relative = program.relative_to(git_repo)
    look = {"tool": "terminal", "args": {"command": f"echo '# seen' >> calc.py; ./{relative}"}}
    place = bench(rules([says("PASS", MEND)], [says("PASS", look)]))
    assert place.run().outcome is RunOutcome.VERIFIED
    sent = json.dumps(place.model.bodies)
    assert "installed" in sent
    if has_layers():
        # Its own view holds for absolute paths, too.
        assert "# seen" in sent.replace("echo '# seen'", "")
    assert "# seen" not in (git_repo / "calc.py").read_text()
