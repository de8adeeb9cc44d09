"""The state of a simulation: all memory that it works on."""

from __future__ import annotations

from typing import NamedTuple

from chiron.predictor.records import Records

#: Nobody: no holder, no waiter; and nothing that a thread does.
NONE = -1
#: Before its own periods, a thread is started and has the GIL for an instant.
BEFORE = 2
#: Of a forked process: what forks it has still to compute, or has done so.
BEING_FORKED, FORKED = 1, 2
#: Of a node: it has sent what it had to.
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
    blocked: Records  # a heap by time: threads, nodes that will fire, calls that will compute
    computing: Records  # for every group a heap, by virtual time, of what needs no GIL
    holding: Records  # the processes whose GIL is held, in order
    active: Records  # the groups in which something computes
    spans: Records
    requests: Records
    factors: Records  # by draw, how much slower computing is; then a ratio for each task
