"""Solve the predictor's equations for its constants, from the latencies of no-op plans.

Each constant is a difference of times, so the time that all plans have in common cancels out. The
prediction of a no-op plan then equals its measurement. Each mechanism computes its own constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import Any

from chiron.predictor.mechanisms import MECHANISMS
from chiron.profiler.noop_shapes import LASTING, NUMEROUS, PROCESSES, REMOTES, STAGES, few, many
from chiron.workflow.platform import Idle, Platform

#: The plans that are also measured with no-ops that do not pause.
BRIEF = frozenset({"one", "remote-few"})
#: The plans also measured with functions that compute at once: a worker may be woken on the main
#: process's core, so that one process waits for the other.
WORKING = frozenset(few(name) for name, each in MECHANISMS.items() if each.lasting)

#: What `chiron.profiler.noop_handler.short_release_ms` is where it cannot be measured. Linux leaves
#: a thread that computes in the kernel on its core for longer than this.
SHORT_RELEASE_MS = 0.1
#: The constants that no plan of calibration shows: see `Platform.assumed`.
ASSUMED = ("process_first_block_ms", "process_compute_ms")


@dataclass(frozen=True)
class Interpreter:
    """The GIL of the functions' CPython, and the time of a no-op handler in it."""

    switch_interval_ms: float
    switch_cost_ms: float
    noop_ms: float
    #: Whether it has one.
    gil: bool = True
    #: See `chiron.workflow.platform.Platform`; None if it could not be measured.
    short_release_ms: float | None = None


@dataclass(frozen=True)
class Seen:
    """The measurements of a no-op plan, in milliseconds."""

    #: The client's latency, if the no-ops pause.
    latency_ms: float
    #: The same without pauses; nan for plans that are not in `BRIEF` and not `numerous`.
    brief_ms: float
    #: The begin of the first function in each process of the entry wrap, from the arrival of the
    #: request at the wrap.
    begins_ms: tuple[float, ...]
    #: The same if the functions compute at once; empty for plans that are not in `WORKING`.
    working_begins_ms: tuple[float, ...]
    #: The time of the last function to end, summed over stages; and the time from its end until the
    #: client has the answer.
    last_ms: float
    tail_ms: float

    def slower(self, factor: float) -> Seen:
        """Return these measurements with computing `factor` times as long, and pauses unchanged."""
        return Seen(
            latency_ms=self.last_ms + (self.latency_ms - self.last_ms) * factor,
            brief_ms=self.brief_ms * factor,
            begins_ms=tuple(begin_ms * factor for begin_ms in self.begins_ms),
            working_begins_ms=tuple(begin_ms * factor for begin_ms in self.working_begins_ms),
            last_ms=self.last_ms,
            tail_ms=self.tail_ms * factor,
        )


