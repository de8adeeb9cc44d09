"""Predicts the latency of a plan by a simulation, with equations (1)-(4) as a special case."""
