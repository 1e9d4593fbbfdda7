"""No request of the real host holds another turn's persona, whatever became of that turn."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from matrix_coder.testing import HermesHome, Rule, ScriptedModel

from .leaks import BLOCK, Conversation, blocks, persona, user_texts

READ = {"tool": "read_file", "args": {"path": "notes.txt"}}
WEEKEND = "hello, how was your weekend?"
TYPO = "fix the typo in README.md"

# What is said, and the route it gets. The fourth ends in an API error and the sixth in an interrupt; the
# host then joins the unanswered message with the next one.
TEN = [
    ("matrix debug: parse() fails on an empty line\n  keep   this spacing\t!", "debug"),
    (WEEKEND, ""),
    ("matrix review:security@backend-api: look at login()", "review:security@backend-api"),
    ("matrix plan@frontend: a settings page", "plan@frontend"),
    ("matrix test: cover parse()", "test"),
    ("matrix executor: do it slowly", "executor"),
    (TYPO, ""),
    ("invoke Matrix Coder anyway", "executor"),
    ("matrix explore@data-db: where is the schema?", "explore@data-db"),
    ("thank you, that was nice", ""),
]
AFTER = [
    ("matrix simplify: shorten helpers.py", "simplify"),
    ("matrix verify: is it done?", "verify"),
]


def rules(sign: Path) -> list[Rule]:
    """The model's part. A joined message matches more than one rule, so the later message comes first."""
    plain = ({"text": "very well"},)
    return [
        Rule(match="good evening|good morning|once more", steps=plain),
        Rule(match="matrix verify", steps=(READ, READ, {"text": "not quite"})),
        Rule(match="matrix simplify", steps=({"http": 500},)),
        Rule(match="thank you", steps=plain),
        Rule(match="matrix explore", steps=(READ, READ, {"text": "this far"})),
        Rule(match="invoke Matrix Coder", steps=(READ, {"text": "now with care"})),
        Rule(match="fix the typo", steps=({"text": "typo mended"},)),
        Rule(match="matrix executor: do it slowly", steps=({"touch": str(sign), "sleep": 60, "text": "no"},)),
        Rule(match="matrix test", steps=(READ, {"text": "tests written"})),
        Rule(match="matrix plan", steps=({"http": 500},)),
        Rule(match="matrix review", steps=(READ, {"text": "reviewed"})),
        Rule(match="weekend", steps=plain),
        Rule(match="matrix debug", steps=(READ, READ, {"text": "found it"})),
    ]


def ten_turns(sign: Path) -> list[dict[str, object]]:
    """The ten turns, and two more: an API error, then an iteration limit on the joined message."""
    turns: list[dict[str, object]] = [{"text": text} for text, _ in TEN + AFTER]
    turns[5]["interrupt_when"] = str(sign)
    turns[8]["max_iterations"] = turns[11]["max_iterations"] = 2
    return turns


def test_ten_turns_when_routes_change_and_turns_break_then_no_persona_outlives_its_turn(
    scripted_model: Callable[..., ScriptedModel],
    hermes_home: Callable[..., HermesHome],
    tmp_path: Path,
    count_leak_checks: Callable[[int], None],
) -> None:
    """Changing routes, an API error, an interrupt, an iteration limit, a resumed session: each request holds
    its own turn's persona and no other, and what the user typed is byte-identical."""
    sign = tmp_path / "model-was-asked"
    model = scripted_model(rules(sign), default="yes")
    home = hermes_home(model)
    results = home.converse(ten_turns(sign))
    assert [r["failed"] for r in results][3] is True
    assert results[5]["interrupted"] is True
    assert results[6]["final_response"].startswith("Efficient for Hermes to handle this directly")
    assert "max_iterations" in str(results[8]["turn_exit_reason"])
    resumed = [("good morning", ""), ("matrix debug: once more", "debug"), ("and a good evening", "")]
    home.converse([text for text, _ in resumed], resume=results[-1]["session_id"])
    talk = Conversation(said=[*TEN, *AFTER, *resumed])
    for body in model.bodies:
        talk.check(body)
    assert talk.seen == set(range(len(talk.said)))
    assert sum("tools" not in body for body in model.bodies) >= 2, "the summaries at the limit"
    count_leak_checks(talk.checked)


