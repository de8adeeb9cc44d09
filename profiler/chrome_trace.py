"""A profile as a trace that Perfetto and chrome://tracing show: a row for each function."""

from __future__ import annotations

import json

from workflow.profile import Profile


def chrome_trace(profile: Profile) -> str:
    """The trace: one complete event (``"ph": "X"``) for each period, times in microseconds."""
    events: list[dict[str, object]] = [
        {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": profile.workflow}}
    ]
    for thread, (name, function) in enumerate(profile.functions.items(), start=1):
        about: dict[str, object] = {"pid": 1, "tid": thread}
        events.append(about | {"ph": "M", "name": "thread_name", "args": {"name": name}})
        events += [
            about
            | {
                "ph": "X",
                "name": period.syscall or period.kind,
                "cat": period.kind,
                "ts": round(period.start_ms * 1000, 3),
                "dur": round(period.duration_ms * 1000, 3),
            }
            for period in function.periods
        ]
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n"
