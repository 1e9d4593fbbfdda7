"""The papers point at what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from matrix_coder.cli import EXIT_CODES, cli

ROOT = Path(__file__).resolve().parents[2]
PAPERS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


@pytest.mark.parametrize("paper", PAPERS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_when_relative_then_lead_to_a_file(paper: Path) -> None:
    """No paper links to a file that is not there."""
    missing = [link for link in LINK.findall(paper.read_text(encoding="utf-8")) if not (paper.parent / link).exists()]
    assert missing == []


def test_promises_when_they_name_a_test_then_it_exists() -> None:
    """Each test that the page of promises names is in the file that it names."""
    named = re.findall(
        r"`((?:unit|contract|integration|property|corpus|browser|real)/[\w*/.]*)(?:::(\w+))?`", _promises()
    )
    assert len(named) > 20
    for place, name in named:
        files = [p for p in (ROOT / "tests").glob(place) if p.exists()]
        assert files, place
        assert not name or any(f"def {name}(" in p.read_text(encoding="utf-8") for p in files), f"{place}::{name}"


def _promises() -> str:
    return (ROOT / "docs" / "promises.md").read_text(encoding="utf-8")


def test_commands_when_there_are_any_then_the_operating_page_tells_of_each() -> None:
    """Every command of the command line stands in the operating page or in that of the workflows."""
    told = "".join((ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("operating", "workflows"))
    told += (ROOT / "docs" / "routing.md").read_text(encoding="utf-8")
    missing = [
        name for name, command in cli.commands.items() if not command.hidden and not re.search(rf"\b{name}\b", told)
    ]
    assert missing == []


def test_exit_codes_when_shown_then_are_those_of_the_command_line() -> None:
    """The table of outcomes tells the exit code of each."""
    table = (ROOT / "docs" / "workflows.md").read_text(encoding="utf-8")
    for outcome, code in EXIT_CODES.items():
        assert re.search(rf"\| `{outcome}` \|.*\| {code} \|", table), outcome
