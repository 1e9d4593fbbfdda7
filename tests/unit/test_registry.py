"""The catalogue of personas and workflows: closed, validated, and clear about what is wrong with a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from matrix_coder.core import registry
from matrix_coder.core.definition import GATE, READ_ONLY_ROLES
from matrix_coder.core.errors import DefinitionError, UnknownPersona
from matrix_coder.core.models import StepVerdict
from matrix_coder.core.names import Domain, Lens, Role, Workflow
from matrix_coder.core.registry import (
    Base,
    PersonaKind,
    Surface,
    load_persona,
    load_workflow,
    parse_persona,
    parse_workflow,
)

PERSONAS = Path(registry.__file__).resolve().parent.parent / "personas"
FOLDERS = {
    "_base": (PersonaKind.BASE, Base),
    "roles": (PersonaKind.ROLE, Role),
    "review-lenses": (PersonaKind.LENS, Lens),
    "domains": (PersonaKind.DOMAIN, Domain),
}
ALL = [(kind, name) for kind, names in FOLDERS.values() for name in names]

HOSTILE = [
    "../README",
    "../../../etc/passwd",
    "/etc/passwd",
    "roles/review",
    "review.md",
    "review\x00",
    "review\n",
    " review",
    "Review",
    "_base/contract",
    "..",
    "",
    "ｒeview",
    "r" * 100_000,
    None,
    7,
    ["review"],
]

RALPH = """---
name: ralph
cap: 5
steps:
  executor: {role: executor, writes: true}
  verify: {role: verify, writes: false}
start: executor
transitions:
  executor: {PASS: verify, FAIL: verify, UNVERIFIABLE: verify, BLOCKED: "end:blocked"}
  verify: {PASS: "gate:checks", FAIL: "loop:executor", UNVERIFIABLE: "gate:checks", BLOCKED: "end:blocked"}
---

## Chat
It runs.

## Step: executor
You open.

