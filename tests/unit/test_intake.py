"""One turn at the intake: what it adds, and that nothing of it stays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from matrix_coder.core import intake as module
from matrix_coder.core.decision import Decision, GateOutcome
from matrix_coder.core.errors import WorkspaceBusy
from matrix_coder.core.intake import INSTALL, TIP, Intake, Ports
from matrix_coder.core.marks import GAP, OPENING
from matrix_coder.core.ports import CardEnd
from matrix_coder.core.prompts import compose

KEY = b"k" * 32
DEBUG = "matrix debug: parse() fails on an empty line"
TYPO = "fix the typo in README.md"


def hook(text: Any, turn: str = "t1", session: str = "s1", **more: Any) -> dict[str, Any]:
    """The arguments the host gives to a turn's hook."""
    history = [*more.pop("before", []), {"role": "user", "content": text}]
    known = {"session_id": session, "turn_id": turn, "platform": "cli", "user_message": text}
    return {**known, "conversation_history": history, **more}


def taken(result: dict[str, str] | None) -> str:
    """The text that a turn adds; empty for none."""
    return result["context"] if result else ""


@dataclass
class Runs:
    """A workflow port that keeps what it was asked."""

    note: str | None = None
    fault: WorkspaceBusy | None = None
    started: list[Decision] = field(default_factory=list)

    def start_from_chat(
        self, decision: Decision, *, session_id: str, platform: str, kwargs: Mapping[str, object]
    ) -> str:
        if self.fault:
            raise self.fault
        self.started.append(decision)
        return f"run r1 of {decision.role} has started for {session_id} on {platform}"

    def session_note(self, session_id: str) -> str | None:
        return self.note

    def said(self, message: str, session_id: str) -> str | None:
        return None


@dataclass
class Cards:
    """A card port that keeps what it was told."""

    told: list[tuple[str, str]] = field(default_factory=list)

    def opened(self, decision: Decision, *, session_id: str, turn_id: str) -> str | None:
        self.told.append(("opened", decision.route or ""))
        return turn_id

    def closed(self, card: str, end: CardEnd) -> None:
        self.told.append((card, end.value))


class Commands:
    """A command port that says what it was asked."""

    def run(self, text: str, session_id: str) -> str:
        return f"ran {text!r} for {session_id}"


def connected(**ports: Any) -> Intake:
    return Intake(Ports(key=lambda: KEY, **ports))


def test_trigger_when_a_specialist_is_called_then_its_composition_is_added_whole() -> None:
    """The text names its source and holds the whole composition, in one mark."""
    added = taken(connected().inject(hook("matrix review:security@backend-api: the login")))
    assert compose("review", lens="security", domain="backend-api", surface="chat") in added
    assert added.startswith(OPENING)
    assert "Matrix Coder, a plugin of this Hermes" in added


def test_chat_when_it_is_not_about_code_then_nothing_is_added_and_the_key_is_not_read() -> None:
    """A turn that injects nothing reads no file: not even the key."""

    def no_key() -> bytes:
        raise AssertionError("the key was read")

    assert Intake(Ports(key=no_key)).inject(hook("what a lovely weekend that was")) is None


def test_next_turn_when_it_begins_then_the_earlier_block_is_gone_from_the_history() -> None:
    """The host's own message objects lose the block, and nothing else."""
    intake = connected()
    added = taken(intake.inject(hook(DEBUG)))
    past = {"role": "user", "content": DEBUG, "api_content": f"{DEBUG}{GAP}{added}"}
    noted = {"role": "user", "content": DEBUG, "api_content": f"{DEBUG}{GAP}memory{GAP}{added}"}
    own = {"role": "user", "content": "hi", "api_content": " hi "}
    intake.inject(hook("good night", "t2", before=[past, noted, own]))
    assert "api_content" not in past
    assert noted["api_content"] == f"{DEBUG}{GAP}memory"
    assert own["api_content"] == " hi "


def test_history_when_another_process_of_the_installation_added_the_block_then_it_is_taken_out() -> None:
    """What is known of a block stands in the block: a restart changes nothing."""
    added = taken(connected().inject(hook(DEBUG)))
    past = {"role": "user", "content": DEBUG, "api_content": f"{DEBUG}{GAP}{added}"}
    connected().inject(hook("good night", "t2", before=[past]))
    assert "api_content" not in past


