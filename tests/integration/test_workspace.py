"""The engine's record of a workspace's trees, against real git and repositories that mean harm."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from matrix_coder.core.errors import WorkspaceRefused
from matrix_coder.engine.workspace import GitFailed, Trees, find_workspace, line_count, throw_away_copy

FILES = {"calc.py": "one\ntwo\n", "pkg/mod.py": "x = 1\n", ".gitignore": "build/\n*.log\n"}


def git(repo: Path, *words: str) -> str:
    who = ("-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *who, *words], cwd=repo, check=True, capture_output=True, text=True).stdout


def write(path: Path, content: str | bytes = "x\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def repository(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        write(root / name, text)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES)


@pytest.fixture
def trees(repo: Path, tmp_path: Path) -> Trees:
    return Trees(repo, tmp_path / "record")


def fingerprint(folder: Path) -> dict[str, str]:
    """Every file below a folder with the hash of its bytes."""
    files = (p for p in sorted(folder.rglob("*")) if p.is_file() and not p.is_symlink())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def names(trees: Trees, tree: str) -> set[str]:
    """The files in a recorded tree."""
    listing = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "--name-only", tree], cwd=trees.git_dir, check=True, capture_output=True
    )
    return {os.fsdecode(n) for n in listing.stdout.split(b"\0") if n}


def blob(trees: Trees, tree: str, name: str) -> bytes:
    """The bytes that a recorded tree holds for a file."""
    show = ["git", "cat-file", "blob", f"{tree}:{name}"]
    return subprocess.run(show, cwd=trees.git_dir, check=True, capture_output=True).stdout


# -- recording


def test_record_when_nothing_changes_then_the_id_stays_the_same(trees: Trees) -> None:
    """A tree's id says what the files hold, not when they were looked at."""
    assert trees.record() == trees.record()


def test_record_when_files_are_new_changed_and_gone_then_each_is_told(trees: Trees, repo: Path) -> None:
    """Untracked files count; so do changes and deletions; the paths come sorted."""
    before = trees.record()
    write(repo / "new.py")
    write(repo / "calc.py", "one\nTWO\n")
    (repo / "pkg/mod.py").unlink()
    after = trees.record()
    assert trees.changed(before, after) == ("calc.py", "new.py", "pkg/mod.py")
    assert "-two\n+TWO\n" in trees.diff(before, after)
    assert "calc.py" in trees.stat(before, after)
    assert trees.stat(before, after).endswith("3 files changed, 2 insertions(+), 2 deletions(-)")


def test_record_when_a_change_is_taken_back_then_the_id_comes_back(trees: Trees, repo: Path) -> None:
    """The same bytes have the same id."""
    before = trees.record()
    write(repo / "calc.py", "other\n")
    assert trees.record() != before
    write(repo / "calc.py", FILES["calc.py"])
    assert trees.record() == before


def test_record_when_only_the_executable_bit_changes_then_the_tree_changes(trees: Trees, repo: Path) -> None:
    """Whether a file can be run is part of the tree."""
    before = trees.record()
    (repo / "calc.py").chmod(0o755)
    assert trees.changed(before, trees.record()) == ("calc.py",)


