"""Standard output and standard error: results go to the first, everything about the way there to the second.

A reader that goes away (``payonce items B | head``) ends the output, never the work.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TextIO

import click

from payonce.cli.common import Common


class Screen:
    """What a command shows. Nothing is written to standard output with ``--json`` but JSON."""

    def __init__(self, common: Common) -> None:
        self.common = common
        self.closed = False

    def document(self, value: Mapping[str, Any]) -> None:
        """One JSON document on a line of its own."""
        import orjson

        self._write(orjson.dumps(value).decode())

    def line(self, text: str = "", *, style: Mapping[str, Any] | None = None) -> None:
        """A line of the result, for people."""
        self._write(click.style(text, **style) if style else text)

    def prose(self, text: str, *, style: Mapping[str, Any] | None = None) -> None:
        """A line of the result in words: on a terminal it is broken between words, under its own beginning."""
        self.line(fitted(self.common.in_their_words(text), stream=sys.stdout), style=style)

    def note(self, text: str) -> None:
        """A line about the way there; silenced by ``--quiet``."""
        if not self.common.quiet:
            self._aside(self._words(text))

    def detail(self, text: str) -> None:
        """A line that only ``--verbose`` shows."""
        if self.common.verbose and not self.common.quiet:
            self._aside(click.style(text, dim=True))

    def warn(self, text: str) -> None:
        """A line that a person should see even with ``--quiet``."""
        self._aside(click.style("warning: ", fg="yellow") + self._words(text, after="warning: "))

    def error(self, text: str) -> None:
        """What is wrong."""
        self._aside(click.style("error: ", fg="red", bold=True) + self._words(text, after="error: "))

    def complaint(self, where: str, what: str) -> None:
        """One of several things that are wrong."""
        self._aside(self._words(f"  {where}: {what}" if where else f"  {what}"))

    def next_step(self, text: str) -> None:
        """What to do next."""
        self._aside(click.style("  next: ", bold=True) + self._words(text, after="  next: "))

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]], *, right: Sequence[int] = ()) -> None:
        """Aligned columns; those in ``right`` (from 0) are aligned to the right."""
        cells = [list(header), *(list(row) for row in rows)]
        widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
        for number, row in enumerate(cells):
            texts = [
                text.rjust(width) if column in right else text.ljust(width)
                for column, (text, width) in enumerate(zip(row, widths, strict=True))
            ]
            self.line("  ".join(texts).rstrip(), style={"dim": True} if number == 0 else None)

    @property
    def interactive(self) -> bool:
        """Whether a person can be asked: terminals on both sides and no ``--json``."""
        return sys.stdin.isatty() and sys.stderr.isatty() and not self.common.json

    def close_output(self) -> None:
        """The reader of standard output is gone: what follows goes nowhere."""
        if self.closed:
            return
        self.closed = True
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError:
            pass  # there is no real standard output (a test's), so nothing is left to protect

    def _words(self, text: str, *, after: str = "") -> str:
        return fitted(after + self.common.in_their_words(text), stream=sys.stderr)[len(after) :]

    def _write(self, text: str) -> None:
        if self.closed:
            return
        try:
            click.echo(text, color=self.common.color)
        except BrokenPipeError:
            self.close_output()

    def _aside(self, text: str) -> None:
        try:
            click.echo(text, err=True, color=self.common.color)
        except BrokenPipeError:
            pass  # nobody reads the notes; the work goes on


def fitted(text: str, *, stream: TextIO) -> str:
    """A text broken between words to a terminal's width; as it is elsewhere, where programs read lines."""
    if not stream.isatty():
        return text
    return broken(text, width=shutil.get_terminal_size().columns)


def broken(text: str, *, width: int) -> str:
    """Lines of at most ``width`` columns, the later ones under the text after a label (``guarantee  ...``) or indent."""
    label = re.match(r"\s*(?:\S+ {2,}|(?:next|error|warning|look around): )?", text)
    indent = min(label.end() if label else 0, width // 2)
    lines = [
        textwrap.fill(line, width=width, subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False)
        if len(line) > width
        else line
        for line in text.splitlines()
    ]
    return "\n".join(lines)


def confirmed(question: str, *, kept: str) -> None:
    """Asks on the terminal. Raises UsageError, saying what was ``kept`` as it is, unless the answer is yes."""
    if not click.confirm(question, err=True):
        from payonce.core.errors import UsageError

        raise UsageError(kept, code="not_confirmed", hint="--yes does not ask")
