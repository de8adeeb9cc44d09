"""The HTTP interface of a wrap."""
