"""The state of a simulation: all of its memory."""

from __future__ import annotations

from typing import NamedTuple

from chiron.predictor.records import Records

#: No thread (no holder, no waiter), and no activity of a thread.
NONE = -1
#: Steps before a thread's own periods: it is started, and holds the GIL for an instant.
BEFORE = 2
#: States of a forked process: the fork still computes, or is complete.
BEING_FORKED, FORKED = 1, 2
#: State of a node: its objects are sent.
SENT = -1


class State(NamedTuple):
    clock: Records
    periods: Records
    functions: Records
    groups: Records
    wraps: Records
    processes: Records
    threads: Records
    nodes: Records
    links: Records
    slots: Records
    replicas: Records
    blocked: Records  # heap by time: threads, nodes to fire, calls to compute
    computing: Records  # for each group a heap by virtual time: computing without a GIL
    holding: Records  # processes whose GIL is held, sorted
    active: Records  # groups with runnable threads
    spans: Records
    requests: Records
    factors: Records  # for each draw the slowdown of computing; then a ratio for each task
