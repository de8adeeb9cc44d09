"""Measures deployments against each other and against their predictions."""
