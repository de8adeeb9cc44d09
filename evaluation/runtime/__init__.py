"""Measurements of the wrap runtime's overhead on the path of a request."""
