"""One turn of a conversation: what is added to it, and that it is gone with the turn.

`_inject_persona` runs before the host asks the model, `_clear_persona` after it answered. Everything
outside this package comes in through `Ports`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from .context import carriers, current_message, rewritten, scrub, text_of
from .decision import Decision, GateOutcome
from .errors import MatrixError
from .intent_gate import answers_tip, decide
from .marks import turn_tag, wrapped
from .ports import CardEnd, CardPort, CommandPort, PreferencePort, WorkflowPort
from .prompts import compose, fenced
from .turns import MOST_SESSIONS, Bounded, Message, Turn, Turns

Kwargs = Mapping[str, object]

TIP = (
    "Efficient for Hermes to handle this directly, without a specialist. "
    "Invoke Matrix Coder anyway, or let Hermes do it?"
)
SOURCE = (
    "Added for this turn only by Matrix Coder, a plugin of this Hermes. What the person wrote stands above this block."
)
INSTALL = 'Matrix Coder: workflows need the durable engine; install it with: pip install "dbos>=3.2,<3.3"'
RELAY = (
    "Matrix Coder has started no run in this turn. Tell the person what stands in the fence, word for word, "
    "and do no other work in this turn.\n\n{}"
)
COMMAND = (
    "The person's message is a Matrix Coder command, and it has been carried out. Answer with exactly this "
    "output, the text in the fence, and nothing else:\n\n{}"
)
ACCEPTED = (
    "The person takes up Matrix Coder's offer to bring in a specialist. The request to work on is their "
    "message before this one."
)
CUT = "\n[cut here; `/matrix show` has the rest]"
MOST_TEXT = 9_500  # the host replaces anything over 10,000 characters, mark included, by a stub
_COMMAND_LINE = re.compile(r"\s*/matrix(?:\s|$)")


@dataclass(slots=True, kw_only=True)
class Ports:
    """What the intake is connected to; each default does nothing.

    `key` gives the secret that seals the blocks; `most_text` the characters that the host passes on whole;
    `is_person` and `is_review` judge a hook's arguments.
    """

    key: Callable[[], bytes] = lambda: b"not connected to a host"
    most_text: Callable[[], int] = lambda: 10_000
    is_person: Callable[[Kwargs], bool] = lambda _: True
    is_review: Callable[[], bool] = lambda: False
    workflow: WorkflowPort | None = None
    command: CommandPort | None = None
    card: CardPort | None = None
    preferences: PreferencePort | None = None
    notice: Callable[[str], None] = lambda _: None
    streams: Callable[[], bool] = lambda: False


class Intake:
    """The turns of all conversations of this process."""

    def __init__(self, ports: Ports | None = None) -> None:
        self.ports = ports or Ports()
        self.turns = Turns()
        self._offers: Bounded[Decision] = Bounded(MOST_SESSIONS)
        self._decisions: Bounded[Decision] = Bounded(MOST_SESSIONS)

    def inject(self, kwargs: Kwargs) -> dict[str, str] | None:
        """What the host adds to this turn's user message, as `{"context": ...}`; None for nothing."""
        history = _history(kwargs)
        pasted = scrub(history, self.ports.key)
        if self.ports.is_review():
            return None
        turn = self._begun(kwargs, history, pasted)
        if not self.ports.is_person(kwargs):
            return None
        turn.person = True
        body = self._body(turn, text_of(kwargs.get("user_message")), history, kwargs)
        if not body:
            return None
        turn.block = wrapped(
            _bounded(f"{SOURCE}\n\n{body}"),
            key=self.ports.key(),
            turn=turn_tag(turn.turn_id),
            user_text=turn.user_text,
        )
        # The host would put a stub in the place of a longer text; left out here, it is added to each request.
        fits = len(turn.block.text) <= self.ports.most_text()
        return {"context": turn.block.text} if fits else None

    def clear(self, kwargs: Kwargs) -> None:
        """The turn is answered: nothing of it stays."""
        if not self.ports.is_review():
            self._ended(self.turns.end(_text(kwargs, "turn_id")), CardEnd.DONE)

    def session_end(self, kwargs: Kwargs) -> None:
        """The turn is over, answered or not; without a turn id, whatever turn the session has."""
        if self.ports.is_review():
            return
        current = self.turns.current(_text(kwargs, "session_id"))
        turn_id = _text(kwargs, "turn_id") or (current.turn_id if current else "")
        self._ended(self.turns.end(turn_id), CardEnd.INTERRUPTED if kwargs.get("interrupted") else CardEnd.DONE)

    def request_failed(self, kwargs: Kwargs) -> None:
        """A model call of the turn failed. The host may try again, so the turn goes on."""
        turn = self.turns.of(_text(kwargs, "turn_id"))
        if turn is not None:
            turn.failed = True

    def output(self, response: str, session_id: str) -> str | None:
        """The answer with the tip before it, on a DIRECT turn; None leaves it as it is."""
        turn = self.turns.current(session_id)
        if turn is None or not turn.tip or turn.decision is None or self.ports.is_review():
            return None
        turn.tip = False
        self._offers.put(session_id, turn.decision)
        if self.ports.streams():
            # The answer stands on the screen already: a line before it would be seen by nobody.
            self.ports.notice(TIP)
            return None
        return f"{TIP}\n\n{response}"

    def request(self, request: MutableMapping[str, object], turn_id: str, session_id: str) -> bool:
        """Makes an outgoing request hold this turn's block once and no other; whether it changed."""
        turn = self.turns.of(turn_id)
        if turn is not None and session_id and turn.session_id != session_id:
            self._followed(turn.session_id, session_id)
            self.turns.moved(turn, session_id)
        return rewritten(request, turn, self.ports.key)

    def last_decision(self, session_id: str) -> Decision | None:
        """The decision on the session's last message of a person, for explaining it."""
        return self._decisions.get(session_id)

    def _begun(self, kwargs: Kwargs, history: Sequence[Message], pasted: tuple[str, ...]) -> Turn:
        """A new turn of the session. One that ended without a word to us ends here."""
        before = _predecessor(kwargs)
        if before:
            self._followed(before, _text(kwargs, "session_id"))
        current = current_message(history, text_of(kwargs.get("user_message")))
        turn = Turn(
            session_id=_text(kwargs, "session_id"),
            turn_id=_text(kwargs, "turn_id"),
            user_text=text_of(current.get("content") if current else kwargs.get("user_message")),
            carriers=carriers(history, current),
            pasted=pasted,
        )
        for earlier in self.turns.begin(turn):
            self._ended(earlier, CardEnd.INTERRUPTED)
        return turn

    def _followed(self, before: str, session_id: str) -> None:
        """The session goes on under a new id: what was kept for the old one is kept for the new one."""
        for kept in (self._offers, self._decisions):
            value = kept.pop(before)
            if value is not None:
                kept.put(session_id, value)

    def _ended(self, turn: Turn | None, end: CardEnd) -> None:
        if turn is not None and turn.card is not None and self.ports.card is not None:
            lost = end is not CardEnd.DONE and turn.failed
            self.ports.card.closed(turn.card, CardEnd.FAILED if lost else end)

    def _body(self, turn: Turn, message: str, history: Sequence[Message], kwargs: Kwargs) -> str:
        """What to tell the model in a person's turn; empty for nothing."""
        if self.ports.command is not None and _COMMAND_LINE.match(message):
            return COMMAND.format(fenced(self.ports.command.run(message.strip(), turn.session_id)))
        said = self._said(message, turn.session_id)
        if said:
            return COMMAND.format(fenced(said))
        offer = self._offers.pop(turn.session_id)
        taken = self._taken(message, offer, history) if answers_tip(message) == "invoke" else None
        decision = taken or decide(message, session_id=turn.session_id, platform=_text(kwargs, "platform"))
        if decision.outcome is GateOutcome.SKIP:
            return ""
        if not taken and not self._wanted(decision, message, turn.session_id):
            decision = replace(decision, outcome=GateOutcome.NONE, role=None, lens=None, domain=None, route=None)
        turn.decision = decision
        self._decisions.put(turn.session_id, decision)
        if decision.workflow or decision.answer:
            return self._of_workflow(turn, decision, kwargs)
        parts = [ACCEPTED if taken else "", self._persona(turn, decision), self._note(turn)]
        return "\n\n".join(part for part in parts if part)

    def _wanted(self, decision: Decision, message: str, session_id: str) -> bool:
        """Whether what was inferred is what the person wants inferred."""
        inferred = decision.outcome in (GateOutcome.DIRECT, GateOutcome.MATRIX)
        return not inferred or self.ports.preferences is None or self.ports.preferences.allows(message, session_id)

    def _taken(self, message: str, offer: Decision | None, history: Sequence[Message]) -> Decision | None:
        """The tipped decision as one that brings in the specialist; None when no offer stands.

        An offer that another process made, before this session was resumed, is found again from the
        message it was made for: the decision on a text is always the same one.
        """
        offer = offer or _offered(history)
        return replace(offer, outcome=GateOutcome.MATRIX) if offer else None

    def _of_workflow(self, turn: Turn, decision: Decision, kwargs: Kwargs) -> str:
        if decision.answer:
            return RELAY.format(fenced(decision.answer))
        if self.ports.workflow is None:
            return RELAY.format(fenced(INSTALL))
        try:
            return self.ports.workflow.start_from_chat(
                decision, session_id=turn.session_id, platform=_text(kwargs, "platform"), kwargs=kwargs
            )
        except MatrixError as error:
            return RELAY.format(fenced(f"Matrix Coder: {error}"))

    def _persona(self, turn: Turn, decision: Decision) -> str:
        if decision.outcome is GateOutcome.DIRECT:
            turn.tip = True
        if decision.verdict != "matrix" or decision.role is None:
            return ""
        if self.ports.card is not None:
            turn.card = self.ports.card.opened(decision, session_id=turn.session_id, turn_id=turn.turn_id)
        self.ports.notice(f"{decision.route} joins this turn")
        return compose(decision.role, lens=decision.lens, domain=decision.domain, surface="chat")

    def _said(self, message: str, session_id: str) -> str:
        """What a message that speaks to a run itself came to; empty for any other."""
        if self.ports.workflow is None:
            return ""
        try:
            return self.ports.workflow.said(message, session_id) or ""
        except MatrixError as error:
            return str(error)

    def _note(self, turn: Turn) -> str:
        if self.ports.workflow is None:
            return ""
        try:
            return self.ports.workflow.session_note(turn.session_id) or ""
        except MatrixError as error:
            return f"Matrix Coder can't tell of this session's runs: {error}"


