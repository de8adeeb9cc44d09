"""Executions: does what the rules say, and tells them what happens."""
