"""payonce."""
