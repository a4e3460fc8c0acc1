"""What a server says of a fault, as payonce tells it: the code decides which next step a person is given."""

from __future__ import annotations

import psycopg
import pytest
from psycopg.pq import DiagnosticField

from payonce.ledger.postgres_errors import translate


def said(kind: type[psycopg.Error], message: str, source: str) -> psycopg.Error:
    """An error as the server sends it, with the place in its sources."""
    fields = {DiagnosticField.MESSAGE_PRIMARY: message.encode(), DiagnosticField.SOURCE_FILE: source.encode()}
    return kind(message, info=fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "message", "code"),
    [
        ("aclchk.c", "permission denied for table events", "ledger_denied"),
        ("md.c", 'could not extend file "base/5/16517": Read-only file system', "ledger_io"),
        ("fd.c", 'could not open file "base/5/16517": Permission denied', "ledger_io"),
    ],
)
def test_a_disk_that_only_reads_is_no_missing_right(source: str, message: str, code: str) -> None:
    """The server uses one SQLSTATE for both; to grant a right would not help against the former."""
    fault = translate(said(psycopg.errors.InsufficientPrivilege, message, source), "server/db")
    assert fault.code == code
    assert message in fault.message
