"""The simulator bites: each deliberately broken variant of payonce is caught by a world."""

from __future__ import annotations

import pytest

from payonce.testing.simulator import World
from tests.simulation.mutants import MUTANTS, REVERTED
from tests.simulation.seeds import SEEDS


@pytest.mark.parametrize("name", SEEDS)
def test_the_mutant_is_caught(name: str) -> None:
    """By the world whose seed is known to show it, which is sound without it. Those that put a fault back that payonce once
    had prove its mending."""
    with MUTANTS[name].make():
        assert World(SEEDS[name]).run().violations


def test_what_shows_mutants_is_sound_without_them() -> None:
    """A world that always complains would catch everything; and what was mended stays so."""
    for seed in sorted(set(SEEDS.values())):
        assert World(seed).run().violations == ()


def test_every_mutant_has_its_world() -> None:
    """None is without, no seed is of a variant that is gone, and there are at least twenty, besides those of old faults."""
    assert set(SEEDS) == set(MUTANTS)
    assert len(set(SEEDS) - set(REVERTED)) >= 20
