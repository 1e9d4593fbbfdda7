"""The seed's plain rules: requests about something unmistakably technical, which no vote may overrule."""

from __future__ import annotations

from itertools import pairwise

from .gate_features import Reading
from .gate_score import lead_of

MOST_WORDS = 12
_TERMS = frozenset("SLXIFG")
_THINGS = frozenset("SLXIFGWMU")
_COMPANIONS = frozenset("AQXWDR3")
_ORDERS = frozenset("AD")
_DAILY = frozenset("EOHKC")
_SPOILERS = frozenset("EOHKCtn@N#")
_ENDS = frozenset(".!?")
_POINTING = frozenset({"the", "this", "that", "these", "those"})
_MINE = frozenset({"my", *_POINTING})
_NEAR = frozenset({"this", "these", "our", "what's this", "what does this", "what is this", "is this safe", "is our"})
_AT_WORK = frozenset({"work", "run", "slow", "down", "start", "support", "handle"})
# Of two senses, but with a fault, a speed or a `my` beside them hardly anything else than code.
_LEANING = frozenset({
    "server", "build", "function", "query", "code", "script", "method", "variable", "deployment", "config", "loop",
    "pr", "diff", "branch", "handler", "controller", "schema", "migration", "pipeline",
})  # fmt: skip
_WISHERS = frozenset({"i", "we", "i'd", "we'd"})
_WISHES = frozenset({"want", "need", "like", "have", "would", "should"})
_DOERS = frozenset({"i", "we"})
_WORK = frozenset({
    "add", "write", "build", "create", "move", "change", "remove", "update", "replace", "convert", "delete", "migrate",
    "split", "extract", "mock", "deploy", "run", "call",
})  # fmt: skip
_TROUBLE = ("symptom", "performance")
_FAULTS = frozenset({"bug", "error", "exception", "crash", "timeout", "deadlock"})
_QUESTIONS = frozenset({"is", "are", "does", "do", "why", "where", "how"})
_OPENS = "opens with a role's word and names something technical"
_ROLES = frozenset({
    "review", "audit", "verify", "confirm", "debug", "diagnose", "test", "simplify", "refactor", "explore", "map",
    "plan",
})  # fmt: skip
# Other words that ask for a role, and orders given to code more often than to furniture.
_LIKE_ROLES = frozenset({
    "troubleshoot", "investigate", "explain", "design", "inspect", "check", "fix", "patch", "rewrite", "optimize",
    "optimise", "reformat",
})  # fmt: skip
_TALK = frozenset({
    "don't", "dont", "didn't", "wasn't", "weren't", "was", "were", "did", "had", "would", "never", "ever", "you", "he",
    "she", "they", "people", "anyone", "someone", "everyone", "nobody", "his", "her", "their", "him", "them", "i'm",
    "better", "best", "worse", "worth", "hard", "easy", "popular", "dead", "weird", "evil", "legal", "overrated",
    "cool",
    "fun", "roughly", "conceptually", "internally", "theory", "general", "philosophy", "invent", "invented", "called",
    "named", "history", "waste", "much", "many", "charge", "mean",
    "thing", "like", "replacing", "future", "alive", "obsolete", "good", "bad", "beautiful",
})  # fmt: skip


def floor_rule(reading: Reading) -> str:
    """The plain rule that a message fulfils, in words; an empty text when none does."""
    if len(reading.lemmas) < 2:
        return ""
    return _short_rule(reading) or _open_rule(reading)


def _short_rule(reading: Reading) -> str:
    """A short message about one technical thing, with nothing in it that makes it talk."""
    if reading.words > MOST_WORDS or reading.kinds:
        return ""
    at = _ask_start(reading)
    row, lemmas, plain = reading.classes[at:], reading.lemmas[at:], reading.surfaces[at] == reading.lemmas[at]
    if len(row) < 2 or _SPOILERS.intersection(row) or _TALK.intersection(lemmas + reading.surfaces[at:]):
        return ""
    if plain and _is_order_alone(row, lemmas):
        return "an order to work on one technical thing"
    if not _TERMS.intersection(row):
        return "a question about a fault in code" if _asks_of_fault(reading, lemmas) else ""
    if plain and (lemmas[0] in _ROLES or (lemmas[0] in _LIKE_ROLES and _points(row, lemmas, _MINE))):
        return _OPENS
    return _wish_or_question(reading, at)


