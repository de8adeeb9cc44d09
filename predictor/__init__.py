"""Predicts the latency of a plan: GIL simulation of threads, equations (1)-(4) above it."""
