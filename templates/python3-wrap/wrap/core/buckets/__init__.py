"""Buckets that outlive executions, their triggers, and what they fire. All modules are pure."""
