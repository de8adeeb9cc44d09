"""The timeline of a request, predicted or measured: one format, from the wraps to reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from chiron.workflow.data import text_of
from chiron.workflow.documents import Document
from chiron.wrap.values.in_json import from_json

#: The activities of a process or a thread during a task.
Activity = Literal["cpu", "native", "block", "wait-gil", "started", "join", "helper", "await"]
Kind = Literal["task", "emit", "start", "transfer", "gather"] | Activity


class Span(Document):
    """A time span of an activity, in milliseconds since the client's request.

    Attributes:
        kind: ``task``: a task's handler, from its begin to its end. ``emit``: a task wrote an
            ``output`` emitted before its end; only measured. ``start``: a process or a thread was
            started, and could not run yet. ``transfer``: a call or objects that a task waited for
            were on their way to ``wrap``. ``gather``: the engine of ``wrap`` collected results;
            only predicted. The activities of a task are only predicted, too. It computes with the
            GIL (``cpu``) or without (``native``), or is blocked (``block``). It waits for the GIL
            (``wait-gil``), or for a thread that it started (``started``). It waits for threads and
            processes of its function (``join``), which compute beside it (``helper``), or for the
            other end of a stream (``await``).
        wrap, process: the place; processes are numbered by their positions in the plan, and 0 is
            the main process. Transfers have no process.
        task, function: the task, and in measurements also its function. In a state machine, NAME#2
            is the second run of NAME.
        output: the name of the emitted output.
        wait_core_ms: the part of it in which other threads had the cores.
        cpu_ms, processes_mib: measured for a task: CPU time of its process, and of the processes
            that it started and that ended; the peak memory of any of the latter.
        runtime_mib: the part of that which another runtime's process uses without any function.
        own_mib: the peak private memory of its process, which no other process shares, if
            requested.
        error: measured for a task: the code and message of its failure, if the workflow continued.
        writes_ms, reads_ms: measured for a task: the time when it began to write its answer in
            pieces; the begin and end of reading streams that had been written before.
        ticks, cpu_probe_ms: the observations of the GIL probe and the CPU-speed probe, if
            requested: see `chiron.profiler.probe_run.read_ticks` and `chiron.profiler.cpu_speed`.
        changes: the function's changes to process-wide state, if requested: in runs; at its import,
            if they can be undone; and at its import in all processes.
    """

    kind: Kind
    start_ms: float
    end_ms: float
    wrap: str
    process: int | None = None
    task: str | None = None
    function: str | None = None
    output: str | None = None
    wait_core_ms: float = 0.0
    cpu_ms: float | None = None
    processes_mib: float | None = None
    runtime_mib: float | None = None
    own_mib: float | None = None
    error: str | None = None
    writes_ms: float | None = None
    reads_ms: tuple[float, float] | None = None
    ticks: tuple[tuple[Any, ...], ...] | None = None
    cpu_probe_ms: tuple[float, ...] | None = None
    changes: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]] | None = None

    @property
    def duration_ms(self) -> float:
        return self.end_ms - self.start_ms

    def later(self, by_ms: float) -> Span:
        """Return the span by a clock that began `by_ms` earlier."""
        moved: dict[str, Any] = {"start_ms": self.start_ms + by_ms, "end_ms": self.end_ms + by_ms}
        if self.writes_ms is not None:
            moved["writes_ms"] = self.writes_ms + by_ms
        if self.reads_ms is not None:
            moved["reads_ms"] = (self.reads_ms[0] + by_ms, self.reads_ms[1] + by_ms)
        return self.model_copy(update=moved)


class Timeline(Document):
    """One request to a workflow, or to one of its wraps that the client calls separately.

    At ``arrived_ms`` the wrap had the request; at ``latency_ms`` the client had the answer. In a
    wrap's report, its clock begins with the arrival. A prediction places the request's own
    overhead, there and back, before ``arrived_ms``. If the client calls wraps separately, each call
    is a transfer, and ``arrived_ms`` is 0. ``spans`` are in order of beginning. ``cores`` has the
    cores that each wrap could use, in a prediction.
    """

    format: Literal[1] = 1
    workflow: str
    source: Literal["measured", "predicted"]
    arrived_ms: float = 0.0
    latency_ms: float
    spans: tuple[Span, ...]
    cores: dict[str, int] = Field(default_factory=dict)

    def of_kind(self, *kinds: Kind) -> list[Span]:
        """Return the spans of some kinds."""
        return [span for span in self.spans if span.kind in kinds]

    @property
    def tasks(self) -> list[Span]:
        return self.of_kind("task")

    def seen_by_client(self, begun_ms: float, latency_ms: float) -> Timeline:
        """Convert a wrap's report to the clock of a client whose call began at `begun_ms`.

        The wrap's clock starts with the arrival, after half of the time outside of the wrap.
        """
        inside_ms = max((span.end_ms for span in self.spans), default=0.0)
        arrived_ms = begun_ms + max(0.0, latency_ms - inside_ms) / 2
        return self.model_copy(
            update={
                "arrived_ms": arrived_ms,
                "latency_ms": begun_ms + latency_ms,
                "spans": tuple(span.later(arrived_ms) for span in self.spans),
            }
        )


class Traced(Document):
    """A wrap's answer to a traced request."""

    #: A text as in `chiron.workflow.data`.
    output: Annotated[str, PlainValidator(lambda value: text_of(from_json(value)))]
    content_type: str = ""
    timeline: Timeline


def in_order(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return `spans` in a timeline's order."""
    return tuple(sorted(spans, key=lambda span: (span.start_ms, span.end_ms)))
