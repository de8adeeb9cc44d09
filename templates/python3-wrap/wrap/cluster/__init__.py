"""Executions over several wraps: coordinator, participants, offload, and durable buckets."""