def _offered(history: Sequence[Message]) -> Decision | None:
    """The offer that the last answered message got, judged from that message."""
    if len(history) < 3 or history[-2].get("role") != "assistant":
        return None
    asked = [m for m in history[:-2] if m.get("role") == "user"][-1:]
    decisions = [decide(text_of(m.get("content"))) for m in asked]
    return next((d for d in decisions if d.outcome is GateOutcome.DIRECT), None)


def _predecessor(kwargs: Kwargs) -> str:
    """The id that the session had when the turn began, if the host has changed it since; else empty.

    A turn's id starts with its session's. The host compresses before it calls the first hook.
    """
    session, found, _ = _text(kwargs, "turn_id").rpartition(f":{_text(kwargs, 'task_id')}:")
    return session if found and session != _text(kwargs, "session_id") else ""


def _bounded(body: str) -> str:
    """The body within what the host passes on whole; only what follows a persona is long enough to be cut."""
    return body if len(body) <= MOST_TEXT else body[: MOST_TEXT - len(CUT)] + CUT


def _text(kwargs: Kwargs, name: str) -> str:
    value = kwargs.get(name)
    return value if isinstance(value, str) else ""


def _history(kwargs: Kwargs) -> list[Message]:
    found = kwargs.get("conversation_history")
    return [cast("Message", m) for m in found if isinstance(m, dict)] if isinstance(found, list) else []


_intake = Intake()


def intake() -> Intake:
    """The intake of this process."""
    return _intake


def connect(ports: Ports) -> Intake:
    """Connects this process's intake to the host; returns it."""
    _intake.ports = ports
    return _intake


def _inject_persona(**kwargs: object) -> dict[str, str] | None:
    """The host's `pre_llm_call`: `{"context": ...}` for a turn that gets a specialist, else None."""
    return _intake.inject(kwargs)


def _clear_persona(**kwargs: object) -> None:
    """The host's `post_llm_call`: the persona of this turn is gone."""
    _intake.clear(kwargs)


def last_decision(session_id: str) -> Decision | None:
    """The decision on the session's last message of a person; None when this process knows of none."""
    return _intake.last_decision(session_id)
