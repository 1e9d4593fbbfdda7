"""What of a message is the person's ask, and what is pasted or quoted: one linear walk over a bounded view."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

HEAD_CHARS = 3_000
TAIL_CHARS = 1_500
_ASK_HEAD = 600
_ASK_TAIL = 400
_PASTE_CHARS = 700
_LINES = 120
_LINE_CHARS = 240

_INLINE = re.compile(
    r"`[^`\n]{1,200}`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|«[^»\n]{1,300}»|「[^」\n]{1,300}」"
    r"|„[^“”\n]{1,300}[“”]|(?<![\w'])'[^'\n]{2,120}'(?![\w'])"
)
_KINDS: dict[str, tuple[str, ...]] = {
    "diff": (r"diff --git |@@ |\+\+\+ |--- [ab/]", r"[+-](?=[\s{}()<\w#/\"'@])"),
    "trace": (
        r"Traceback |\s{2,}at [\w.$<]|\s+File \"|Caused by:|panicked at|goroutine \d",
        r"\s*\^+\s*$|\s*\|\s*\^|\s+--> |\s*\d+ \|",
        r"(?:[\w.$:/\\-]{1,80})?(?:Error|Exception|Warning|error|panic|fatal|FATAL|Fatal error)(?:\[\w+\])?:\s",
        r"npm ERR!|make: \*\*\*|E\s{2,}\w|FAILED |thread '",
    ),
    "log": (
        r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\[?\d\d:\d\d:\d\d|\w{3} +\d{1,2} \d\d:\d\d:\d\d ",
        r"(?:\[?(?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\]?[\s:])|#\d+ \d|\d{1,3}(?:\.\d{1,3}){3} - ",
        r"[\w./-]{1,80} (?:PASSED|FAILED|SKIPPED)|\s*[✓✔✗✘×] |={3,} |\s*(?:Warning|Normal)\s{2,}\w",
    ),
    "shell": (
        r"[$❯%] \w|\w[\w-]{0,30}@[\w-]{1,40}[:~]|sh: |zsh: |bash: |\[[^\]\n]{1,60}[~/][^\]\n]{0,60}\]",
        r"(?:npm|yarn|pnpm|docker|git|kubectl|pip|cargo|go|make|apt-get|sudo|curl)"
        r" [\w-]{1,20}(?: [\w./:=@-]{1,80}){0,6}\s*$",
    ),
    "quote": (r">\s?\S",),
    "code": (
        r"\s*(?:def |class \w+[\s(:{]|import [\w{*]|from [\w.]+ import |#include|@\w+[\s(]?|</?[a-zA-Z!][^\n]{0,200}>)",
        r"\s*(?://|/\*|\*/|(?:const|let|var) [\w{\[]|(?:export|public|private|protected|static|async) \w+)",
        r"\s*(?:function[\s*(]|func \w|fn \w|return\b.{0,80};?$|if ?\(|for ?\(|while ?\(|else\b|elif |try[:{ ])",
        r"\s*(?:except\b|catch|finally|switch|case .{1,40}:|print[(f]|package \w+;?$|using \w|namespace |struct )",
        r"\s*(?:enum |impl |type \w+ =|interface \w|end$|begin$|elsif |unless |puts |#!/|\$\w+ ?=|\w+:$)",
        r"\s*(?:SELECT |INSERT |UPDATE \w+ SET|DELETE FROM|CREATE |ALTER |DROP |WITH \w+ AS|select .{1,80} from )",
        r"\s*(?:create table|FROM \w+(?: as \w+)?|RUN |COPY |ENTRYPOINT|CMD \[|WORKDIR |ENV \w|apiVersion:|kind: )",
        r"\s*(?:resource \"|variable \"|provider \")",
        r"[^\n]{0,160}(?:[;{}]|=>|\)\s*:|\),|->|\\|&&)\s*$",
        r"\s*[\w.\[\]\"'$*&]{1,60} ?(?::=|\+=|-=|\*=|=)(?!=) ?\S",
        r"\s*[\w.$]{1,60}\([^\n]{0,120}\);?\s*$",
        r"\s*[}\])]+[;,]?\s*$|\s{2,}[\w\"'.-]{1,60}:(?:\s|$)|\s*\"[\w.-]{1,60}\": ?",
        r"\s*- (?:name|uses|run|image): |\s*\.[\w-]{1,40} ?\{|\s{4,}\S",
    ),
    "table": (r"\s*\|.{0,200}\||[^\n,]{1,60}(?:,[^\n,]{0,60}){3,}$|[^\t\n]{0,60}\t[^\t\n]{0,60}\t",),
}


@cache
def _line_pattern() -> re.Pattern[str]:
    """What kind of pasted line a line is; compiled when the first message with several lines comes."""
    return re.compile("|".join(f"(?P<{kind}>{'|'.join(parts)})" for kind, parts in _KINDS.items()))


class View(NamedTuple):
    """The bounded reading of a message.

    `ask` is the text that carries the request, `paste` a sample of what was pasted or quoted,
    `kinds` what was pasted (fence, code, trace, log, diff, shell, table, quote, long, inline), sorted.
    """

    ask: str
    paste: str
    kinds: tuple[str, ...]


def bounded(text: str) -> str:
    """The part of a message that decides: all of a short one, head and tail of a long one."""
    if len(text) <= HEAD_CHARS + TAIL_CHARS:
        return text
    return text[:HEAD_CHARS] + "\n" + text[-TAIL_CHARS:]


def view(text: str) -> View:
    """What is asked and what is pasted in stripped, bounded text."""
    if "\n" not in text and len(text) <= _ASK_HEAD and "`" not in text and '"' not in text and "'" not in text:
        return View(text, "", ())
    kinds: set[str] = set()
    paste: list[str] = []
    ask = _split_lines(text, kinds, paste) if "\n" in text else text
    if len(ask) > _ASK_HEAD + _ASK_TAIL:
        kinds.add("long")
        paste.append(ask[_ASK_HEAD : _ASK_HEAD + 300])
        ask = ask[:_ASK_HEAD] + " \n " + ask[-_ASK_TAIL:]
    ask = _take_inline(ask, kinds, paste)
    return View(ask, "\n".join(paste)[:_PASTE_CHARS], tuple(sorted(kinds)))


def _split_lines(text: str, kinds: set[str], paste: list[str]) -> str:
    ask: list[str] = []
    lines = text.split("\n")
    if len(lines) > _LINES:
        lines = lines[: _LINES * 2 // 3] + lines[-_LINES // 3 :]
    fenced = False
    for line in lines:
        if line.lstrip()[:3] in ("```", "~~~"):
            fenced = not fenced
            kinds.add("fence")
        elif fenced:
            paste.append(line)
            _note_kind(line, kinds)
        elif line.strip():
            kind = _kind_of(line)
            if kind:
                kinds.add(kind)
                paste.append(line)
            else:
                ask.append(line)
    return _settle(ask, kinds, paste)


def _settle(ask: list[str], kinds: set[str], paste: list[str]) -> str:
    """A single odd line in prose is no paste; so bullet lists and dialogue stay part of the ask."""
    if len(paste) == 1 and len(ask) >= 3 and kinds <= {"table", "code", "diff"}:
        ask.append(paste.pop())
        kinds.clear()
    return "\n".join(ask)


def _kind_of(line: str) -> str | None:
    found = _line_pattern().match(line[:_LINE_CHARS])
    if found is None:
        return None
    kind = found.lastgroup
    if kind == "diff" and line[0] in "+-" and line[1:2] == " " and line[2:3].isalpha() and not _looks_code(line):
        return None
    return kind


def _looks_code(line: str) -> bool:
    return line.rstrip()[-1:] in ";{}()," or "=" in line or "_" in line


def _note_kind(line: str, kinds: set[str]) -> None:
    kind = _kind_of(line)
    if kind:
        kinds.add(kind)


def _take_inline(ask: str, kinds: set[str], paste: list[str]) -> str:
    def swap(found: re.Match[str]) -> str:
        inner = found[0][1:-1]
        paste.append(inner)
        kinds.add("tick" if found[0][0] == "`" else "said")
        return " ` " if found[0][0] == "`" else ' " '

    return _INLINE.sub(swap, ask)


class Mask(NamedTuple):
    """A part of a message that was set apart: where it stands, and as what."""

    span: tuple[int, int]
    kind: str


def masks(text: str) -> list[Mask]:
    """What `view` sets apart in bounded text, in order; lines next to each other of one kind are one part."""
    found: list[Mask] = []
    at, fenced = 0, False
    for line in text.split("\n") if "\n" in text else ():
        fence = line.lstrip()[:3] in ("```", "~~~")
        kind = "fence" if fence or fenced else _kind_of(line) if line.strip() else None
        fenced = fenced is not fence
        if kind:
            _join(found, Mask((at, at + len(line)), kind))
        at += len(line) + 1
    if found and len(found) == 1 and found[0].kind in ("table", "code", "diff") and not view(text).kinds:
        found = []
    taken = list(found)
    for match in _INLINE.finditer(text):
        if not any(start < match.end() and match.start() < end for (start, end), _ in taken):
            found.append(Mask(match.span(), "tick" if match[0][0] == "`" else "said"))
    return sorted(found)


def _join(found: list[Mask], mask: Mask) -> None:
    if found and found[-1].kind == mask.kind and found[-1].span[1] + 1 == mask.span[0]:
        mask = Mask((found.pop().span[0], mask.span[1]), mask.kind)
    found.append(mask)
