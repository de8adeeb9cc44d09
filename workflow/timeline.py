"""What a request did when, predicted or measured: the one form of it, from the wraps to reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator

from chiron.workflow.data import text_of
from chiron.workflow.documents import Document
from chiron.wrap.values.in_json import from_json

#: What a process or a thread may do in the course of a task.
Activity = Literal["cpu", "native", "block", "wait-gil", "started", "join", "helper", "await"]
Kind = Literal["task", "emit", "start", "transfer", "gather"] | Activity


class Span(Document):
    """A stretch of time that something took, in milliseconds since the client's request.

    Attributes:
        kind: ``task``: a task's handler, from its begin to its end. ``emit``: an ``output`` that a
            task gave before its end, while it wrote that; only measured. ``start``: a process or a
            thread was started, and could not run yet. ``transfer``: what a task waited for, a call
            or objects, was on its way to ``wrap``. ``gather``: the engine of ``wrap`` collected
            results; only predicted. Only predicted is also what a task does: it computes with the
            GIL (``cpu``) or without (``native``), is blocked (``block``), waits for the GIL
            (``wait-gil``), for a thread that it has started (``started``), for threads and
            processes of its function (``join``), which compute beside it (``helper``), or for the
            other end of a stream (``await``).
        wrap, process: where; processes are numbered by their places in the plan, and 0 is the main
            process. What is on its way to a wrap has no process.
        task, function: of which task, and measured also of which function. Of a workflow that
            decides while it runs, NAME#2 is the second run of NAME.
        output: the name of what was emitted.
        wait_core_ms: how much of it passed because others had the cores.
        cpu_ms, processes_mib: measured of a task: CPU time of its process, and of those that it
            started and that ended; the most memory that one of these has had.
        runtime_mib: what of that a process of another runtime takes without any function.
        own_mib: the most memory that its process has had and shared with no other, where a client
            asked for that.
        error: measured of a task: the code and the message with which it failed, of a workflow that
            went on nevertheless.
        writes_ms, reads_ms: measured of a task: when it began to write what it answers, piece by
            piece; from when to when it read streams that had been written.
        ticks, cpu_probe_ms: what the probe of the GIL and the CPU-speed probe saw, where a client
            asked for them: see `chiron.profiler.probe_run.read_ticks` and
            `chiron.profiler.cpu_speed`.
        changes: what a task's function changes of what its process shares, where a client asked for
            that: in runs; at its import, where that can be taken back; and at its import in all
            processes.
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
        """How long it took."""
        return self.end_ms - self.start_ms

    def later(self, by_ms: float) -> Span:
        """The same by a clock that began `by_ms` earlier."""
        moved: dict[str, Any] = {"start_ms": self.start_ms + by_ms, "end_ms": self.end_ms + by_ms}
        if self.writes_ms is not None:
            moved["writes_ms"] = self.writes_ms + by_ms
        if self.reads_ms is not None:
            moved["reads_ms"] = (self.reads_ms[0] + by_ms, self.reads_ms[1] + by_ms)
        return self.model_copy(update=moved)


class Timeline(Document):
    """One request to a workflow, or to one of its wraps that the client calls by itself.

    ``arrived_ms`` is when the wrap had the request, ``latency_ms`` when the client had the answer;
    in what a wrap tells, its clock begins with the former. A prediction has all of the request's
    own way, there and back, before ``arrived_ms``; where the client calls wraps by themselves, each
    call is a transfer, and ``arrived_ms`` is 0. ``spans`` are in order of beginning. ``cores``
    says of a prediction how many cores each wrap could use.
    """

    format: Literal[1] = 1
    workflow: str
    source: Literal["measured", "predicted"]
    arrived_ms: float = 0.0
    latency_ms: float
    spans: tuple[Span, ...]
    cores: dict[str, int] = Field(default_factory=dict)

    def of_kind(self, *kinds: Kind) -> list[Span]:
        """Its spans of some kinds."""
        return [span for span in self.spans if span.kind in kinds]

    @property
    def tasks(self) -> list[Span]:
        """When its tasks ran."""
        return self.of_kind("task")

    def seen_by_client(self, begun_ms: float, latency_ms: float) -> Timeline:
        """What a wrap tells, by the clock of a client whose call began at `begun_ms`.

        The wrap's clock starts when it has the request: half of what is not inside of it.
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

    #: As `chiron.workflow.data` has it.
    output: Annotated[str, PlainValidator(lambda value: text_of(from_json(value)))]
    content_type: str = ""
    timeline: Timeline


def in_order(spans: Iterable[Span]) -> tuple[Span, ...]:
    """`spans` as a timeline has them."""
    return tuple(sorted(spans, key=lambda span: (span.start_ms, span.end_ms)))
