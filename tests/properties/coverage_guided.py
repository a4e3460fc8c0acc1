"""Fuzzing that follows the code: ``make fuzz SECONDS=600``, with atheris. It judges as the tests beside it do.

Starts from their samples and keeps what reaches new code in ``build/fuzz``. What it finds becomes a test: an input that
breaks something is written to ``build/fuzz`` too, and the traceback says where.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import atheris  # type: ignore[import-not-found]

with atheris.instrument_imports(include=["payonce.reconcile", "payonce.intake", "payonce.providers"]):
    from tests.properties import test_answers_fuzz as answers
    from tests.properties import test_statements_fuzz as statements

from payonce.testing.provider_rig import answer

RIGS = list(answers.RIGS)
SAMPLES = list(statements.SAMPLES)


def one_statement(data: bytes) -> None:
    """The first byte says which reader."""
    if data:
        statements.judge(SAMPLES[data[0] % len(SAMPLES)], data[1:])


def one_answer(data: bytes) -> None:
    """The first two bytes say which adapter, which status and which headers."""
    if len(data) > 1:
        status, headers = (
            answers.STATUSES[data[1] % len(answers.STATUSES)],
            answers.HEADERS[data[1] % len(answers.HEADERS)],
        )
        answers.classify(RIGS[data[0] % len(RIGS)], answer(status, data[2:], **headers))


def seeds(what: str) -> list[bytes]:
    """The samples of the tests."""
    if what == "statements":
        return [bytes([k]) + data for k, (_, data, _, _) in enumerate(statements.SAMPLES.values())]
    return [
        bytes([k, answers.STATUSES.index(found.status) if found.status in answers.STATUSES else 0]) + found.body
        for k, name in enumerate(RIGS)
        for found in answers.known(answers.RIGS[name])
    ]


TARGETS: dict[str, Callable[[bytes], None]] = {"statements": one_statement, "answers": one_answer}


def main() -> None:
    """The command line. Ends with the first input that breaks something, or when the time is over."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=list(TARGETS))
    parser.add_argument("--seconds", type=int, default=300)
    args = parser.parse_args()
    folder = Path("build") / "fuzz" / args.what
    folder.mkdir(parents=True, exist_ok=True)
    for k, data in enumerate(seeds(args.what)):
        (folder / f"seed-{k}").write_bytes(data)
    limits = [f"-max_total_time={args.seconds}", "-max_len=20000", "-rss_limit_mb=1500", "-timeout=60"]
    atheris.Setup([sys.argv[0], str(folder), f"-artifact_prefix={folder}-", *limits], TARGETS[args.what])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
