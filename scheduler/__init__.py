"""Turns a workflow, its profile and an SLO into a plan: PGP and its baselines."""
