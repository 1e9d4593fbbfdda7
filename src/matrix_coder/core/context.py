"""The conversation as the host holds it: earlier blocks out of it, this turn's block into a request.

The host stores what a turn injected beside the clean text (`api_content`) and sends it again with every
later turn; so what was added must be taken out again, from the host's own message objects.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping, Sequence
from typing import cast

from .marks import GAP, OPENING, without_blocks
from .turns import Message, Turn

Key = Callable[[], bytes]


def text_of(content: object) -> str:
    """The plain text of a message's content: a string, or the text parts of a list."""
    if isinstance(content, str):
        return content
    return "\n".join(str(holder[name]) for holder, name in _text_places({"content": content}))


def scrub(history: Sequence[Message], key: Key) -> tuple[str, ...]:
    """Takes this plugin's blocks out of the messages; returns the user texts that hold something like one."""
    pasted = []
    for message in history:
        clean, sent = message.get("content"), message.get("api_content")
        if isinstance(clean, str) and OPENING in clean and message.get("role") == "user":
            pasted.append(clean)
        if isinstance(sent, str) and OPENING in sent:
            _scrub_one(message, sent, clean if isinstance(clean, str) else "", key)
    return tuple(pasted)


def _scrub_one(message: Message, sent: str, clean: str, key: Key) -> None:
    rest = without_blocks(sent, key=key(), clean=clean)
    if rest == clean:
        del message["api_content"]
    elif rest != sent:
        message["api_content"] = rest


def current_message(history: Sequence[Message], said: str) -> Message | None:
    """The host's message object for this turn's user text.

    It is the last one, but for a history that was compressed just before: there it is the last one with
    this text, or else the last of the user.
    """
    users = [m for m in history if m.get("role") == "user"]
    if not users or text_of(users[-1].get("content")).endswith(said):
        return users[-1] if users else None
    same = [m for m in users if m.get("content") == said]
    return same[-1] if same else users[-1]


def carriers(history: Sequence[Message], current: Message | None) -> tuple[Message, ...]:
    """The messages that the turn's text may be sent from: the current one, or the first of the unanswered
    ones right before it, which the host joins into one."""
    if current is None:
        return ()
    end: list[Message] = []
    for message in reversed(history):
        if message.get("role") != "user":
            break
        if message is not current:
            end.append(message)
    return (*reversed(end), current)


def rewritten(request: MutableMapping[str, object], turn: Turn | None, key: Key) -> bool:
    """Makes a request hold the turn's block once and no other one; whether that changed it."""
    items = [m for m in _items(request) if m.get("role") == "user"]
    block = turn.block if turn else None
    pasted = turn.pasted if turn else ()
    changed, present = False, False
    for item in items:
        for holder, name in _text_places(item):
            text = str(holder[name])
            if OPENING in text:
                rest = without_blocks(
                    text, key=key(), clean=_pasted_start(text, pasted), keep=block.head if block else ""
                )
                changed, holder[name] = changed or rest != text, rest
                present = present or (block is not None and block.head in rest)
    if turn is not None and block is not None and not present:
        changed = _added(items, turn, block.text) or changed
        stamp(turn)
    return changed


def stamp(turn: Turn) -> None:
    """Gives the block to the stored message that this turn's text is sent from.

    A joined message has lost what was to be sent in its place; the request for a summary at the
    iteration limit is built from it without passing any middleware.
    """
    for message in turn.carriers:
        content = message.get("content")
        if turn.block is None or not isinstance(content, str) or "api_content" in message:
            continue
        if content == turn.user_text or content.endswith(GAP + turn.user_text):
            message["api_content"] = content + GAP + turn.block.text
            return


def _items(request: MutableMapping[str, object]) -> list[Message]:
    for name in ("messages", "input"):
        found = request.get(name)
        if isinstance(found, list):
            return [cast("Message", m) for m in found if isinstance(m, dict)]
    return []


def _text_places(item: Message) -> Iterator[tuple[MutableMapping[str, object], str]]:
    """Each place of a message that holds text, as a mapping and a key of it."""
    content = item.get("content")
    if isinstance(content, str):
        yield item, "content"
    elif isinstance(content, list):
        for part in content:
            if isinstance(part, dict) and isinstance(part.get("text"), str):
                yield part, "text"


def _pasted_start(text: str, pasted: Sequence[str]) -> str:
    return max((p for p in pasted if text.startswith(p)), key=len, default="")


def _added(items: Sequence[Message], turn: Turn, block: str) -> bool:
    """Appends the block to the message that holds the turn's text, or else to the last of the user."""
    holders = [i for i in items if turn.user_text and turn.user_text in text_of(i.get("content"))]
    target = (holders or list(items))[-1:]
    for item in target:
        content = item.get("content")
        if isinstance(content, list):
            kinds = [p.get("type") for p in content if isinstance(p, dict) and "text" in p]
            item["content"] = [*content, {"type": kinds[0] if kinds else "text", "text": block}]
        else:
            item["content"] = f"{content or ''}{GAP}{block}"
    return bool(target)