## Step: verify
You close.
"""

# What is replaced in RALPH, by what, and what the one line has to say.
MALFORMED = [
    ("---\nname", "name", "front matter"),
    ("name: ralph", "name: loopy", "one of ralph, autopilot, ultrawork, ultraqa"),
    ("name: ralph", "name: ../ralph", "one of ralph, autopilot, ultrawork, ultraqa"),
    ("name: ralph\n", "", "found None"),
    ("cap: 5\n", "", "the key `cap`"),
    ("cap: 5", "cap: 0", "a whole number from 1 to 100"),
    ("cap: 5", "cap: 101", "found 101"),
    ("cap: 5", "cap: true", "found True"),
    ("cap: 5", "cap: 5.0", "found 5.0"),
    ("cap: 5", "cap: 'many'", "found 'many'"),
    ("cap: 5", "cap: 5\ncap: 50", "each key once"),
    ("cap: 5", "cap: 5\non_error: retry", "found 'on_error'"),
    ("cap: 5", "cap: [5", "front matter in YAML"),
    ("cap: 5", "cap: 2024-99-99", "front matter in YAML"),
    ("cap: 5", "cap: !!python/object/apply:os.getcwd []", "front matter in YAML"),
    ("cap: 5", "cap: " + "[" * 5_000, "front matter in YAML"),
    ("start: executor", "start: plan", "one of the steps executor, verify; found 'plan'"),
    ("start: executor", "start: executor\nloop_start: nowhere", "loop_start"),
    ("role: executor, writes: true", "role: wizard, writes: true", "step executor: role to be one of"),
    ("role: executor, writes: true", "role: executor", "the key `writes`"),
    ("role: executor, writes: true", "role: executor, writes: maybe", "writes to be true or false"),
    ("role: executor, writes: true", "role: executor, writes: true, lens: code", "a lens on a review only"),
    ("role: executor, writes: true", "role: executor, writes: true, speed: 9", "found 'speed'"),
    ("role: verify, writes: false", "role: verify, writes: true", "verify only reads in a run"),
    ("  verify: {role: verify, writes: false}\n", "", "the sections"),
    ("  executor: {PASS: verify, FAIL", "  executor: {FAIL", "the key `PASS`"),
    ("{PASS: verify,", "{MAYBE: verify, PASS: verify,", "found 'MAYBE'"),
    ("{PASS: verify,", "{PASS: review,", "PASS to lead to a step (executor, verify)"),
    ("{PASS: verify,", "{PASS: 'end:verified',", "found 'end:verified'"),
    ("{PASS: verify,", "{PASS: 'loop:plan',", "found 'loop:plan'"),
    ("{PASS: verify,", "{PASS: 'gate:model',", "found 'gate:model'"),
    ("{PASS: verify,", "{PASS: [verify],", "found a list of 1"),
    ('FAIL: "loop:executor"', 'FAIL: "gate:checks"', "FAIL to lead away from gate:checks"),
    ('FAIL: "loop:executor"', "FAIL: executor", "only"),
    ("## Chat\nIt runs.\n", "", "a section `## Chat` with text"),
    ("## Step: verify\nYou close.\n", "", "a section `## Step: verify` with text"),
    ("## Step: verify", "## Step: executor", "each section once"),
    ("## Chat", "Stray words.\n\n## Chat", "only the sections"),
    ("## Chat", "## Notes\nx\n\n## Chat", "found 'Notes'"),
]


@pytest.mark.parametrize(("folder", "kind", "names"), [(f, k, n) for f, (k, n) in FOLDERS.items()])
def test_catalogue_when_listed_then_files_and_names_are_the_same_set(folder, kind, names) -> None:
    """No persona file is out of reach, and no name is without its file."""
    assert {p.name for p in (PERSONAS / folder).iterdir()} == {f"{name}.md" for name in names}
    assert {load_persona(name, kind).name for name in names} == set(names)


def test_workflow_files_when_listed_then_they_are_the_workflow_names() -> None:
    """Each workflow that can be typed has its file, and there is no other."""
    assert {p.name for p in (PERSONAS / "workflows").iterdir()} == {f"{w}.md" for w in Workflow}


@pytest.mark.parametrize(("kind", "name"), ALL)
def test_persona_when_loaded_then_it_is_the_files_own_text(kind: PersonaKind, name: str) -> None:
    """What a surface is given holds every line of the file but the front matter and the other surface's section."""
    folder = next(f for f, (k, _) in FOLDERS.items() if k == kind)
    body = (PERSONAS / folder / f"{name}.md").read_text(encoding="utf-8").split("\n---\n", 1)[1]
    persona = load_persona(name, kind)
    both = "\n".join(persona.text(surface) for surface in Surface).splitlines()
    assert [line for line in body.splitlines() if line not in both] == []
    assert persona.summary and not persona.summary.startswith(("-", "#"))


@pytest.mark.parametrize("role", Role)
def test_role_when_the_surface_changes_then_only_its_own_section_is_there(role: Role) -> None:
    """A turn never reads what a run's step is told, and the other way round."""
    persona = load_persona(role)
    chat, run = persona.text(Surface.CHAT), persona.text(Surface.RUN)
    assert "## In chat" in chat and "## In a run" not in chat
    assert "## In a run" in run and "## In chat" not in run
    assert persona.sections["In chat"] in chat and persona.sections["In a run"] in run


@pytest.mark.parametrize("role", Role)
def test_role_when_read_then_it_has_the_shape_of_all_roles(role: Role) -> None:
    """Each role says what comes first, how it works, what it leaves alone, what it owes, and how it reports."""
    shape = ["", "First", "Method", "Limits", "Evidence owed", "In chat", "In a run"]
    assert list(load_persona(role).sections) == shape


@pytest.mark.parametrize(("kind", "name"), [pair for pair in ALL if pair[0] is not PersonaKind.BASE])
def test_docs_when_they_list_the_catalogue_then_the_summary_is_the_files_own(kind, name) -> None:
    """The page shows each persona with the line that its file gives."""
    page = (Path(__file__).parents[2] / "docs" / "personas.md").read_text(encoding="utf-8")
    assert f"| `{name}` | {load_persona(name, kind).summary} |" in page


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name)[:24])
@pytest.mark.parametrize("kind", PersonaKind)
def test_load_persona_when_the_name_is_foreign_then_one_clear_line(name, kind) -> None:
    """A name outside the catalogue is refused before any path is touched, in one short line."""
    with pytest.raises(UnknownPersona) as caught:
        load_persona(name, kind)
    assert str(caught.value).startswith(f"expected a {kind} out of ")
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


