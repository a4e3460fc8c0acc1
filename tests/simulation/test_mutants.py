"""The simulator bites: each deliberately broken variant of payonce is caught by a world."""

from __future__ import annotations

import pytest

from payonce.testing.simulator import World
from tests.simulation.mutants import MUTANTS
from tests.simulation.seeds import SEEDS


@pytest.mark.parametrize("name", SEEDS)
def test_the_mutant_is_caught(name: str) -> None:
    """By the world whose seed is known to show it, which is sound without it (see test_worlds for others)."""
    with MUTANTS[name].make():
        assert World(SEEDS[name]).run().violations


def test_what_shows_mutants_is_sound_without_them() -> None:
    """A world that always complains would catch everything."""
    for seed in sorted(set(SEEDS.values())):
        assert World(seed).run().violations == ()


def test_there_are_enough() -> None:
    """At least twenty with a world that shows them, and no seed of a variant that is gone."""
    assert len(SEEDS) >= 20
    assert set(SEEDS) <= set(MUTANTS)
