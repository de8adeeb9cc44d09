"""Streams of objects: buckets that outlive executions, their triggers, and what fires; all pure."""
