"""Checkpoints that leave the machine: by a run, into files, to commands, to a timestamp authority; and the settings."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from payonce.ledger.protocol import LedgerInfo
from payonce.service import batchfile, trailing_settings
from payonce.service.batchfile_check import BatchFileError
from payonce.service.trailing_run import Checkpoints
from payonce.trail.checkpoint import Checkpoint, Signed, load, sign
from payonce.trail.keys import new_key, save
from payonce.trail.publish import ToAuthority, ToCommand, ToFile, ToOutput, publish

KEY = new_key("payonce/test")
BATCH_FILE = """
[batch]
id = "b"
operation = "refund"
input = "in.csv"
[item]
id = "id"
[provider]
kind = "simulator"
"""


def signed(size: int = 5) -> Signed:
    """Any checkpoint."""
    return sign(Checkpoint("payonce/test", size, bytes(32)), [KEY])


def test_a_file_takes_one_after_the_other(tmp_path: Path) -> None:
    """And all of them are read back, signatures checked."""
    place = ToFile(tmp_path / "kept.txt")
    for size in (5, 6):
        assert not publish(signed(size), [place], show=str)
    assert [s.checkpoint.size for s in load(place.path, [KEY.verifier]).signed] == [5, 6]


def test_a_command_gets_it_on_standard_input(tmp_path: Path) -> None:
    """With size and origin in its environment."""
    script = f'cat > "{tmp_path}/$PAYONCE_TRAIL_SIZE.txt"'
    assert not publish(signed(), [ToCommand(("sh", "-c", script))], show=str)
    assert (tmp_path / "5.txt").read_text() == str(signed())


@pytest.mark.parametrize(
    "place",
    [ToCommand(("false",)), ToCommand(("no-such-program",)), ToFile(Path("/no/such/folder/x"))],
)
def test_what_could_not_be_published_is_said_and_nothing_more(place: ToCommand | ToFile) -> None:
    """One sentence, no exception; the other places still get it."""
    shown: list[str] = []
    assert len(publish(signed(), [place, ToOutput()], show=shown.append)) == 1
    assert shown == [str(signed())]


class Growing:
    """A trail that grows while it is watched."""

    def __init__(self) -> None:
        self.events = 10

    async def info(self) -> LedgerInfo:
        return LedgerInfo("test", "memory:", 1, self.events, bytes(32).hex(), False, True, True)


def test_a_run_makes_checkpoints_on_the_way_and_at_its_end(tmp_path: Path) -> None:
    """After so many events, and one when it is over, whatever it was."""

    async def run() -> Checkpoints:
        ledger = Growing()
        made = Checkpoints(KEY, 100, (ToFile(tmp_path / "kept.txt"),))
        async with made.beside(ledger):
            ledger.events = 250
            await asyncio.sleep(1.5)
            ledger.events = 260
        return made

    assert not asyncio.run(run()).warnings
    kept = load(tmp_path / "kept.txt", [KEY.verifier]).signed
    assert [s.checkpoint.size for s in kept] == [250, 260]


def test_without_a_key_there_are_no_checkpoints(tmp_path: Path) -> None:
    """With the ledger's own, they go beside it and where the batch file says."""
    (tmp_path / "b.toml").write_text(BATCH_FILE + '[trail]\npublish = "out.txt"\n')
    settings = trailing_settings.read(batchfile.load(tmp_path / "b.toml"))
    url = f"sqlite:{tmp_path / 'payonce.db'}"
    assert Checkpoints.of(url, settings) is None
    save(KEY, tmp_path / "payonce.db.key")
    made = Checkpoints.of(url, settings)
    assert made is not None
    assert made.places == (ToFile(tmp_path / "out.txt"), ToFile(tmp_path / "payonce.db.checkpoints"))


