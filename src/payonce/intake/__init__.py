"""Input files and queries to validated items, or a list of everything that is wrong with them. Sends nothing."""

from payonce.intake.difference import Changed, Difference, compare
from payonce.intake.inputs import read, source_digest, source_name
from payonce.intake.report import Counts, Ignored, Log, Note
from payonce.intake.result import Intake
from payonce.intake.settings import Expect, FileFormat, InputSettings, ItemColumns, OnDuplicate, Query
from payonce.intake.tables import SettingFault, read_format, read_item, read_source

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