def platform(
    seen: Mapping[str, Seen],
    interpreter: Interpreter,
    *,
    name: str,
    cpus: int,
    one_node: bool = False,
) -> Platform:
    """Return the platform on which no-op plans take as long as measured.

    `seen` has each plan of `chiron.profiler.noop_shapes`; of the `numerous` plans, only `brief_ms`
    counts.

    Source: Chiron (SC'23), equations (1)-(4).
    """
    one = seen["one"]
    # Equation (3), existing processes: each further process costs T_IPC.
    ipc = _slope(seen[few(LASTING)].latency_ms, seen[many(LASTING)].latency_ms, PROCESSES - 2)
    # Equation (2): remote wrap k starts (k - 1) T_INV late and costs T_RPC.
    invoke = _slope(seen["remote-few"].latency_ms, seen["remote-many"].latency_ms, REMOTES - 1)
    sending = [
        (seen[plan].begins_ms[0] - one.begins_ms[0]) / calls
        for plan, calls in (("remote-few", 1), ("remote-many", REMOTES))
    ]
    each_ms = _slope(one.brief_ms, seen["wide"].brief_ms, NUMEROUS - 1)
    item_ms = _slope(one.brief_ms, seen["map"].brief_ms, NUMEROUS - 1)
    switch_cost, thread_startup = _threads(each_ms, interpreter)
    own_ms, short_ms = thread_startup + switch_cost, interpreter.short_release_ms
    brief, pausing = _rested(seen, interpreter.noop_ms, own_ms, invoke)
    own: dict[str, Any] = {name: _rounded(ms) for name, ms in brief.items()} | {
        constant: _rounded(value)
        for label, each in MECHANISMS.items()
        if few(label) in seen
        for constant, value in each.constants(
            *(one, seen[few(label)], seen.get(many(label), seen[few(label)])), PROCESSES - 2, ipc
        ).items()
    }
    return Platform(
        format=1,
        name=name,
        cpus=cpus,
        one_node=one_node,
        gil=interpreter.gil,
        idle={name: _rounded(most_ms - max(0.0, brief[name])) for name, most_ms in pausing.items()},
        invoke_ms=_rounded(invoke),
        send_ms=_rounded(sum(sending) / len(sending)),
        instance_ms=_rounded(item_ms - interpreter.noop_ms - own_ms),
        ipc_ms=_rounded(ipc),
        thread_startup_ms=_rounded(thread_startup),
        switch_interval_ms=interpreter.switch_interval_ms,
        switch_cost_ms=_rounded(switch_cost),
        short_release_ms=SHORT_RELEASE_MS if short_ms is None else short_ms,
        assumed=(
            *ASSUMED,
            *(["short_release_ms"] if short_ms is None else []),
            *(["contention_overhead"] if cpus == 1 else []),
        ),
        **own,
    )


def _rested(
    seen: Mapping[str, Seen], noop_ms: float, own_ms: float, invoke_ms: float
) -> tuple[dict[Idle, float], dict[Idle, float]]:
    """Return the costs in ms of a request, a stage and a call: in a row, and after a pause.

    A no-op takes `noop_ms`, and its thread `own_ms`. Each further call of a stage begins
    `invoke_ms` later than the previous call.
    """
    one, remote = seen["one"], seen["remote-few"]
    # Equation (1): a further stage costs T_stage and its own time without calls and forks.
    chain, stages = seen["chain"], seen["stages"]
    costs_ms = _slope(one.latency_ms - one.last_ms, stages.latency_ms - stages.last_ms, STAGES - 1)
    brief: dict[Idle, float] = {
        "request_ms": one.brief_ms - noop_ms - own_ms,
        "stage_ms": _slope(one.brief_ms, chain.brief_ms, NUMEROUS - 1) - noop_ms - own_ms,
        "rpc_ms": remote.brief_ms - one.brief_ms - invoke_ms,
    }
    pausing: dict[Idle, float] = {
        "request_ms": one.latency_ms - one.last_ms - own_ms,
        "stage_ms": costs_ms - own_ms,
        "rpc_ms": remote.latency_ms - one.latency_ms - invoke_ms,
    }
    return brief, pausing


def spread(parts: Sequence[Platform]) -> dict[str, tuple[float, float]]:
    """Return the quartiles of every constant that differs between `parts`, of one place."""
    found = {}
    constants = [name for name in Platform.model_fields if name.endswith("_ms")]
    for constant in constants:
        values = [value for part in parts if (value := getattr(part, constant)) is not None]
        if len({*values}) > 1:
            low, _, high = quantiles(values, n=4, method="inclusive")
            found[constant] = (round(low, 4), round(high, 4))
    return found


def _threads(each_ms: float, interpreter: Interpreter) -> tuple[float, float]:
    """Return the costs of one change of the GIL's holder and of starting one thread.

    A further no-op thread takes `each_ms`: its no-op, its start and the GIL's change to it. The
    cost of the change is limited, so that the start does not cost less than 0.
    """
    own_ms = max(0.0, each_ms - interpreter.noop_ms)
    switch_ms = min(interpreter.switch_cost_ms, own_ms)
    return switch_ms, own_ms - switch_ms


def _slope(few_ms: float, many_ms: float, steps: int) -> float:
    return max(0.0, (many_ms - few_ms) / steps)


def _rounded(milliseconds: float) -> float:
    """Round to a tenth of a microsecond; negative values, caused by noise, become 0."""
    return round(max(0.0, milliseconds), 4)
