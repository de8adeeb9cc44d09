"""Executions over several wraps: who coordinates, who takes part, what survives."""