def test_pasted_block_when_a_person_sends_one_then_it_is_their_text(
    scripted_model: Callable[..., ScriptedModel],
    hermes_home: Callable[..., HermesHome],
    count_leak_checks: Callable[[int], None],
) -> None:
    """A genuine block that a person pastes, whole message or part, stays in every later request."""
    model = scripted_model(default="yes")
    home = hermes_home(model)
    first = home.converse(["matrix debug: parse() fails"])
    sent = user_texts(model.bodies[0])[0]
    part = "what is this in my log?" + sent.removeprefix("matrix debug: parse() fails")
    said = [part, sent, "good night"]
    home.converse(said, resume=first[0]["session_id"])
    for number, body in enumerate(model.bodies[1:]):
        texts = user_texts(body)
        assert texts[0] == "matrix debug: parse() fails"
        assert texts[1] == part or number == 0
        assert [t.startswith(sent) for t in texts[2:]] == [True, False][: max(0, number)]
    assert texts[2] == sent, "without the block that its own turn added"
    count_leak_checks(len(model.bodies))


def test_turns_that_are_not_a_persons_when_they_run_then_they_get_no_persona(
    scripted_model: Callable[..., ScriptedModel],
    hermes_home: Callable[..., HermesHome],
    count_leak_checks: Callable[[int], None],
) -> None:
    """Children, cron, background review, curator and messages of the host itself get nothing."""
    model = scripted_model(default="Nothing to save.")
    code = "please fix the failing test in src/parser.py"
    turns = [
        {"text": "matrix debug: parse() fails", "review": True, "delegate": code},
        {"text": f"[ASYNC DELEGATION COMPLETE — d1]\n{code}"},
        {"text": f"[IMPORTANT: Background process p1 exited]\n{code}"},
        {"text": f"[kanban] Task t_1 blocked: {code}"},
        {"text": f"[Continuing toward your standing goal]\nGoal: {code}"},
        {"text": f"matrix review: {code}", "platform": "cron"},
        {"text": f"matrix review: {code}", "platform": "curator"},
    ]
    hermes_home(model).converse(turns, toolsets=["file", "delegation"])
    with_block = [body for body in model.bodies if blocks(body)]
    assert len(with_block) == 1
    assert persona("debug") in blocks(with_block[0])[0]
    kinds = json.dumps(model.bodies)
    assert "Review the conversation above" in kinds
    assert any(body["messages"][-1]["content"] == code for body in model.bodies), "the child was asked"
    assert len(model.bodies) == len(turns) + 2
    count_leak_checks(len(model.bodies))


def test_worker_of_a_board_when_it_gets_its_task_then_it_gets_no_persona(
    scripted_model: Callable[..., ScriptedModel],
    hermes_home: Callable[..., HermesHome],
    count_leak_checks: Callable[[int], None],
) -> None:
    """A Kanban worker is told by its environment, not by its words."""
    model = scripted_model(default="done")
    home = hermes_home(model, env={"HERMES_KANBAN_TASK": "t_1"})
    home.converse(["matrix review: work kanban task t_1"])
    assert model.bodies
    assert not any(blocks(body) for body in model.bodies)
    count_leak_checks(len(model.bodies))


@pytest.mark.parametrize("in_place", [True, False])
def test_compression_when_it_rewrites_the_history_then_only_this_turns_persona_is_left(
    scripted_model: Callable[..., ScriptedModel],
    hermes_home: Callable[..., HermesHome],
    count_leak_checks: Callable[[int], None],
    in_place: bool,
) -> None:
    """A history that the host sums up in the middle of a conversation holds no earlier persona."""
    model = scripted_model(default="word " * 3_000)
    compression = {"enabled": True, "threshold": 0.5, "in_place": in_place, "protect_last_n": 4}
    config = {"model": {"context_length": 64_000}, "compression": compression}
    said = [f"matrix {route}: item {n} " + "x" * 9_000 for n, route in enumerate(["debug", "plan", "test"] * 5)]
    hermes_home(model, config=config).converse(said)
    main = [body for body in model.bodies if "tools" in body]
    assert any("COMPACTION" in json.dumps(body) for body in main)
    for body in main:
        last = next(t for t in reversed(user_texts(body)) if t.startswith("matrix "))
        assert len(blocks(body)) == 1
        assert persona(last.split()[1].rstrip(":")) in BLOCK.findall(last)[0]
    assert all(not blocks(body) for body in model.bodies if "tools" not in body)
    count_leak_checks(len(model.bodies))


