"""Deliberately broken variants of payonce, each a patch that lasts for a block: what the simulator has to catch.

Nothing in the sources can switch these on. Each says in one line what is broken about it. ``MUTANTS`` holds all of them,
those that undo a fix of something a world once showed among them: ``REVERTED``.
"""

from __future__ import annotations

from tests.simulation.mutants import answers, calls, endings, ledgers, lookups, reverted
from tests.simulation.mutants.registry import MUTANTS, Mutant

REVERTED = reverted.NAMES
RARE = reverted.RARE

__all__ = ["MUTANTS", "RARE", "REVERTED", "Mutant", "answers", "calls", "endings", "ledgers", "lookups", "reverted"]
