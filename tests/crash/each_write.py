"""Each write and each fsync of a whole run is the first that fails: ``python -m tests.crash.each_write sqlite sync EIO``.

A run of twelve items is started again and again on a new ledger; each time the next call of its kind fails, and all after
it (or it alone: ``--once``), from making the ledger to leaving it. ``--everywhere`` lets the calls for all files of the
folder fail, the spool, the marks and temporary files too. Then everything works again, and the same command must finish:
nothing executed twice by a provider that ignores keys, nothing lost, no internal error, the ledger sound.
"""

from __future__ import annotations

import argparse
import errno
import json
import os
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from payonce.ledger.connect import connect
from tests.crash.harness import Job, Provider
from tests.crash.shim import Shim
from tests.crash.torture_child import fork

ITEMS = 12
FILES = {"sqlite": "payonce.db", "jsonl": "payonce.jsonl"}
_BASE = "PAYONCE_EACH_WRITE"
# A failing call that is no fault of the run (of a mark, of a checkpoint that is made up for) is met now and then; so many
# in a row that end well mean that the run has no more of them.
_ENOUGH = 6


@dataclass
class Sweep:
    """One store, one kind of call, one error."""

    store: str
    call: str
    error: str
    base: Path
    once: bool = False
    everywhere: bool = False
    ends: Counter[tuple[int, str | None]] = field(default_factory=Counter)
    bad: list[str] = field(default_factory=list)

    def run(self, provider: Provider) -> int:
        """Goes through all calls; returns how many failed."""
        shim, point, well = Shim(self.base / "shim.so", self.base / "fails"), 0, 0
        while well < (_ENOUGH if self.once or self.everywhere else 1):
            point += 1
            well = well + 1 if self._point(provider, shim, point) == 0 else 0
        return point - well

    def _point(self, provider: Provider, shim: Shim, point: int) -> int:
        folder = self.base / f"point-{point}"
        folder.mkdir()
        provider.post("/_sim/reset", {})
        job = Job(folder, provider.url, ITEMS, keys=False, concurrency=3, max_execution="50ms", timeout="300ms")
        job.ledger, job.limits = f"{self.store}:{folder / FILES[self.store]}", {"lease": "1s"}
        job.env = {"XDG_STATE_HOME": str(folder / "state"), "TMPDIR": str(folder), **shim.env}
        job.write()
        part = str(folder) if self.everywhere else str(folder / FILES[self.store])
        shim.fails(self.call, getattr(errno, self.error), part, first=point, count=1 if self.once else 0)
        code, said = self._child(job, "first")
        shim.mend()
        again, said_again = self._child(job, "second")
        self.ends[code, _code_in(said)] += 1
        faults = [text for text in (said, said_again) if "internal_error" in text or "Traceback" in text]
        faults += self._faults(job, provider, code, again)
        if faults:
            self.bad.append(f"point {point}, kept in {folder}: {faults}")
        else:
            shutil.rmtree(folder)
        return code

    def _child(self, job: Job, name: str) -> tuple[int, str]:
        log = self.base / f"{name}.log"
        args = ["run", str(job.folder / "batch.toml"), "--json", "--no-reconcile"]
        code = fork(args, folder=job.folder, env=job.environment(), log=log, file_limit=None).wait(60)
        return code, log.read_text()

    def _faults(self, job: Job, provider: Provider, code: int, again: int) -> list[str]:
        found = []
        if code not in (0, 2, 3) or again != 0:
            found.append(f"ended with {code}, then with {again}")
        executed = provider.executed()
        if len(executed) != ITEMS or set(executed.values()) != {1}:
            found.append(f"executed {executed}")
        ledger = connect(job.ledger, create=False, read_only=True)
        try:
            found += ledger.check()
        finally:
            ledger.close()
        return found + [f"left {path}" for path in job.folder.rglob("*.spool")]


def _code_in(said: str) -> str | None:
    """The code of the fault that ended a run."""
    last = said.strip().splitlines()[-1:]
    try:
        document = json.loads(last[0]) if last else {}
    except ValueError:
        return None
    code = document.get("reason_code") or document.get("error", {}).get("code")
    return None if code is None else str(code)


def main() -> int:
    """The command line. Exit code 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("store", choices=list(FILES))
    parser.add_argument("call", choices=["write", "sync"])
    parser.add_argument("error", choices=["EIO", "ENOSPC", "EROFS"])
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--everywhere", action="store_true")
    args = parser.parse_args()
    if _BASE not in os.environ:  # once more, with the library in front of the C library's
        base = Path(tempfile.mkdtemp(prefix="payonce-each-write-"))
        env = os.environ | Shim.built(base).env | {_BASE: str(base)}
        os.execve(sys.executable, [sys.executable, "-m", "tests.crash.each_write", *sys.argv[1:]], env)
    base = Path(os.environ[_BASE])
    sweep = Sweep(args.store, args.call, args.error, base, args.once, args.everywhere)
    provider = Provider.start(base, latency="5ms", keys="ignored")
    try:
        failed = sweep.run(provider)
    finally:
        provider.close()
    ends = ", ".join(
        f"{code} {said or ''}".strip() + f": {count}" for (code, said), count in sorted(sweep.ends.items(), key=str)
    )
    print(f"{args.store}: {failed} places where a {args.call} fails, {len(sweep.bad)} wrong; ended with {ends}")
    print("".join(f"  {line}\n" for line in sweep.bad), end="")
    if not sweep.bad:
        shutil.rmtree(base, ignore_errors=True)
    return 1 if sweep.bad else 0


if __name__ == "__main__":
    sys.exit(main())
