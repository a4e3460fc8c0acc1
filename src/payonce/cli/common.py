"""The options of every command, accepted before and after its name, and the commands that carry them.

Imported at every start, so it imports nothing but click.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import click

if TYPE_CHECKING:
    from payonce.service.opening import Named


@dataclass(slots=True)
class Common:
    """What the common options said. ``ledger`` is None where neither the option nor PAYONCE_LEDGER names one."""

    ledger: str | None = None
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    color: bool | None = None
    debug: bool = False
    # Set once calls may have been sent: an unforeseen error then must not claim that nothing happened.
    sending: bool = False
    # The batch's id and what the person typed for it: follow-up commands repeat that.
    named: tuple[str, str] | None = None

    def in_their_words(self, text: str) -> str:
        """A text whose commands name the batch as the person did, by its file's path where that was typed."""
        if self.named is None or self.named[0] == self.named[1]:
            return text
        import re
        import shlex

        batch, typed = self.named[0], shlex.quote(self.named[1])
        text = re.sub(
            rf"(payonce (?:trail )?[a-z-]+) {re.escape(batch)}(?=[\s;,]|$)", lambda found: f"{found[1]} {typed}", text
        )
        return text.replace("payonce run BATCH.toml", f"payonce run {typed}")

    @classmethod
    def of_environment(cls) -> Common:
        """The settings before any option: NO_COLOR (any non-empty value) turns colours off."""
        return cls(color=False if os.environ.get("NO_COLOR") else None)


def _store(name: str, stored: object = True) -> Callable[[click.Context, click.Parameter, Any], None]:
    def callback(ctx: click.Context, _: click.Parameter, value: Any) -> None:
        if value:
            setattr(common(ctx), name, value if stored is True else stored)

    return callback


def common(ctx: click.Context) -> Common:
    """The common settings of this invocation."""
    return cast(Common, ctx.find_root().obj)


def common_options() -> list[click.Option]:
    """Fresh options for one command: every command takes all of them."""

    def option(*names: str, **settings: Any) -> click.Option:
        return click.Option(names, expose_value=False, **settings)

    return [
        option(
            "--ledger",
            metavar="URL",
            callback=_store("ledger"),
            help="Which ledger; else PAYONCE_LEDGER, the batch file's, or sqlite:payonce.db.",
        ),
        option("--json", is_flag=True, callback=_store("json"), help="One JSON document on standard output."),
        option("--quiet", "-q", is_flag=True, callback=_store("quiet"), help="No progress and no notes."),
        option("--verbose", "-v", is_flag=True, callback=_store("verbose"), help="More about what happens."),
        option("--no-color", is_flag=True, callback=_store("color", stored=False), help="No colours."),
        option("--debug", is_flag=True, callback=_store("debug"), help="A traceback for unforeseen errors."),
    ]


class PayonceCommand(click.Command):
    """A command that takes the common options too and shows them apart in its help."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params.extend(common_options())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Its own options first, the common ones after."""
        _write_options(self.get_params(ctx), ctx, formatter)


# What people call a command that has another name; compared by letters, "explain" would be taken for "plan".
_MEANT = {
    "explain": "show",
    "history": "show",
    "list": "status",
    "verify": "trail verify",
    "prove": "trail prove",
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used: ``places`` gives module, function and one line of help.

    Listing the commands imports none of them, so that ``--help`` is quick.
    """

    def __init__(self, *args: Any, places: dict[str, dict[str, tuple[str, str]]], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._sections = places
        self._places = {name: place for section in places.values() for name, place in section.items()}
        self.params.extend(common_options())

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order of the table."""
        return list(self._places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, imported now; None where there is none of that name."""
        if cmd_name not in self._places:
            return None
        module, _, function = self._places[cmd_name][0].partition(":")
        return cast(click.Command, getattr(importlib.import_module(module), function))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the nearest name where there is no such command."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self._places:
            from difflib import get_close_matches

            meant = _MEANT.get(name, name)
            near = [meant] if meant.split()[0] in self._places else get_close_matches(name, self._places, n=1)
            advice = f"did you mean {near[0]!r}?" if near else f"{ctx.command_path} --help lists them"
            raise click.UsageError(f"there is no command {name!r}; {advice}", ctx)
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands first: they are what a newcomer looks for."""
        for section, places in self._sections.items():
            with formatter.section(section):
                formatter.write_dl([(name, text) for name, (_, text) in places.items()])
        _write_options(self.get_params(ctx), ctx, formatter)


def _write_options(params: list[click.Parameter], ctx: click.Context, formatter: click.HelpFormatter) -> None:
    everywhere = {option.name for option in common_options()} | {"help", "version"}
    own: list[tuple[str, str]] = []
    shared: list[tuple[str, str]] = []
    for param in params:
        record = param.get_help_record(ctx)
        if record is not None:
            (shared if param.name in everywhere else own).append(record)
    for title, records in (("Options", own), ("Options of every command", shared)):
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def command(name: str, **settings: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Like click.command, with the common options."""
    return click.command(name, cls=PayonceCommand, **settings)


def batch_of(settings: Common, batch: str) -> Named:
    """The batch that an argument means and its ledger; follow-up commands then name it as the person did."""
    from payonce.service.opening import named

    found = named(batch, settings.ledger)
    settings.named = (found.batch, batch)
    return found


def snapshot(ctx: click.Context) -> Common:
    """A copy of the common settings as they are now."""
    return replace(common(ctx))