def test_the_settings_are_read(tmp_path: Path) -> None:
    """Every form of publish, relative to the batch file."""
    text = 'payloads = "full"\nhide = ["a.b"]\nkey = "k"\ncheckpoint_every = 7\n'
    text += 'publish = ["f", "-", {file = "g"}, {command = ["c", "d"]}, {timestamp = "https://t.example"}]\n'
    (tmp_path / "b.toml").write_text(f"{BATCH_FILE}[trail]\n{text}")
    found = trailing_settings.read(batchfile.load(tmp_path / "b.toml"))
    assert (found.payloads.keep, found.payloads.hide, found.checkpoint_every) == ("full", ("a.b",), 7)
    assert found.key == str(tmp_path / "k")
    assert found.publish == (
        ToFile(tmp_path / "f"),
        ToOutput(),
        ToFile(tmp_path / "g"),
        ToCommand(("c", "d")),
        ToAuthority("https://t.example", tmp_path / "timestamps"),
    )


@pytest.mark.parametrize(
    "wrong",
    [
        "publish = 5",
        'publish = {command = "x"}',
        "publish = [{}]",
        'payloads = "some"',
        "checkpoint_every = 0",
        "x = 1",
    ],
)
def test_wrong_settings_are_refused_by_name(tmp_path: Path, wrong: str) -> None:
    """With the line."""
    (tmp_path / "b.toml").write_text(f"{BATCH_FILE}[trail]\n{wrong}\n")
    with pytest.raises(BatchFileError, match=r"trail\."):
        trailing_settings.read(batchfile.load(tmp_path / "b.toml"))


CONFIG = """
[tsa]
default_tsa = tsa1
[tsa1]
serial = {folder}/serial
signer_digest = sha256
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1
ess_cert_id_alg = sha256
"""


class Authority(BaseHTTPRequestHandler):
    """A timestamp authority: openssl behind HTTP."""

    folder: ClassVar[Path]

    def do_POST(self) -> None:
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        (self.folder / "q.tsq").write_bytes(asked)
        reply = "-config tsa.cnf -queryfile q.tsq -signer tsa.crt -inkey tsa.key -out a.tsr"
        subprocess.run(["openssl", "ts", "-reply", *reply.split()], cwd=self.folder, check=True, capture_output=True)
        self.send_response(200)
        self.end_headers()
        self.wfile.write((self.folder / "a.tsr").read_bytes())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def authority(tmp_path: Path) -> Iterator[str]:
    """Its address."""
    if shutil.which("openssl") is None:
        pytest.skip("this machine has no openssl to play the authority")
    folder = Authority.folder = tmp_path / "tsa"
    folder.mkdir()
    (folder / "serial").write_text("01\n")
    (folder / "tsa.cnf").write_text(CONFIG.format(folder=folder))
    make = "req -x509 -newkey rsa:2048 -nodes -keyout tsa.key -out tsa.crt -days 2 -subj /CN=tsa"
    extra = ["-addext", "extendedKeyUsage=critical,timeStamping"]
    subprocess.run(["openssl", *make.split(), *extra], cwd=folder, check=True, capture_output=True)
    server = HTTPServer(("127.0.0.1", 0), Authority)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_an_authority_timestamps_a_checkpoint(authority: str, tmp_path: Path) -> None:
    """The files it leaves verify with openssl and the authority's certificate."""
    folder = tmp_path / "timestamps"
    assert not publish(signed(), [ToAuthority(authority, folder)], show=str)
    check = f"ts -verify -data {folder}/5.txt -in {folder}/5.tsr -CAfile {Authority.folder}/tsa.crt"
    done = subprocess.run(["openssl", *check.split()], capture_output=True, text=True, check=True)
    assert "OK" in done.stdout + done.stderr
    assert (folder / "5.txt").read_text() == str(signed())


def test_an_authority_that_answers_something_else_is_told(authority: str, tmp_path: Path) -> None:
    """An answer for another checkpoint is none for this one."""
    from payonce.trail.timestamp import refusal

    folder = tmp_path / "timestamps"
    publish(signed(), [ToAuthority(authority, folder)], show=str)
    answer = (folder / "5.tsr").read_bytes()
    assert refusal(answer, digest=bytes(32), nonce=b"\1" * 8) == "the answer is about something else"
    assert refusal(b"", digest=bytes(32), nonce=b"\1" * 8) == "the answer is no timestamp"
    assert refusal(b"\x30\x05\x30\x03\x02\x01\x02", digest=bytes(32), nonce=b"\1" * 8) is not None
    assert len(publish(signed(), [ToAuthority("http://127.0.0.1:9", folder)], show=str)) == 1
