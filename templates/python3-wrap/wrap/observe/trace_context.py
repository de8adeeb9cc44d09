"""The trace of a request, and the span of a task in it: W3C Trace Context.

References
----------
https://www.w3.org/TR/trace-context/
"""

from __future__ import annotations

import os
import re
from hashlib import blake2b
from typing import NamedTuple

#: Version, trace, parent and flags. Only versions after 00 may have more.
_TRACEPARENT = re.compile(
    r"(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?"
)
#: The known flags: the trace is recorded; its id is random.
_SAMPLED, _KNOWN = 0b01, 0b11
#: A longer ``tracestate`` need not be passed on.
_LONGEST_STATE = 512


class TraceContext(NamedTuple):
    """The trace of a request, from its headers."""

    #: In hexadecimal digits; `parent_id` is empty if the trace begins with the request.
    trace_id: str
    parent_id: str
    flags: int
    #: The ``tracestate``, passed on unchanged.
    state: str = ""
    #: Whether the execution's tasks are spans. If not, they pass on the request's parent.
    is_exported: bool = False

    def span_id(self, execution: int, what: int | str) -> str:
        """Return a span's id, which processes and wraps compute alike without a message."""
        text = f"{self.trace_id} {execution} {what}"
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def headers(self, execution: int, task: int) -> dict[str, str]:
        """Return the headers that the handler of a task is to send with its own requests."""
        parent_id = self.span_id(execution, task) if self.is_exported else self.parent_id
        headers = {"traceparent": f"00-{self.trace_id}-{parent_id}-{self.flags:02x}"}
        return headers | {"tracestate": self.state} if self.state else headers


def given(traceparent: str, tracestate: str) -> TraceContext | None:
    """Return the trace of a request's headers; None if there are none, or they are invalid."""
    found = _TRACEPARENT.fullmatch(traceparent)
    if found is None:
        return None
    version, trace_id, parent_id, flags, more = found.groups()
    if version == "00" and more is not None:
        return None
    plain = len(tracestate) <= _LONGEST_STATE and tracestate.isascii() and tracestate.isprintable()
    return TraceContext(trace_id, parent_id, int(flags, 16) & _KNOWN, tracestate if plain else "")


def checked(told: TraceContext | None) -> TraceContext | None:
    """Validate a trace that a caller may have made up; None if no headers could describe it."""
    if told is None:
        return None
    parent_id = told.parent_id or "f" * 16
    found = given(f"00-{told.trace_id}-{parent_id}-{told.flags:02x}", told.state)
    return found and told._replace(flags=found.flags, state=found.state)


def exported(request: TraceContext | None) -> TraceContext:
    """Return the trace of an exported execution, new if there is none; a caller may decline."""
    if request is None:
        return TraceContext(os.urandom(16).hex(), "", _SAMPLED, is_exported=True)
    return request._replace(is_exported=bool(request.flags & _SAMPLED))
