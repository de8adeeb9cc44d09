"""Handlers of the functions that are measured; each file is copied to where it runs."""