def test_turn_when_it_is_answered_then_its_state_is_gone() -> None:
    """`post_llm_call` of the same turn clears it; that of another turn does not."""
    intake = connected()
    intake.inject(hook(DEBUG))
    intake.clear({"session_id": "s1", "turn_id": "another"})
    assert intake.turns.current("s1") is not None
    intake.clear({"session_id": "s1", "turn_id": "t1"})
    assert intake.turns.current("s1") is None
    assert len(intake.turns) == 0


@pytest.mark.parametrize("arguments", [{"turn_id": "t1"}, {"turn_id": "t1", "interrupted": True}, {}])
def test_turn_when_its_session_end_is_told_then_its_state_is_gone(arguments: dict[str, Any]) -> None:
    """A turn without an answer is cleared at its end, and one of a process that shuts down by its session."""
    intake = connected()
    intake.inject(hook(DEBUG))
    intake.session_end({"session_id": "s1", **arguments})
    assert len(intake.turns) == 0


def test_turn_when_it_ended_without_a_word_then_the_next_one_clears_it() -> None:
    """After an API error no hook tells the end; a request of the old turn would get nothing any more."""
    intake = connected()
    intake.inject(hook(DEBUG))
    intake.inject(hook("good night", "t2"))
    request = {"messages": [{"role": "user", "content": DEBUG}]}
    assert intake.request(request, "t1", "s1") is False
    assert request == {"messages": [{"role": "user", "content": DEBUG}]}


def test_review_when_it_shares_the_session_then_it_neither_gets_nor_clears_a_persona() -> None:
    """The host's background review has the session's id, and leaves the session's turn alone."""
    reviewing = [False]
    intake = connected(is_review=lambda: reviewing[0])
    intake.inject(hook(DEBUG))
    reviewing[0] = True
    assert intake.inject(hook("fix tests/test_a.py", "r1")) is None
    intake.clear({"session_id": "s1", "turn_id": "t1"})
    intake.session_end({"session_id": "s1", "turn_id": "t1"})
    assert intake.turns.current("s1") is not None


def test_sessions_when_two_run_then_neither_sees_the_others_persona() -> None:
    """State is kept by session and turn."""
    intake = connected()
    intake.inject(hook(DEBUG, "t1", "s1"))
    intake.inject(hook("matrix plan: a page", "t2", "s2"))
    request: dict[str, Any] = {"messages": [{"role": "user", "content": "matrix plan: a page"}]}
    intake.request(request, "t2", "s2")
    text = request["messages"][0]["content"]
    assert compose("plan", surface="chat") in text
    assert compose("debug", surface="chat") not in text


def test_decisions_when_they_are_read_then_nothing_is_inserted_or_evicted() -> None:
    """A look at a session that never spoke leaves everything as it was."""
    intake = connected()
    intake.inject(hook(DEBUG))
    for n in range(5_000):
        assert intake.last_decision(f"unknown {n}") is None
        assert intake.turns.current(f"unknown {n}") is None
    decision = intake.last_decision("s1")
    assert decision is not None
    assert decision.route == "debug"
    assert len(intake.turns) == 1


def test_turns_when_very_many_never_end_then_memory_stays_bounded() -> None:
    """Turns that no hook ever closes are forgotten, oldest first."""
    intake = connected()
    for n in range(1_100):
        intake.inject(hook(DEBUG, f"t{n}", f"s{n}"))
    assert len(intake.turns) == 1_024
    assert intake.turns.current("s0") is None
    assert intake.turns.current("s1099") is not None


def test_tip_when_the_turn_is_direct_then_it_stands_before_the_answer_once() -> None:
    """A mechanical edit gets a visible line, and no persona."""
    intake = connected()
    assert intake.inject(hook(TYPO)) is None
    assert intake.output("done", "s1") == f"{TIP}{GAP}done"
    assert intake.output("done", "s1") is None
    assert TIP.startswith("Efficient for Hermes to handle this directly")
    assert "Invoke Matrix Coder anyway, or let Hermes do it?" in TIP


def test_offer_when_it_is_taken_up_then_the_tipped_message_is_routed() -> None:
    """`invoke Matrix Coder anyway` brings in the specialist of the message before, and says so."""
    intake = connected()
    intake.inject(hook(TYPO))
    intake.output("done", "s1")
    intake.clear({"session_id": "s1", "turn_id": "t1"})
    added = taken(intake.inject(hook("invoke Matrix Coder anyway", "t2")))
    assert compose("executor", surface="chat") in added
    assert "message before this one" in added
    decision = intake.last_decision("s1")
    assert decision is not None
    assert (decision.outcome, decision.goal) == (GateOutcome.MATRIX, TYPO)