def test_record_when_size_and_times_are_kept_then_the_change_is_still_seen(trees: Trees, repo: Path) -> None:
    """A change that keeps a file's size and sets its times back is a change."""
    before = trees.record()
    stat = (repo / "calc.py").stat()
    write(repo / "calc.py", "one\nowt\n")
    os.utime(repo / "calc.py", ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert trees.changed(before, trees.record()) == ("calc.py",)


@pytest.mark.parametrize(
    "name", ["build/out.o", "a.log", "pkg/__pycache__/mod.cpython-311.pyc", ".pytest_cache/x", "node_modules/a/b.js"]
)
def test_record_when_a_file_is_ignored_or_a_cache_then_it_is_left_out(trees: Trees, repo: Path, name: str) -> None:
    """What the repository ignores, and what running tests leaves behind, is not part of the tree."""
    before = trees.record()
    write(repo / name)
    assert trees.record() == before


def test_record_when_the_repository_excludes_privately_then_that_holds_too(repo: Path, tmp_path: Path) -> None:
    """A person's own `.git/info/exclude` is respected."""
    write(repo / ".git/info/exclude", "secret.txt\n")
    write(repo / "secret.txt")
    trees = Trees(repo, tmp_path / "record")
    assert "secret.txt" not in names(trees, trees.record())


def test_record_when_a_tracked_file_is_ignored_then_it_is_part_of_the_tree(repo: Path, tmp_path: Path) -> None:
    """A file that the repository tracks although it ignores it can't change unseen; its ignored neighbour can."""
    write(repo / "build/kept.py")
    write(repo / "build/other.py")
    write(repo / "build/-odd [name]*\n.py")
    git(repo, "add", "-f", "build/kept.py", "build/-odd [name]*\n.py")
    trees = Trees(repo, tmp_path / "record")
    before = trees.record()
    assert {n for n in names(trees, before) if n.startswith("build/")} == {"build/kept.py", "build/-odd [name]*\n.py"}
    write(repo / "build/kept.py", "changed\n")
    write(repo / "build/other.py", "changed\n")
    assert trees.changed(before, trees.record()) == ("build/kept.py",)


@pytest.mark.parametrize("broken", [b"", b"no index at all", b"DIRC\0\0\0\2" + b"\xff" * 40])
def test_record_when_the_own_index_is_broken_then_the_files_still_count(
    repo: Path, tmp_path: Path, broken: bytes
) -> None:
    """A doctored or broken index of the repository changes nothing about the record."""
    write(repo / ".git/index", broken)
    trees = Trees(repo, tmp_path / "record")
    assert names(trees, trees.record()) == set(FILES)


def test_record_when_the_own_index_hides_changes_then_they_are_seen(repo: Path, tmp_path: Path) -> None:
    """Flags that make git look away (assume unchanged, skip worktree) are the repository's, not ours."""
    git(repo, "update-index", "--assume-unchanged", "calc.py")
    git(repo, "update-index", "--skip-worktree", "pkg/mod.py")
    trees = Trees(repo, tmp_path / "record")
    before = trees.record()
    write(repo / "calc.py", "other\n")
    write(repo / "pkg/mod.py", "other\n")
    assert trees.changed(before, trees.record()) == ("calc.py", "pkg/mod.py")


def test_record_when_it_becomes_ignored_later_then_it_still_counts(trees: Trees, repo: Path) -> None:
    """Nobody hides a recorded file by ignoring it."""
    before = trees.record()
    write(repo / ".gitignore", "*\n")
    write(repo / "calc.py", "other\n")
    assert trees.changed(before, trees.record()) == (".gitignore", "calc.py")


def test_record_when_a_recorder_was_killed_then_its_lock_is_no_obstacle(trees: Trees) -> None:
    """A lock that nobody holds any more stops nothing."""
    before = trees.record()
    write(trees.git_dir / "index.lock", b"")
    assert trees.record() == before


def test_record_when_opened_again_then_earlier_trees_are_still_there(trees: Trees, repo: Path, tmp_path: Path) -> None:
    """A new process finds the trees of the one before."""
    before = trees.record()
    write(repo / "new.py")
    again = Trees(repo, tmp_path / "record")
    assert again.changed(before, again.record()) == ("new.py",)


def test_record_when_a_directory_was_left_half_made_then_it_is_finished(repo: Path, tmp_path: Path) -> None:
    """A record whose making was cut off is made whole."""
    subprocess.run(["git", "init", "-q", "--bare", str(tmp_path / "record/trees.git")], check=True)
    trees = Trees(repo, tmp_path / "record")
    write(repo / "pkg/__pycache__/mod.pyc")
    assert names(trees, trees.record()) == set(FILES)


# -- hostile content


@pytest.mark.parametrize(
    "name",
    [
        b"-rf",
        b"--all",
        b":(exclude)calc.py",
        b"a\nb.py",
        b"quote\"d 'name'.py",
        b"back\\slash",
        b"caf\xe9.py",
        "ünï.py".encode(),
        b"git~1",
        b"tab\there",
        b" lead and trail ",
    ],
)
def test_record_when_a_name_is_odd_then_the_file_is_recorded_and_told_in_text(
    trees: Trees, repo: Path, name: bytes
) -> None:
    """Every file name that the system allows is data; what is told of it can be stored as UTF-8."""
    before = trees.record()
    (Path(os.fsdecode(os.fsencode(repo) + b"/" + name))).write_bytes(b"x\n")
    after = trees.record()
    assert os.fsdecode(name) in names(trees, after)
    (told,) = trees.changed(before, after)
    shown = (told + trees.stat(before, after)).encode("utf-8")
    assert told == name.decode("utf-8", "backslashreplace")
    assert b"1 file changed" in shown


@pytest.mark.parametrize("content", [b"a\r\nb\r\n", b"a\nb\r\n\xff\xfe\0bin", b"$Id$\n", b"\xef\xbb\xbfbom\r\n"])
@pytest.mark.parametrize(
    "attributes", ["", "* text eol=crlf ident", "* text=auto working-tree-encoding=UTF-16", "* crlf"]
)
def test_record_when_attributes_ask_for_conversion_then_bytes_stay(
    trees: Trees, repo: Path, content: bytes, attributes: str
) -> None:
    """Line ends, encodings and keywords go in as they are, whatever the tree's own attributes ask for."""
    write(repo / ".gitattributes", attributes)
    write(repo / "data.txt", content)
    assert blob(trees, trees.record(), "data.txt") == content


def test_record_when_the_tree_holds_links_then_they_are_links(trees: Trees, repo: Path, tmp_path: Path) -> None:
    """A link is recorded as what it says, and never followed, also out of the workspace or in a circle."""
    write(tmp_path / "outside/secret.txt", "secret")
    (repo / "away").symlink_to(tmp_path / "outside")
    (repo / "circle").symlink_to("circle")
    after = trees.record()
    assert names(trees, after) == {*FILES, "away", "circle"}
    assert blob(trees, after, "away") == os.fsencode(tmp_path / "outside")


def test_record_when_there_are_pipes_and_sockets_then_it_does_not_wait_for_them(
    trees: Trees, repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is no file is left out."""
    before = trees.record()
    os.mkfifo(repo / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        monkeypatch.chdir(repo)
        listener.bind("socket")
        assert trees.record() == before


@pytest.mark.parametrize("known", [False, True])
def test_record_when_repositories_are_nested_then_their_files_are_seen(trees: Trees, repo: Path, known: bool) -> None:
    """A repository inside the workspace hides nothing, whenever it came: its files count, and those inside of it."""
    if known:
        trees.record()
    inner = repository(repo / "vendor/inner", {"a.py": "1\n"})
    deeper = repository(inner / "deep/er", {"b.py": "1\n"})
    git(repo / "vendor", "init", "-q", "empty")
    write(repo / "vendor/empty/c.py")
    before = trees.record()
    expected = {"vendor/inner/a.py", "vendor/inner/deep/er/b.py", "vendor/empty/c.py"}
    assert names(trees, before) == {*FILES, *expected}
    write(deeper / "b.py", "2\n")
    write(inner / "new.py")
    after = trees.record()
    assert trees.changed(before, after) == ("vendor/inner/deep/er/b.py", "vendor/inner/new.py")
    assert trees.record() == after


def test_record_when_a_nested_repository_was_taken_in_by_its_id_then_its_files_are_seen(
    trees: Trees, repo: Path, tmp_path: Path
) -> None:
    """A recorder that was killed between git's two looks at a nested repository leaves nothing hidden."""
    trees.record()
    inner = repository(repo / "inner", {"a.py": "1\n"})
    link = f"160000,{git(inner, 'rev-parse', 'HEAD').strip()},inner"
    subprocess.run(["git", "update-index", "--add", "--cacheinfo", link], cwd=trees.git_dir, check=True)
    again = Trees(repo, tmp_path / "record")
    assert names(again, again.record()) == {*FILES, "inner/a.py"}


def test_record_when_another_process_used_the_record_meanwhile_then_the_files_are_what_counts(
    trees: Trees, repo: Path, tmp_path: Path
) -> None:
    """What one process remembers of the record never stands above what another has put into it since."""
    before = trees.record()
    assert trees.record() == before
    write(repo / "calc.py", "other\n")
    other = Trees(repo, tmp_path / "record")
    after = other.record()
    assert trees.record() == after
    other.restore(before, ["calc.py"])
    assert trees.record() == before


def test_record_when_somebody_tidies_it_up_then_every_tree_is_still_there(trees: Trees, repo: Path) -> None:
    """`git gc` in the record loses nothing, however old it is."""
    before = trees.record()
    write(repo / "calc.py", "other\n")
    after = trees.record()
    old = 1_000_000_000
    for path in (trees.git_dir / "objects").rglob("*"):
        os.utime(path, (old, old))
    git(trees.git_dir, "gc", "-q")
    assert trees.changed(before, after) == ("calc.py",)
    trees.restore(before, ["calc.py"])
    assert (repo / "calc.py").read_text() == FILES["calc.py"]


def test_last_when_it_is_too_long_ago_then_the_files_are_looked_at_again(trees: Trees, repo: Path) -> None:
    """What was recorded last answers for the files only as long as its caller says."""
    before = trees.record()
    write(repo / "calc.py", "other\n")
    assert trees.last() == before
    assert trees.last(within_s=0) == trees.record() != before


def test_record_when_a_folder_becomes_a_repository_then_its_changes_are_still_seen(trees: Trees, repo: Path) -> None:
    """`git init` in a folder of tests is no way to change them unseen."""
    before = trees.record()
    git(repo / "pkg", "init", "-q")
    write(repo / "pkg/mod.py", "x = 2\n")
    write(repo / "pkg/new.py")
    assert trees.changed(before, trees.record()) == ("pkg/mod.py", "pkg/new.py")


# -- hostile configuration


def hooks(repo: Path, mark: Path) -> None:
    """Hooks, and a folder of hooks by configuration."""
    for folder in (repo / ".git/hooks", repo / "own-hooks"):
        for hook in ("pre-commit", "post-index-change", "reference-transaction", "post-checkout", "fsmonitor-watchman"):
            write(folder / hook, f"#!/bin/sh\ntouch '{mark}'\n").chmod(0o755)
    git(repo, "config", "core.hooksPath", str(repo / "own-hooks"))


def filters(repo: Path, mark: Path) -> None:
    """Filter, diff and merge drivers, asked for by attributes in the tree and in the repository."""
    git(repo, "config", "filter.evil.clean", f"touch '{mark}'; cat")
    git(repo, "config", "filter.evil.smudge", f"touch '{mark}'; cat")
    git(repo, "config", "filter.evil.process", f"touch '{mark}'")
    git(repo, "config", "filter.evil.required", "true")
    git(repo, "config", "diff.evil.textconv", f"touch '{mark}'; cat")
    git(repo, "config", "diff.evil.command", f"touch '{mark}'")
    git(repo, "config", "diff.external", f"touch '{mark}'")
    write(repo / ".gitattributes", "* filter=evil diff=evil merge=evil\n")
    write(repo / ".git/info/attributes", "* filter=evil diff=evil merge=evil\n")


def monitor(repo: Path, mark: Path) -> None:
    """A file system monitor, in the repository and in one nested in it."""
    nested = repository(repo / "nested", {"n.py": "1\n"})
    for where in (repo, nested):
        script = write(where / ".git/monitor", f"#!/bin/sh\ntouch '{mark}'\n")
        script.chmod(0o755)
        git(where, "config", "core.fsmonitor", str(script))


def included(repo: Path, mark: Path) -> None:
    """A pager, an editor, a signer and an alias, by an included file."""
    config = f"""[core]
    pager = "touch '{mark}'"
    editor = "touch '{mark}'"
    sshCommand = "touch '{mark}'"
[commit]
    gpgSign = true
[gpg]
    program = {write(repo / ".git/signer", f"#!/bin/sh{chr(10)}touch '{mark}'{chr(10)}")}
[alias]
    write-tree = "!touch '{mark}'"
"""
    (repo / ".git/signer").chmod(0o755)
    write(repo / ".git/more", config)
    git(repo, "config", "include.path", "more")


def elsewhere(repo: Path, mark: Path) -> None:
    """A work tree that points somewhere else."""
    mark.with_name("other").mkdir()
    git(repo, "config", "core.worktree", str(mark.with_name("other")))


def broken(repo: Path, mark: Path) -> None:
    """A configuration that git itself refuses."""
    assert not mark.exists()
    write(repo / ".git/config", "[core\nrepositoryformatversion = 99\n")


@pytest.mark.parametrize("prepare", [hooks, filters, monitor, included, elsewhere, broken])
def test_record_when_the_configuration_is_hostile_then_nothing_of_it_runs_and_all_is_recorded(
    repo: Path, tmp_path: Path, prepare: Callable[[Path, Path], None]
) -> None:
    """No command of the repository's runs, its `.git` stays as it is, and a change is seen byte for byte."""
    mark = tmp_path / "ran"
    prepare(repo, mark)
    mark.unlink(missing_ok=True)  # git itself may have run it while this was prepared
    own = fingerprint(repo / ".git")
    trees = Trees(repo, tmp_path / "record")
    before = trees.record()
    write(repo / "calc.py", "changed\r\n")
    after = trees.record()
    assert trees.changed(before, after) == ("calc.py",)
    assert "+changed" in trees.diff(before, after)
    assert trees.stat(before, after)
    assert blob(trees, after, "calc.py") == b"changed\r\n"
    assert not mark.exists()
    assert fingerprint(repo / ".git") == own


def test_record_when_the_environment_points_git_elsewhere_then_it_has_no_effect(
    trees: Trees, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables of the process that started us, or a person's own configuration, don't reach our git."""
    before = trees.record()
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "no-index"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", "false")
    write(tmp_path / "home/.gitconfig", "[core]\nexcludesFile = ~/all\nautocrlf = true\n")
    write(tmp_path / "home/all", "*\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(repo / "new.py", "a\r\n")
    after = trees.record()
    assert trees.changed(before, after) == ("new.py",)
    assert "+a" in trees.diff(before, after)


def test_record_when_git_cannot_do_it_then_one_typed_error(trees: Trees) -> None:
    """A failing git is told in one line, with its own words."""
    with pytest.raises(GitFailed, match=r"expected `git .*` to succeed; found .*bad object"):
        trees.changed("0" * 40, "0" * 39 + "1")


# -- finding the workspace


@pytest.mark.parametrize("below", ["", "pkg", "pkg/../pkg"])
def test_find_when_a_path_is_in_a_repository_then_its_root(repo: Path, below: str) -> None:
    """Any directory inside stands for the whole repository."""
    assert find_workspace(repo / below) == repo.resolve()


def test_find_when_it_is_a_linked_worktree_then_its_own_root(repo: Path, tmp_path: Path) -> None:
    """A worktree, whose `.git` is a file, is a workspace, with what it tracks in its record."""
    git(repo, "worktree", "add", "-q", str(tmp_path / "linked"))
    write(tmp_path / "linked/build/kept.py")
    git(tmp_path / "linked", "add", "-f", "build/kept.py")
    assert find_workspace(tmp_path / "linked/pkg") == (tmp_path / "linked").resolve()
    trees = Trees(tmp_path / "linked", tmp_path / "record")
    assert names(trees, trees.record()) == {*FILES, "build/kept.py"}


@pytest.mark.parametrize("path", ["missing", "calc.py", "x\0y", "n" * 300, "circle/a"])
def test_find_when_the_path_is_no_directory_then_refused(repo: Path, path: str) -> None:
    """A path that is missing, a file, or no path at all gets one clear line."""
    (repo / "circle").symlink_to("circle")
    with pytest.raises(WorkspaceRefused, match="no such directory"):
        find_workspace(repo / path)


def test_find_when_the_home_is_nobody_s_then_refused() -> None:
    """`~name` of no known person is a missing directory."""
    with pytest.raises(WorkspaceRefused, match="no such directory"):
        find_workspace(Path("~nobody-of-that-name/project"))


def test_find_when_there_is_no_repository_then_refused_with_the_way_out(tmp_path: Path) -> None:
    """The line says which command would make it one."""
    with pytest.raises(WorkspaceRefused, match="git init") as refused:
        find_workspace(tmp_path)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("below", ["", "projects/plain"])
def test_find_when_the_repository_is_the_home_directory_then_refused(
    repo: Path, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    """A home directory kept in git is no workspace, nor is a plain folder in it."""
    (repo / "projects/plain").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(repo))
    with pytest.raises(WorkspaceRefused, match="home directory"):
        find_workspace(repo / below)


def test_find_when_a_link_leads_home_then_refused(repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A link is no way around the refusal."""
    monkeypatch.setenv("HOME", str(repo))
    (tmp_path / "alias").symlink_to(repo)
    with pytest.raises(WorkspaceRefused, match="home directory"):
        find_workspace(tmp_path / "alias")


def test_find_when_it_is_the_root_then_refused() -> None:
    """Runs never work in `/`, whether or not it is a repository."""
    with pytest.raises(WorkspaceRefused):
        find_workspace(Path("/"))


# -- copies and lines


def test_copy_when_made_then_all_is_in_it_and_nothing_leads_back(repo: Path, tmp_path: Path) -> None:
    """The copy holds ignored and uncommitted files too, and what is done to it is not done to the original."""
    write(repo / "build/dependency.py")
    write(repo / "calc.py", "uncommitted\n")
    (repo / "link").symlink_to("calc.py")
    copy = throw_away_copy(repo, tmp_path / "copies/1")
    assert fingerprint(copy) == fingerprint(repo)
    assert (copy / "link").is_symlink()
    before = fingerprint(repo)
    write(copy / "calc.py", "other\n")
    git(copy, "add", "-A")
    git(copy, "commit", "-qm", "in the copy")
    assert fingerprint(repo) == before


def test_copy_when_there_is_an_older_one_then_it_is_replaced(repo: Path, tmp_path: Path) -> None:
    """Nothing of an earlier attempt is left."""
    write(tmp_path / "copy/old.py")
    throw_away_copy(repo, tmp_path / "copy")
    assert not (tmp_path / "copy/old.py").exists()


@pytest.mark.parametrize("kind", ["file", "link"])
def test_copy_when_the_git_directory_is_elsewhere_then_the_copy_does_not_know_it(
    repo: Path, tmp_path: Path, kind: str
) -> None:
    """Git in a copy of a linked worktree, or of a repository with a linked `.git`, can't write to the original."""
    origin = tmp_path / "linked"
    if kind == "file":
        git(repo, "worktree", "add", "-q", str(origin))
    else:
        origin.mkdir()
        (origin / ".git").symlink_to(repo / ".git")
    copy = throw_away_copy(origin, tmp_path / "copy")
    assert not os.path.lexists(copy / ".git")
    assert os.path.lexists(origin / ".git")


@pytest.mark.parametrize(
    ("content", "count"),
    [(b"", 1), (b"a", 1), (b"a\n", 2), (b"a\r\nb", 2), (b"\0\xff\n\n", 3), (b"x\n" * 70_000, 70_001)],
)
def test_lines_when_a_file_is_in_the_workspace_then_its_count(tmp_path: Path, content: bytes, count: int) -> None:
    """Lines as an editor shows them: one more than there are line ends."""
    write(tmp_path / "a.txt", content)
    assert line_count(tmp_path, "a.txt") == count


@pytest.mark.parametrize(
    "name",
    [
        *("gone.py", "pkg", "", ".", "..", "../outside.txt", "pkg/../../outside.txt", "/etc/passwd"),
        *("away/outside.txt", "escape", "circle", "x\0y", "n" * 300, "n/" * 3_000, "pipe"),
    ],
)
def test_lines_when_a_name_leads_out_or_nowhere_then_none(repo: Path, tmp_path: Path, name: str) -> None:
    """A name that a model made up reads nothing outside the workspace and breaks nothing."""
    write(tmp_path / "outside.txt")
    (repo / "away").symlink_to(tmp_path)
    (repo / "escape").symlink_to(tmp_path / "outside.txt")
    (repo / "circle").symlink_to("circle")
    os.mkfifo(repo / "pipe")
    assert line_count(repo, name) is None


RECORDER = """
import sys
from pathlib import Path
from matrix_coder.engine.workspace import Trees
trees = Trees(Path(sys.argv[1]), Path(sys.argv[2]))
print("ready", flush=True)
sys.stdin.readline()
for turn in range(40):
    (trees.workspace / sys.argv[3]).write_text(f"{turn}")
    trees.record()
"""


def test_record_when_two_processes_record_at_once_then_neither_breaks_the_other_s_index(
    repo: Path, trees: Trees, tmp_path: Path
) -> None:
    """Whoever looks at a live run's diff records its tree while the worker does, and the run goes on."""
    words = [sys.executable, "-c", RECORDER, str(repo), str(trees.git_dir.parent)]
    both = [
        subprocess.Popen([*words, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for name in ("one", "other")
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in both:
        assert process.stdin is not None
        process.stdin.write(b"go\n")
        process.stdin.flush()
    said = [process.communicate()[1].decode() for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert {"one", "other"} <= names(trees, trees.record())