@pytest.mark.parametrize("name", HOSTILE, ids=lambda name: repr(name)[:24])
def test_load_workflow_when_the_name_is_foreign_then_one_clear_line(name) -> None:
    """The same holds for workflows."""
    with pytest.raises(UnknownPersona, match="expected a workflow out of ralph, autopilot") as caught:
        load_workflow(name)
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


@pytest.mark.parametrize("kind", ["", "roles", "../roles", "workflow", None])
def test_load_persona_when_the_kind_is_foreign_then_it_is_refused(kind) -> None:
    """The folder is chosen from a closed set as well."""
    with pytest.raises(UnknownPersona, match="expected a kind of persona out of base, role, lens, domain"):
        load_persona("review", kind)


def test_load_persona_when_the_name_is_of_another_kind_then_it_is_refused() -> None:
    """A lens is no role, even though both have a file."""
    with pytest.raises(UnknownPersona):
        load_persona("security", PersonaKind.ROLE)


def test_load_persona_when_called_again_then_the_file_is_not_read_again() -> None:
    """A persona is read once in the life of a process."""
    assert load_persona("review") is load_persona("review", "role")


@pytest.mark.parametrize("name", Workflow)
def test_workflow_when_loaded_then_its_copy_parses_to_the_same(name: Workflow) -> None:
    """A run that carries its definition's text gets back what was started."""
    definition = load_workflow(name)
    assert definition.name is name
    assert parse_workflow(definition.source) == definition
    assert definition.source == (PERSONAS / "workflows" / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", Workflow)
def test_workflow_when_loaded_then_it_can_only_be_verified_by_the_checks(name: Workflow) -> None:
    """No verdict ends a run in success by itself; BLOCKED always ends it with a question to a person."""
    definition = load_workflow(name)
    targets = [t for step in definition.transitions.values() for t in step.values()]
    assert GATE in targets and "end:verified" not in targets
    for step, verdicts in definition.transitions.items():
        assert set(verdicts) == set(StepVerdict)
        assert verdicts[StepVerdict.BLOCKED] == "end:blocked", step
    assert not any(s.writes for s in definition.steps.values() if s.role in READ_ONLY_ROLES)


def test_ralph_when_loaded_then_it_is_executor_then_verify_in_a_loop() -> None:
    """The loop of the seed: executor, verify, and back until verified, five times at most."""
    ralph = load_workflow("ralph")
    assert (ralph.start, ralph.loop_start, ralph.cap) == ("executor", "executor", 5)
    assert ralph.transitions["executor"]["PASS"] == "verify"
    assert ralph.transitions["verify"]["FAIL"] == "loop:executor"
    assert ralph.steps["executor"].writes and not ralph.steps["verify"].writes


def test_autopilot_when_loaded_then_the_plan_stands_before_the_loop() -> None:
    """A plan is made once; a failed test, review or verification goes back to the executor."""
    autopilot = load_workflow("autopilot")
    assert (autopilot.start, autopilot.loop_start) == ("plan", "executor")
    assert list(autopilot.steps) == ["plan", "executor", "test", "review", "verify", "diagnose"]
    for step in ("test", "review", "verify"):
        assert autopilot.transitions[step]["FAIL"] == "loop:executor"


def test_ultraqa_when_loaded_then_its_test_step_writes_nothing_and_the_executor_fixes() -> None:
    """The suite is run, judged, and then fixed; only the fix may write."""
    ultraqa = load_workflow("ultraqa")
    assert [s.name for s in ultraqa.steps.values() if s.writes] == ["fix"]
    assert ultraqa.steps["fix"].role is Role.EXECUTOR
    assert set(ultraqa.transitions["fix"].values()) == {"loop:test", "end:blocked"}


def test_ultrawork_when_loaded_then_only_the_units_fan_out() -> None:
    """One step of the workflow stands for many units; there is no loop of its own."""
    ultrawork = load_workflow("ultrawork")
    assert [s.name for s in ultrawork.steps.values() if s.fan_out] == ["units"]
    assert not any(t.startswith("loop:") for v in ultrawork.transitions.values() for t in v.values())


@pytest.mark.parametrize(("old", "new", "said"), MALFORMED, ids=lambda text: repr(text)[:40])
def test_parse_workflow_when_the_text_is_malformed_then_one_clear_line(old: str, new: str, said: str) -> None:
    """Each way to break a definition is told in one line that names the place and what was found."""
    assert parse_workflow(RALPH).name is Workflow.RALPH
    assert old in RALPH
    with pytest.raises(DefinitionError) as caught:
        parse_workflow(RALPH.replace(old, new, 1))
    line = str(caught.value)
    assert said in line and line.startswith("expected workflow")
    assert "\n" not in line and len(line) < 400


def test_parse_workflow_when_steps_circle_without_a_loop_then_it_is_refused() -> None:
    """A circle that no cap counts could run for ever."""
    text = RALPH.replace('FAIL: "loop:executor"', "FAIL: executor")
    with pytest.raises(DefinitionError, match=r"back only through loop:.*found 'executor and verify'"):
        parse_workflow(text)


def test_parse_workflow_when_a_step_is_out_of_reach_then_it_is_named() -> None:
    """A step that nothing leads to is a mistake in the file."""
    text = RALPH.replace("PASS: verify, FAIL: verify, UNVERIFIABLE: verify", _to("end:failed"))
    with pytest.raises(DefinitionError, match="reachable from executor; found 'verify'"):
        parse_workflow(text)


def test_parse_workflow_when_nothing_leads_to_the_gate_then_it_is_refused() -> None:
    """A workflow that could never end verified is a mistake in the file."""
    with pytest.raises(DefinitionError, match="lead to gate:checks"):
        parse_workflow(RALPH.replace('"gate:checks"', '"end:unverified"'))


def test_parse_workflow_when_a_key_repeats_deep_inside_then_it_is_refused() -> None:
    """A verdict written twice would silently lose the first."""
    with pytest.raises(DefinitionError, match="each key once; found 'PASS'"):
        parse_workflow(RALPH.replace("{PASS: verify,", "{PASS: verify, PASS: verify,"))


def test_parse_workflow_when_yaml_points_into_itself_then_it_is_refused() -> None:
    """A document that contains itself is told like any other mistake."""
    with pytest.raises(DefinitionError, match="steps"):
        parse_workflow(RALPH.replace("cap: 5", "cap: 5\nx: &a [*a]").replace("steps:", "steps: *a\nold:"))


def test_parse_workflow_when_the_text_is_huge_then_it_is_refused_unread() -> None:
    """A stored definition can't make the reader work without end."""
    with pytest.raises(DefinitionError, match="at most 64000 characters"):
        parse_workflow(RALPH + "x" * 64_000)


def test_parse_workflow_when_a_heading_stands_in_a_code_block_then_it_is_text() -> None:
    """A section may show Markdown without opening another section."""
    text = RALPH.replace("You open.", "Write\n\n```md\n## Chat\n```\n\nand go on.")
    assert parse_workflow(text).steps["executor"].text.endswith("```\n\nand go on.")


def test_parse_workflow_when_lines_end_the_other_way_then_it_reads_the_same() -> None:
    """A checkout with CRLF line ends drives the same loop."""
    assert parse_workflow(RALPH.replace("\n", "\r\n")).transitions == parse_workflow(RALPH).transitions


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Role", "front matter"),
        ("---\nname: debug\nkind: role\nsummary: x\n---\ntext", "name: review"),
        ("---\nname: review\nkind: lens\nsummary: x\n---\ntext", "kind: role"),
        ("---\nname: review\nkind: role\n---\ntext", "found 'summary'"),
        ("---\nname: review\nkind: role\nsummary: 3\n---\ntext", "summary to be a line of text"),
        ("---\nname: review\nkind: role\nsummary: x\ntarget: developer\n---\ntext", "found 'target'"),
        ("---\nname: review\nkind: role\nsummary: x\n---\n\n", "a text after the front matter"),
    ],
)
def test_parse_persona_when_the_file_is_malformed_then_one_clear_line(text: str, said: str) -> None:
    """A persona file says who it is, and nothing that no one reads."""
    with pytest.raises(DefinitionError) as caught:
        parse_persona("review", PersonaKind.ROLE, text)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_registry_when_imported_then_no_yaml_parser_is_loaded() -> None:
    """A process that injects nothing does not pay for the parser."""
    code = "import sys, matrix_coder.core.prompts; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def _to(target: str) -> str:
    return f'PASS: "{target}", FAIL: "{target}", UNVERIFIABLE: "{target}"'