def test_scheduled_job_when_the_host_runs_it_then_it_gets_no_persona(
    scripted_model: Callable[..., ScriptedModel],
    hermes_home: Callable[..., HermesHome],
    count_leak_checks: Callable[[int], None],
) -> None:
    """A real cron job whose prompt is a header is not a person's turn."""
    model = scripted_model(default="done")
    home = hermes_home(model)
    job = "matrix review: fix the failing test in src/parser.py"
    created = home.hermes("cron", "create", "every 1h", job)
    job_id = created.out.split("Created job:")[1].split()[0]
    assert "succeeded" in home.hermes("cron", "run", job_id).out
    assert user_texts(model.bodies[0])[0].endswith(job)
    assert not any(blocks(body) for body in model.bodies)
    count_leak_checks(len(model.bodies))


def test_session_when_the_command_line_resumes_it_then_no_earlier_persona_is_left(
    scripted_model: Callable[..., ScriptedModel],
    hermes_home: Callable[..., HermesHome],
    count_leak_checks: Callable[[int], None],
) -> None:
    """`hermes chat --resume` in a new process: the host reads the stored conversation, block and all."""
    model = scripted_model(default="very well")
    home = hermes_home(model)
    first = home.chat("matrix debug: parse() fails")
    session = first.out.split("hermes --resume ")[1].split()[0]
    home.chat("matrix plan: a page", "--resume", session)
    talks = [body for body in model.bodies if "tools" in body]
    said = [("matrix debug: parse() fails", "debug"), ("matrix plan: a page", "plan")]
    talk = Conversation(said=said)
    for body in talks:
        talk.check(body)
    assert talk.seen == {0, 1}
    assert len(user_texts(talks[-1])) == 2
    assert not any(blocks(body) for body in model.bodies if "tools" not in body), "the title of the session"
    count_leak_checks(len(model.bodies))


def test_turn_when_the_host_compresses_in_its_middle_then_it_keeps_its_persona_to_the_limit(
    scripted_model: Callable[..., ScriptedModel],
    hermes_home: Callable[..., HermesHome],
    tmp_path: Path,
    count_leak_checks: Callable[[int], None],
) -> None:
    """A long turn goes on under a new session id after a compression; the persona stays to the summary at the
    iteration limit, and is gone with the next turn."""
    big = tmp_path / "big.txt"
    big.write_text("word word word word word word word\n" * 3_000)
    reads = tuple(
        {"tool": "read_file", "args": {"path": str(big), "offset": 1 + n, "limit": 400}, "usage": {"input": 9_000 * n}}
        for n in range(9)
    )
    said = [("hello there", ""), ("matrix debug: find it", "debug"), ("thank you", "")]
    plain = ({"text": "very well"},)
    rules = [Rule(match="thank you|hello", steps=plain), Rule(match="matrix debug", steps=reads)]
    model = scripted_model(rules, default="a summary")
    compression = {"enabled": True, "threshold": 0.5, "in_place": False, "protect_last_n": 2}
    config = {"model": {"context_length": 64_000}, "compression": compression}
    turns: list[dict[str, object]] = [{"text": text} for text, _ in said]
    turns[1]["max_iterations"] = len(reads)
    results = hermes_home(model, config=config).converse(turns)
    assert results[0]["session_id"] != results[1]["session_id"]
    assert "max_iterations" in str(results[1]["turn_exit_reason"])
    own = [body for body in model.bodies if "summarization agent" not in user_texts(body)[0]]
    assert any("COMPACTION" in json.dumps(body) for body in own)
    talk = Conversation(said=said, host=("You've reached the maximum number", "[CONTEXT COMPACTION"))
    for body in own:
        talk.check(body)
    assert talk.seen == {0, 1, 2}
    assert not any(blocks(body) for body in model.bodies if body not in own)
    count_leak_checks(len(model.bodies))