def _wish_or_question(reading: Reading, at: int) -> str:
    row, lemmas = reading.classes[at:], reading.lemmas[at:]
    if at > lead_of(reading):
        return "a wish to work on something technical" if row[0] == "D" or lemmas[0] in _WORK else ""
    if _is_question(row, lemmas):
        return "a question about something technical"
    return "a fault of something technical is reported" if _reports(reading, row, lemmas) else ""


def _ask_start(reading: Reading) -> int:
    """Where the request starts, after a polite lead and after `I want to`, `we'd like to`."""
    at, lemmas = lead_of(reading), reading.lemmas
    if lemmas[at] in _WISHERS and _WISHES.intersection(lemmas[at : at + 3]) and "to" in lemmas[at + 1 : at + 4]:
        return min(lemmas.index("to", at) + 1, len(lemmas) - 1)
    return at


def _is_order_alone(row: list[str], lemmas: list[str]) -> bool:
    """`debug the server`, `fix the bug`, `review my code`: an order, a determiner, a thing, and nothing else."""
    bare = row[:-1] if row[-1] in _ENDS else row
    if not 3 <= len(bare) <= 4 or not (lemmas[0] in _ROLES or lemmas[0] in _LIKE_ROLES or bare[0] == "D"):
        return False
    things = range(2, len(bare))
    if lemmas[1] == "my":
        return all(bare[i] in _TERMS or lemmas[i] in _LEANING or lemmas[i] in _FAULTS for i in things)
    if lemmas[1] not in _POINTING and bare[1] != "o":
        return False
    return all(bare[i] in _THINGS or lemmas[i] in _LEANING or lemmas[i] in _FAULTS for i in things)


def _reports(reading: Reading, row: list[str], lemmas: list[str]) -> bool:
    """`the compiler crashes`, `our API is slow`: a thing at hand opens, and trouble follows."""
    opens = lemmas[0] in _MINE or row[0] == "o"
    return opens and row[1] in _TERMS and any(reading.tags.get(tag) for tag in _TROUBLE)


def _points(row: list[str], lemmas: list[str], pointing: frozenset[str]) -> bool:
    """Whether the message speaks of one technical thing at hand: `the compiler`, `our API`."""
    return any(
        row[i + 1] in _TERMS and (lemma in pointing or row[i] == "o") for i, (lemma, _) in enumerate(pairwise(lemmas))
    )


def _is_question(row: list[str], lemmas: list[str]) -> bool:
    first = lemmas[0].split(" ")[0]
    if lemmas[1] in _DOERS:
        return first in _QUESTIONS and (row[2:3] == ["D"] or bool(_WORK.intersection(lemmas[2:3])))
    if _DOERS.intersection(lemmas):
        return False
    if first not in _QUESTIONS:
        return row[-1] == "?" and (row[0] != "q" or first == "what") and _points(row, lemmas, _POINTING)
    return _points(row, lemmas, _MINE) or bool(_COMPANIONS.intersection(row[1:]) or _AT_WORK.intersection(lemmas))


def _asks_of_fault(reading: Reading, lemmas: list[str]) -> bool:
    """`why is the build slow`: a question, trouble, and a word that stands for code where there is trouble."""
    asks = lemmas[0].split(" ")[0] in _QUESTIONS
    return asks and bool(_LEANING.intersection(lemmas)) and any(reading.tags.get(tag) for tag in _TROUBLE)


def _open_rule(reading: Reading) -> str:
    """A message of any length that opens with a role's word or an order, or asks about *this* or *our* code.

    It names something technical, and nothing from daily life.
    """
    if _DAILY.intersection(reading.classes):
        return ""
    at = lead_of(reading)
    named = reading.lemmas[at] in _ROLES and reading.surfaces[at] == reading.lemmas[at]
    if not _names_term(reading.classes, at):
        return _OPENS if named and reading.classes.count("W") > 1 else ""
    if named:
        return _OPENS
    if reading.classes[at] in _ORDERS:
        return "an order about something technical"
    asks = reading.classes[-1] == "?" or reading.classes[at] == "R"
    several = sum(c in _TERMS or c == "D" for c in reading.classes) > 1
    return "a question about something technical" if asks and (several or _NEAR.intersection(reading.lemmas)) else ""


def _names_term(classes: list[str], at: int) -> bool:
    """Whether something technical is named; a technical verb counts where it opens and has a word of code after it."""
    return bool(_TERMS.intersection(classes)) or (classes[at] == "D" and bool(_THINGS.intersection(classes)))
