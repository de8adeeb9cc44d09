"""Turns a workflow, its profile and an SLO into a plan: PGP and what it is compared with."""
