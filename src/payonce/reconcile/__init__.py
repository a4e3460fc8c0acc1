"""Comparing a batch with the provider's own account of what it billed."""
