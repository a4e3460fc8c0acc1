"""The trail: signed checkpoints of the ledger's own events, proofs for outsiders, and finding out who changed what."""
