"""A text file as pieces of whole lines, decoded exactly, with the digest of the bytes that were read.

An encoding is declared, marked at the start of the file, or UTF-8; it is never guessed. Bytes that do not fit stay
recognisable in the text (as lone surrogates), so that each row that holds one can be named.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from payonce.intake.encodings import EncodingFault, agreed, foreign
from payonce.intake.report import Fatal, Report

CHUNK: Final = 1 << 18
# A line of this many characters is a sign of a file that has no lines.
LONGEST_LINE: Final = 1 << 26


@dataclass(frozen=True, slots=True)
class Segment:
    """Some whole lines, the last of a file perhaps without its end. ``line`` is the first one's number.

    ``doubtful``: holds NUL characters or bytes that could not be decoded, so each row must be looked at.
    """

    text: str
    line: int
    doubtful: bool


def open_regular(path: Path, report: Report) -> IO[bytes]:
    """Opens a file for reading. Raises Fatal where there is none, it is no regular file or may not be read."""
    try:
        if not path.is_file():
            code = "not_a_file" if path.exists() else "input_missing"
            what = "is not a file" if path.exists() else "does not exist"
            raise Fatal(report.make(code, f"{path.name} {what}; check {report.named_in}"))
        return path.open("rb")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise Fatal(report.make("unreadable", f"{path.name} cannot be read: {why}")) from None


class RawFile:
    """The bytes of a file, read once from start to end, with their SHA-256. Notices a file that changes meanwhile."""

    def __init__(self, path: Path, report: Report) -> None:
        self.path = path
        self._report = report
        self._file = open_regular(path, report)
        self._digest = hashlib.sha256()
        self._before = os.fstat(self._file.fileno())

    def chunks(self, size: int = CHUNK) -> Iterator[bytes]:
        """All bytes in pieces. Raises Fatal where they cannot be read or the file was written to meanwhile."""
        with self._file:
            try:
                while data := self._file.read(size):
                    self._digest.update(data)
                    yield data
                after = os.fstat(self._file.fileno())
            except OSError as error:
                raise Fatal(
                    self._report.make("unreadable", f"{self.path.name} cannot be read: {error.strerror}")
                ) from None
            if (after.st_size, after.st_mtime_ns) != (self._before.st_size, self._before.st_mtime_ns):
                raise Fatal(
                    self._report.make("input_changed", f"{self.path.name} was changed while it was read; start again")
                )

    @property
    def digest(self) -> str:
        """The SHA-256 of what was read so far, in hex."""
        return self._digest.hexdigest()


class TextFile:
    """The lines of a text file. ``encoding`` None: as its byte order mark says, UTF-8 without one."""

    def __init__(self, path: Path, report: Report, *, encoding: str | None) -> None:
        self._raw = RawFile(path, report)
        self._report = report
        self._declared = encoding
        self.encoding = ""
        self._lines = 1

    @property
    def digest(self) -> str:
        """The SHA-256 of the file's bytes, once all segments were taken."""
        return self._raw.digest

    def segments(self) -> Iterator[Segment]:
        """All lines in pieces of some thousand. Raises Fatal where the file is empty, of another kind or undecodable."""
        chunks = self._raw.chunks()
        first = next(chunks, b"")
        decoder, first = self._start(first)
        carry = ""
        for data in _chain(first, chunks):
            text = carry + self._decode(decoder, data)
            # A carriage return at the very end may be half of a line's end.
            cut = max(text.rfind("\n"), text.rfind("\r", 0, -1)) + 1
            carry = text[cut:]
            if len(carry) > LONGEST_LINE:
                raise Fatal(
                    self._report.make(
                        "line_too_long",
                        f"line {self._lines} is longer than {LONGEST_LINE} characters",
                        line=self._lines,
                    )
                )
            if cut:
                yield self._segment(text[:cut])
        carry += self._decode(decoder, b"", final=True)
        if carry:
            yield self._segment(carry)

    def _segment(self, text: str) -> Segment:
        doubtful = "\0" in text or not _encodable(text)
        segment = Segment(text, self._lines, doubtful)
        self._lines += count_lines(text)
        return segment

    def _start(self, first: bytes) -> tuple[codecs.IncrementalDecoder, bytes]:
        if not first:
            raise Fatal(self._report.make("empty_file", f"{self._raw.path.name} is empty; there is nothing to do"))
        known = foreign(first)
        if known is not None:
            what, fix = known
            raise Fatal(self._report.make("wrong_format", f"{self._raw.path.name} is {what}, not text; {fix}", line=1))
        try:
            self.encoding, mark = agreed(self._declared, first)
        except EncodingFault as fault:
            raise Fatal(self._report.make(fault.code, fault.message, line=1)) from None
        # Wide encodings have no byte that could stand alone: there the first fault ends the reading.
        errors = "strict" if self.encoding.startswith(("utf-16", "utf-32")) else "surrogateescape"
        return codecs.getincrementaldecoder(self.encoding)(errors), first[mark:]

    def _decode(self, decoder: codecs.IncrementalDecoder, data: bytes, *, final: bool = False) -> str:
        try:
            return decoder.decode(data, final)
        except UnicodeError as error:
            found = first_bad_byte(self._raw.path, self.encoding)
            where = f"byte 0x{found[1]:02X} at offset {found[0]} is not {self.encoding}" if found else str(error)
            raise Fatal(
                self._report.make("bad_encoding", f"{where} (line {self._lines} or after)", line=self._lines)
            ) from None


def _chain(first: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from rest


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def count_lines(text: str) -> int:
    """How many lines end in a text, as editors count them: LF, CR LF and CR alone each end one."""
    if "\r" not in text:
        return text.count("\n")
    return text.count("\n") + text.count("\r") - text.count("\r\n")


def split_lines(text: str) -> list[str]:
    """The lines of a text with their ends, split as ``count_lines`` counts them."""
    if text.count("\r") != text.count("\r\n"):
        return list(io.StringIO(text, newline=""))
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def first_bad_byte(path: Path, encoding: str) -> tuple[int, int] | None:
    """The offset and value of the first byte of a file that its encoding does not know, None if there is none."""
    decoder = codecs.getincrementaldecoder(encoding)("strict")
    offset = 0
    with path.open("rb") as file:
        while True:
            data = file.read(CHUNK)
            # What the decoder keeps back from the chunk before is part of the bytes an error counts from.
            kept = len(decoder.getstate()[0])
            try:
                decoder.decode(data, final=not data)
            except UnicodeDecodeError as error:
                return offset - kept + error.start, error.object[error.start]
            except UnicodeError:
                return None
            if not data:
                return None
            offset += len(data)
