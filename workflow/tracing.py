"""How a client has wraps tell what ran when."""

from __future__ import annotations

import secrets

_HEADER = "X-Chiron-Trace"
#: The variable in which a wrap has the key, which those of one build share.
KEY_VARIABLE = "chiron_trace_key"
#: The annotation in which a client with the gateway's credentials finds it: not every provider
#: tells a function's variables.
KEY_ANNOTATION = "chiron.trace-key"


def new_key() -> str:
    """The key of a new build."""
    return secrets.token_hex(16)


def trace_header(key: str, more: str = "") -> dict[str, str]:
    """The header of a traced request; `more` may be ``probe``, ``cpu-speed`` or ``state``."""
    return {_HEADER: f"{key} {more}".rstrip()}
