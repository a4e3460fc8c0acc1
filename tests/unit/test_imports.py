"""What is loaded for what: nothing heavy before it is needed, since tasks and commands begin with an import each time."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Heavy libraries, and the rooms of payonce that bring them or a good part of the time.
HEAVY = {"aiohttp", "asyncio", "orjson", "msgspec", "sqlite3", "polars", "jmespath", "cryptography", "click", "rich"}
HEAVY |= {"psycopg", "openpyxl", "pyarrow", "logging", "ssl", "payonce.engine", "payonce.ledger", "payonce.service"}
CASES = {
    # What is run, and what of the heavy ones it may load.
    "import payonce": set[str](),
    "import payonce; payonce.Money('1.00', 'USD')": set[str](),
    "import payonce; payonce.once": {"asyncio", "orjson", "sqlite3", "logging", "ssl"}
    | {"payonce.engine", "payonce.ledger", "payonce.service"},
    "import sys; from payonce.cli.main import main; sys.argv = ['payonce', '--help']; main()": {"click"},
}
# Of the rooms that `once` may enter, what it must not bring along.
NOT_FOR_ONCE = (
    "payonce.intake",
    "payonce.trail",
    "payonce.reconcile",
    "payonce.engine.runner",
    "payonce.providers.http",
)


def loaded(program: str) -> set[str]:
    """The modules that a new interpreter has after a program, however it ends."""
    tell = "import atexit, sys; atexit.register(lambda: print('LOADED', *sys.modules, file=sys.stderr)); "
    done = subprocess.run([sys.executable, "-c", tell + program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return set(done.stderr.rpartition("LOADED")[2].split())


@pytest.mark.parametrize("program", CASES)
def test_nothing_heavy_is_loaded_before_it_is_needed(program: str) -> None:
    """A new interpreter has none of it, but for what the case allows."""
    modules = loaded(program)
    assert "payonce" in modules
    assert {name for name in HEAVY if name in modules} <= CASES[program]


def test_a_guarded_call_loads_no_engine_and_no_readers() -> None:
    """A task that guards one call does not pay for whole batches, input files, HTTP and trails."""
    modules = loaded("import payonce; payonce.once")
    assert not [name for name in modules if name.startswith(NOT_FOR_ONCE)]


@pytest.mark.skipif(sys.platform == "win32", reason="this system does not tell what its children took")
@pytest.mark.parametrize(("command", "most_s"), [(["-c", "import payonce"], 0.06), (["-m", "payonce", "--help"], 0.15)])
def test_a_start_takes_a_moment(command: list[str], most_s: float) -> None:
    """Processor seconds of a new interpreter, the least of five: 60 ms for the package, 150 ms for the help."""
    import resource

    taken = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], stdout=subprocess.DEVNULL, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(taken) < most_s
