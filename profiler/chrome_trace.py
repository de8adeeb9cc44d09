"""A profile as a trace for Perfetto and chrome://tracing: a row for each function."""

from __future__ import annotations

import json

from chiron.workflow.chrome_trace import complete, document, name
from chiron.workflow.profile import Profile

_PID = 1


def chrome_trace(profile: Profile) -> str:
    """Return the trace: one complete event (``"ph": "X"``) per period, times in microseconds."""
    events = [name("process_name", _PID, 0, profile.workflow)]
    for row, (function, profiled) in enumerate(profile.functions.items(), start=1):
        events.append(name("thread_name", _PID, row, function))
        for period in profiled.periods:
            end_ms = period.start_ms + period.duration_ms
            what = period.syscall or period.kind
            events.append(complete(what, period.kind, _PID, row, period.start_ms, end_ms))
    return json.dumps(document(events)) + "\n"
