"""Streams of bytes between tasks that run at the same time."""
