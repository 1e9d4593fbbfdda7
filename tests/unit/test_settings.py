"""The person's settings, as they stand in the host's configuration file."""

from __future__ import annotations

from pathlib import Path

import pytest

from matrix_coder.core.errors import InputError
from matrix_coder.hermes.preferences import SWITCH
from matrix_coder.hermes.settings import Milestones, Mirror, Settings, load_settings
from matrix_coder.web.configuration import settings_answer

HEAD = "plugins:\n  entries:\n    matrix_coder:\n      settings:\n"


def settings(home: Path, text: str) -> Settings:
    (home / "config.yaml").write_text(HEAD + "".join(f"        {line}\n" for line in text.splitlines()))
    return load_settings(home)


@pytest.mark.parametrize("word", ["off", "Off", "no", "false", '"off"', "'off'"])
def test_off_when_written_with_or_without_quotes_then_off(tmp_path: Path, word: str) -> None:
    """YAML reads a bare `off` as false: where `off` is a choice, that is what was meant."""
    found = settings(tmp_path, f"kanban: {{mirror: {word}}}\nchat: {{milestones: {word}}}")
    assert (found.kanban.mirror, found.chat.milestones) == (Mirror.OFF, Milestones.OFF)


@pytest.mark.parametrize("line", ["kanban: {mirror: on}", "chat: {milestones: true}", "kanban: {mirror: none}"])
def test_off_when_the_opposite_is_written_then_refused(tmp_path: Path, line: str) -> None:
    """`on` is no choice: nobody can tell which one it would be."""
    with pytest.raises(InputError, match=r"mend .*config\.yaml"):
        settings(tmp_path, line)


def test_settings_when_they_are_no_table_then_the_place_is_named(tmp_path: Path) -> None:
    """What is wrong with all of them is told of `settings` itself."""
    (tmp_path / "config.yaml").write_text("plugins: {entries: {matrix_coder: {settings: text}}}\n")
    with pytest.raises(InputError, match=r"a valid plugins\.entries\.matrix_coder\.settings; found 'text'"):
        load_settings(tmp_path)


@pytest.mark.parametrize("text", [b"plugins: [", b"a: b: c", b"\xff\xfe"], ids=["cut off", "colons", "no UTF-8"])
def test_settings_when_the_file_can_not_be_read_then_one_line_says_so(tmp_path: Path, text: bytes) -> None:
    """A file that is no YAML, or no text, is one line that names it."""
    (tmp_path / "config.yaml").write_bytes(text)
    with pytest.raises(InputError, match=r"a readable .*config\.yaml") as refused:
        load_settings(tmp_path)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", ["", "just words", "[1, 2]", "plugins: {entries: [matrix_coder]}"])
def test_settings_when_the_file_holds_none_of_ours_then_the_defaults(tmp_path: Path, text: str) -> None:
    """Whatever else the file holds is the host's business."""
    (tmp_path / "config.yaml").write_text(text)
    assert load_settings(tmp_path) == Settings()


def test_implicit_routing_when_the_environment_switches_it_off_then_the_page_says_so_and_by_what(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The switch outweighs the file: what is shown is what is in force, and where it comes from."""
    text = "plugins: {entries: {matrix_coder: {settings: {routing: {implicit: true}}}}}"
    (tmp_path / "config.yaml").write_text(text)
    for value, shown in (
        ("", ("true", str(tmp_path / "config.yaml"))),
        ("0", ("false", f"{SWITCH} in the environment")),
    ):
        monkeypatch.setenv(SWITCH, value)
        row = next(s for s in settings_answer(tmp_path).settings if s.name == "routing.implicit")
        assert (row.value, row.source) == shown
