"""Finding and repairing what a run without a ledger executed more than once."""
