"""The HTTP face of a wrap."""