def test_offer_when_the_session_was_resumed_then_it_still_stands() -> None:
    """Another process finds the offer again from the message that it was made for."""
    before = [{"role": "user", "content": TYPO}, {"role": "assistant", "content": "done"}]
    added = taken(connected().inject(hook("invoke Matrix Coder anyway", "t2", before=before)))
    assert compose("executor", surface="chat") in added


@pytest.mark.parametrize("answer", ["let Hermes do it", "what a nice day it is"])
def test_offer_when_it_is_not_taken_up_then_it_is_gone(answer: str) -> None:
    """The offer lasts one turn, whatever that turn says."""
    intake = connected()
    intake.inject(hook(TYPO))
    intake.output("done", "s1")
    before = [
        {"role": "user", "content": TYPO},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": answer},
        {"role": "assistant", "content": "fine"},
    ]
    assert intake.inject(hook(answer, "t2", before=before[:2])) is None
    late = taken(intake.inject(hook("invoke Matrix Coder anyway", "t3", before=before)))
    assert "message before this one" not in late


def test_workflow_when_its_header_comes_then_the_ports_text_is_added_and_no_persona() -> None:
    """A header starts a run; the chat only learns that it has started."""
    runs = Runs(note="an old run has ended")
    added = taken(connected(workflow=runs).inject(hook("matrix ralph: make the tests pass")))
    assert "run r1 of ralph has started for s1 on cli" in added
    assert runs.started[0].goal == "make the tests pass"
    assert "an old run" not in added


def test_workflow_when_no_engine_is_there_then_one_line_says_how_to_install_it() -> None:
    """Routing works without the engine; a workflow names what is missing."""
    added = taken(connected().inject(hook("matrix ralph: make the tests pass")))
    assert INSTALL in added
    assert 'pip install "dbos>=3.2,<3.3"' in INSTALL


def test_workflow_when_it_can_not_start_then_the_one_line_is_handed_on() -> None:
    """What stands in the way is told in the same turn."""
    fault = WorkspaceBusy("a free workspace", "run r0 in it", "wait for it or cancel it")
    added = taken(connected(workflow=Runs(fault=fault)).inject(hook("matrix ralph: go on with it")))
    assert str(fault) in added


@pytest.mark.parametrize("text", ["matrix ralph keeps looping, why?", "matrix ralph cap=lots: make the tests pass"])
def test_workflow_when_the_gate_answers_itself_then_nothing_starts(text: str) -> None:
    """Talk about a workflow, or an impossible option, is answered and starts nothing."""
    runs = Runs()
    intake = connected(workflow=runs)
    added = taken(intake.inject(hook(text)))
    decision = intake.last_decision("s1")
    assert decision is not None
    assert decision.answer in added
    assert runs.started == []


def test_note_when_a_run_of_the_session_lives_then_any_turn_of_a_person_has_it() -> None:
    """The next turn of the session knows the run, with a persona and without."""
    intake = connected(workflow=Runs(note="run r1 is at iteration 2"))
    assert "run r1 is at iteration 2" in taken(intake.inject(hook("how was your day?")))
    both = taken(intake.inject(hook(DEBUG, "t2")))
    assert "run r1 is at iteration 2" in both
    assert compose("debug", surface="chat") in both


def test_note_when_it_is_far_too_long_then_the_block_still_passes_the_host_whole() -> None:
    """The host would replace a text over 10,000 characters, and with it the mark."""
    text = "matrix review:security@plugin-skill-authoring: hooks.py"
    added = taken(connected(workflow=Runs(note="x" * 20_000)).inject(hook(text)))
    assert len(added) < 10_000
    assert compose("review", lens="security", domain="plugin-skill-authoring", surface="chat") in added


def test_command_when_it_comes_as_plain_text_then_its_output_is_to_be_the_answer() -> None:
    """Where `/matrix` reaches the model as text, the turn holds the output, and decides nothing."""
    intake = connected(command=Commands())
    intake.inject(hook(DEBUG))
    added = taken(intake.inject(hook("/matrix why", "t2")))
    assert "ran '/matrix why' for s1" in added
    decision = intake.last_decision("s1")
    assert decision is not None
    assert decision.route == "debug"


