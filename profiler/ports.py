"""Which ports a function takes for itself: two that take the same one cannot share a sandbox."""

from __future__ import annotations

import re
from collections.abc import Sequence

from profiler.handler_run import HandlerRun

_PORT = re.compile(r"\bsin6?_port=htons\((\d+)\)")


def ports(runs: Sequence[HandlerRun]) -> tuple[int, ...]:
    """The ports that any of `runs` bound; port 0, which is any free one, is none."""
    bound = {
        int(match[1])
        for run in runs
        for strand in run.strands
        for call in strand.calls
        if call.name == "bind" and (match := _PORT.search(call.arguments))
    }
    return tuple(sorted(bound - {0}))
