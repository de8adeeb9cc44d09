"""Further processes: how they are forked, called, and ended."""
