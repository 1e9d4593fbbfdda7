"""A run's report, laid out in a terminal."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Markdown
from rich.text import Text


class Output(CodeBlock):
    """What a check has printed: as it was printed, so that rulers and columns of a full width stay on their lines."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Text(str(self.text).rstrip(), no_wrap=True, overflow="ignore")


class Report(Markdown):
    """Markdown as rich lays it out, but for outputs."""

    elements = {**Markdown.elements, "fence": Output, "code_block": Output}  # noqa: RUF012 - as rich declares it
