"""The pure core: money, keys, states, outcomes, decisions. No I/O, no clock, no randomness, no logging."""
