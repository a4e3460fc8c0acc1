"""Input files and queries to validated items, or a list of everything that is wrong with them. Sends nothing.

Names are imported when they are first used: a command that only needs a batch file's settings loads no reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from payonce.core.lazily import names_of

if TYPE_CHECKING:
    from payonce.intake.difference import Changed, Difference, compare
    from payonce.intake.inputs import read, source_digest, source_name
    from payonce.intake.report import Counts, Ignored, Log, Note
    from payonce.intake.result import Intake
    from payonce.intake.settings import Expect, FileFormat, InputSettings, ItemColumns, OnDuplicate, Query
    from payonce.intake.tables import SettingFault, read_format, read_item, read_source

_HOMES = {
    "payonce.intake.difference": ("Changed", "Difference", "compare"),
    "payonce.intake.inputs": ("read", "source_digest", "source_name"),
    "payonce.intake.report": ("Counts", "Ignored", "Log", "Note"),
    "payonce.intake.result": ("Intake",),
    "payonce.intake.settings": ("Expect", "FileFormat", "InputSettings", "ItemColumns", "OnDuplicate", "Query"),
    "payonce.intake.tables": ("SettingFault", "read_format", "read_item", "read_source"),
}

__all__ = [
    "Changed",
    "Counts",
    "Difference",
    "Expect",
    "FileFormat",
    "Ignored",
    "InputSettings",
    "Intake",
    "ItemColumns",
    "Log",
    "Note",
    "OnDuplicate",
    "Query",
    "SettingFault",
    "compare",
    "read",
    "read_format",
    "read_item",
    "read_source",
    "source_digest",
    "source_name",
]

__getattr__, __dir__ = names_of(__name__, _HOMES)
