"""Measures what functions do (profile.json) and what the platform costs (platform.json)."""
