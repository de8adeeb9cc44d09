"""Two tasks in one function: to return as much text as is asked for, and to count it.

The tasks themselves cost nothing: the import makes the text.
"""

TEXTS = {str(size): "x" * size for size in (1, 1_000, 1_000_000, 10_000_000, 100_000_000)}
#: A longer request is a text to count; a look-up would hash all of it.
_LONGEST = max(map(len, TEXTS))


def handle(req: str) -> str:
    """Return as much text as `req`, a number of `TEXTS`, asks for; else the length of `req`."""
    return TEXTS[req] if len(req) <= _LONGEST and req in TEXTS else str(len(req))
