"""The key and the header with which a client requests timelines from wraps."""

from __future__ import annotations

import secrets

_HEADER = "X-Chiron-Trace"
#: A wrap's variable with the key, which all wraps of a build share.
KEY_VARIABLE = "chiron_trace_key"
#: The annotation with the key, for clients with the gateway's credentials: some providers do not
#: report a function's variables.
KEY_ANNOTATION = "chiron.trace-key"


def new_key() -> str:
    """Return a random key for a new build."""
    return secrets.token_hex(16)


def trace_header(key: str, more: str = "") -> dict[str, str]:
    """Return a traced request's header; `more` is empty, probe, cpu-speed, state or memory."""
    return {_HEADER: f"{key} {more}".rstrip()}
