"""The configuration of a wrap: its spec, its settings, its sandbox."""
