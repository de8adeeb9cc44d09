"""Handlers of the measured functions; each file is copied into the function's folder."""
