"""The reference is complete: every command, option, state, exit code, error code and setting stands in it."""

from __future__ import annotations

import re
from pathlib import Path

import click
import msgspec
import pytest

import payonce
from payonce.cli.common import LazyGroup, common_options
from payonce.cli.main import cli
from payonce.core.states import TRANSITIONS, BatchState, ItemState, Settlement
from payonce.intake import tables as intake_tables
from payonce.providers import settings as http_settings
from payonce.providers.simulator import behaviours
from payonce.providers.simulator.faults import Kind
from payonce.service import batchfile_tables
from tests.docs.codes import codes

DOCS = Path(__file__).parents[2] / "docs"
README = DOCS.parent / "README.md"


def text(name: str) -> str:
    return (DOCS / "reference" / f"{name}.md").read_text(encoding="utf-8")


def named(name: str) -> set[str]:
    """Everything that stands in backticks on a page, words of it included."""
    return {
        word for quoted in re.findall(r"`([^`\n]+)`", text(name)) for word in (quoted, *re.split(r"[ ,=]+", quoted))
    }


def sections() -> dict[str, str]:
    """The commands page by its headings."""
    parts = re.split(r"^## (.+)$", text("commands"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def all_commands(group: LazyGroup = cli, path: str = "") -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        assert command is not None
        words = f"{path} {name}".strip()
        found |= all_commands(command, words) if isinstance(command, LazyGroup) else {words: command}
    return found


@pytest.mark.parametrize("name", all_commands())
def test_every_command_and_option_is_documented(name: str) -> None:
    """Each command has a section, each of its own options a row in it."""
    section = sections()[name]
    shared = {option.name for option in common_options()} | {"help"}
    for param in all_commands()[name].params:
        if isinstance(param, click.Option) and param.name not in shared:
            assert f"`{param.opts[0]}`" in section, f"{name} {param.opts[0]}"


def test_the_page_documents_no_command_that_is_not_there() -> None:
    """A command that went has no section."""
    assert set(sections()) - {"Options of every command"} == set(all_commands())


def test_the_common_options_are_documented() -> None:
    """Once, for all commands."""
    for option in common_options():
        assert all(f"`{name}" in sections()["Options of every command"] for name in option.opts)


def test_every_state_is_documented() -> None:
    """Of items, of batches, of settlements."""
    found = named("states")
    assert {state.value for kind in (ItemState, BatchState, Settlement) for state in kind} <= found


def test_the_transition_table_is_the_programs() -> None:
    """Row for row: no edge is missing and none is made up."""
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| `(\w+)` \|$", text("states"), flags=re.MULTILINE)
    assert set(rows) == {(before.value, event.value, after.value) for (before, event), after in TRANSITIONS.items()}


@pytest.mark.parametrize("page", [README, DOCS / "reference" / "exit-codes.md"], ids=lambda path: path.name)
def test_every_exit_code_is_documented(page: Path) -> None:
    """The six of the contract, and no other."""
    rows = re.findall(r"^\| (\d+) \|", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert rows == ["0", "1", "2", "3", "4", "75"]


def test_every_code_is_documented() -> None:
    """Each stable code that the sources can say."""
    missing = {code: place for code, place in codes().items() if code not in named("errors")}
    assert not missing


def settings() -> set[str]:
    structs = [*batchfile_tables.TABLES.values()]
    structs += [
        struct
        for struct in vars(http_settings).values()
        if isinstance(struct, type) and issubclass(struct, msgspec.Struct) and struct is not msgspec.Struct
    ]
    found = {field.encode_name for struct in structs for field in msgspec.structs.fields(struct)}
    return found | set(intake_tables._INPUT) | set(intake_tables._ITEM) | {"kind", "function", "url"}


def test_every_setting_of_a_batch_file_is_documented() -> None:
    """Of every table, those of the HTTP provider included."""
    assert settings() <= named("batch-file") | {"user", "password"}


def test_every_table_of_a_batch_file_is_documented() -> None:
    """By its heading."""
    for table in (*batchfile_tables.TABLES, *batchfile_tables.RAW_TABLES):
        assert f"[{table}]" in text("batch-file")


def test_every_behaviour_of_the_simulator_is_documented() -> None:
    """Each setting and each fault."""
    found = named("simulator")
    assert set(behaviours._CONFIG) <= found
    assert {kind.value for kind in Kind} <= found


def test_every_public_name_is_documented() -> None:
    """Everything that ``import payonce`` offers."""
    assert set(payonce.__all__) <= named("python")


def test_links_lead_somewhere() -> None:
    """Every relative link of every page is a file."""
    pages = [README, *DOCS.rglob("*.md")]
    broken = [
        f"{page.name}: {target}"
        for page in pages
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
        if not (page.parent / target).exists()
    ]
    assert not broken