@pytest.mark.parametrize(
    ("events", "end"),
    [
        (["clear", "end"], "done"),
        (["interrupted"], "interrupted"),
        (["failed", "next"], "failed"),
        (["failed", "clear"], "done"),
        (["next"], "interrupted"),
    ],
)
def test_card_when_the_turn_ends_then_it_is_closed_once_as_what_it_was(events: list[str], end: str) -> None:
    """A specialist's card is done, interrupted or failed, even when no hook tells the end."""
    cards = Cards()
    intake = connected(card=cards)
    intake.inject(hook(DEBUG))
    same = {"session_id": "s1", "turn_id": "t1"}
    steps = {
        "clear": lambda: intake.clear(same),
        "end": lambda: intake.session_end(same),
        "interrupted": lambda: intake.session_end({**same, "interrupted": True}),
        "failed": lambda: intake.request_failed(same),
        "next": lambda: intake.inject(hook("good night", "t2")),
    }
    for event in events:
        steps[event]()
    assert cards.told == [("opened", "debug"), ("t1", end)]


def test_request_when_the_host_lost_the_block_then_it_is_put_back_and_stored_for_the_summary() -> None:
    """An unanswered message is joined with this turn's, and the joined one has lost what was to be sent."""
    intake = connected()
    unanswered = {"role": "user", "content": "earlier"}
    added = taken(intake.inject(hook(DEBUG, before=[unanswered])))
    unanswered["content"] = joined = f"earlier{GAP}{DEBUG}"
    request: dict[str, Any] = {"messages": [{"role": "user", "content": joined}]}
    assert intake.request(request, "t1", "s1") is True
    assert request["messages"][0]["content"] == unanswered["api_content"] == f"{joined}{GAP}{added}"


def test_request_when_the_message_has_parts_then_the_block_is_one_more_part() -> None:
    """A message with an image is a list of parts, which the host adds no text to."""
    intake = connected()
    parts = [{"type": "text", "text": DEBUG}, {"type": "image_url", "image_url": {"url": "data:,"}}]
    added = taken(intake.inject(hook(parts)))
    request: dict[str, Any] = {"messages": [{"role": "user", "content": list(parts)}]}
    assert intake.request(request, "t1", "s1") is True
    assert request["messages"][0]["content"] == [*parts, {"type": "text", "text": added}]


def test_request_when_it_holds_an_earlier_block_then_only_that_is_cut() -> None:
    """The second net: blocks of other turns go, this turn's stays once, pasted ones are the user's."""
    intake = connected()
    old = taken(intake.inject(hook("matrix plan: a page", "t0")))
    pasted = f"matrix plan: a page{GAP}{old}"
    before = [{"role": "user", "content": pasted}, {"role": "assistant", "content": "ok"}]
    added = taken(intake.inject(hook(DEBUG, "t1", before=before)))
    messages = [
        {"role": "system", "content": "you are"},
        {"role": "user", "content": pasted},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": f"{DEBUG}{GAP}{added}"},
    ]
    request: dict[str, Any] = {"messages": [dict(m) for m in messages]}
    assert intake.request(request, "t1", "s1") is False
    assert request["messages"] == messages
    del request["messages"][1]
    assert intake.request(request, "another turn", "s2") is True
    assert [m["content"] for m in request["messages"]] == ["you are", "ok", DEBUG]


def test_request_when_the_session_moved_on_under_a_new_id_then_the_turn_is_the_same() -> None:
    """Compression gives the session a new id in the middle of a turn; its end is still told."""
    intake = connected()
    intake.inject(hook(TYPO))
    intake.request({"messages": []}, "t1", "s1-continued")
    assert intake.output("done", "s1-continued") == f"{TIP}{GAP}done"
    intake.session_end({"session_id": "s1-continued"})
    assert len(intake.turns) == 0


def test_offer_when_the_host_compresses_between_the_turns_then_it_follows_the_session() -> None:
    """A session that goes on under a new id keeps its offer and its last decision."""
    intake = connected()
    intake.inject(hook(TYPO, "old:task:1", "old", task_id="task"))
    intake.output("done", "old")
    intake.clear({"session_id": "old", "turn_id": "old:task:1"})
    accepted = hook("invoke Matrix Coder anyway", "old:task:2", "new", task_id="task")
    assert compose("executor", surface="chat") in taken(intake.inject(accepted))
    assert intake.last_decision("old") is None
    assert intake.last_decision("new") is not None


def test_seed_names_when_called_then_they_work_on_the_intake_of_the_process() -> None:
    """`_inject_persona` and `_clear_persona` are the host's callbacks."""
    module.connect(Ports(key=lambda: KEY))
    assert compose("debug", surface="chat") in taken(module._inject_persona(**hook(DEBUG, "seed", "seed")))
    module._clear_persona(session_id="seed", turn_id="seed")
    assert module.intake().turns.current("seed") is None
    decision = module.last_decision("seed")
    assert decision is not None
    assert decision.outcome is GateOutcome.EXPLICIT
