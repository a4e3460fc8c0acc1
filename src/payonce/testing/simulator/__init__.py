"""Whole simulated worlds, each from one seed: the real engine over simulated time, network, provider, store and people.

``World(seed).run()`` gives a verdict; ``python -m payonce.testing.simulator`` (or ``make simulate``) runs many.
"""

from payonce.testing.simulator.world import Verdict, World

__all__ = ["Verdict", "World"]
