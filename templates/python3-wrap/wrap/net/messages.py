"""The messages between processes and wraps: calls (tasks and objects) and results.

The socket to a worker and the HTTP body to another wrap carry the same frames; between processes,
large objects are in shared memory. Each object is a frame of its own, never inside JSON and never a
pickle. If a store has the object, the header has its name and the frame is empty.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, cast

from wrap.core.program import Key
from wrap.functions.process_state import Changes
from wrap.net.framing import Frame, Unsent
from wrap.observe.gil_probe import Tick
from wrap.observe.trace_context import TraceContext
from wrap.values.quick_json import encoded
from wrap.values.shared_memory import Shared
from wrap.values.value import Object, received


class Watch(NamedTuple):
    """What to measure of handlers, and to report beside their answers."""

    #: When they ran, and for how long they waited for a core.
    traced: bool = False
    #: Also the ticks of the probe.
    probed: bool = False
    #: Also the speed of their core: the time of the CPU-speed probe right before and after.
    cpu_probed: bool = False
    #: Also their changes to the state that their process shares.
    observed: bool = False
    #: Also the most memory that their process had unshared.
    weighed: bool = False


#: Nothing is measured.
UNWATCHED = Watch()
#: The numbers of executions; each server begins at a random number.
_NUMBERS = count(int.from_bytes(os.urandom(7), "big"))


@dataclass(frozen=True)
class Ident:
    """An execution in one wrap.

    Results carry its `number`, so that they are not taken for those of another execution. `mark` is
    the prefix of lines that are printed meanwhile; empty for no prefix. `trace` is the trace that
    the request is part of, if any.
    """

    watch: Watch = UNWATCHED
    mark: str = ""
    number: int = field(default_factory=lambda: next(_NUMBERS))
    trace: TraceContext | None = None

    @property
    def is_exported(self) -> bool:
        """Whether its tasks become spans of a trace."""
        return self.trace is not None and self.trace.is_exported


@dataclass(frozen=True)
class Request:
    """Tasks that a process or a wrap is to run for an execution."""

    ident: Ident
    #: A group of tasks; the receiver decides their order.
    tasks: Sequence[int]
    #: The inputs from elsewhere that the receiver lacks, by task; None is the request.
    objects: dict[Key, Object]
    #: The tasks whose outputs to send back.
    gives: frozenset[int] = frozenset()
    #: How many tasks of this execution the receiver will be called for later.
    rest: int = 0
    #: Whether nothing else can run in the receiver meanwhile.
    alone: bool = False
    process: int = 0
    #: Whether streams are read while being written.
    live: bool = False
    #: Whether the client gets the answering task's output piece by piece.
    piecewise: bool = False

    def frames(self) -> list[Unsent]:
        """Return the frames for another wrap: a header, then every distinct object once."""
        unsent = [(key, *each.described()) for key, each in self.objects.items()]
        objects = [(key, *described) for key, described, _ in unsent]
        return [self._header(objects), *(frame for _, _, frame in unsent)]

    def frames_within(self) -> list[Unsent | Shared]:
        """Return the frames for another process of this wrap."""
        objects = [(key, *each.said()) for key, each in self.objects.items()]
        return [self._header(objects), *(each.unsent_within() for each in self.objects.values())]

    def _header(self, objects: Sequence[tuple[Any, ...]]) -> Unsent:
        ident = self.ident.watch, self.ident.mark, self.ident.number, self.ident.trace
        more = self.rest, self.alone, self.process, self.live, self.piecewise
        return encoded_header((*ident, self.tasks, objects, list(self.gives), *more))

    @classmethod
    def read(cls, frames: Iterator[Frame | Shared]) -> Request | None:
        """Read the next request of a stream of frames; None if the stream ends or breaks off."""
        try:
            watch, mark, number, trace, tasks, named, *more = decoded_header(next(frames))
            gives, rest, alone, process, live, piecewise = more
            objects = {
                None if key is None else int(key): received(next(frames), described)
                for key, *described in named
            }
        except StopIteration:
            return None
        return cls(
            Ident(Watch(*watch), str(mark), int(number), trace and _trace(*trace)),
            [int(task) for task in tasks],
            objects,
            frozenset(int(task) for task in gives),
            int(rest),
            bool(alone),
            int(process),
            bool(live),
            bool(piecewise),
        )


def _trace(
    trace_id: str, parent_id: str, flags: int, state: str, is_exported: bool
) -> TraceContext:
    return TraceContext(str(trace_id), str(parent_id), int(flags), str(state), bool(is_exported))


@dataclass
class Result:
    """The outcome of one task: its output if that was requested, or its error.

    Times are in seconds of the monotonic clock.

    `asked` is when its process was requested, `ready` when the process had the request. Both are
    None unless this was the process's first request of the execution. The next fields are set on
    request. `delayed`: seconds that the handler's thread waited for a core. `cpu`: CPU time of its
    process and of ended child processes. `processes_mib`: the most memory that one of these
    processes had. `runtime_mib`: the part that another language's runtime takes without any
    function. `own_mib`: the most unshared memory of its process. `ticks`: those of the probe.
    `cpu_probe`: the times of the CPU-speed probe right before and after. `changes`: the function's
    changes to shared state. `writes` is when it began to write its answer. `reads` is the interval
    in which it read its streams, if these were complete before. `emitted` is the name of an output
    that the task gave before its end, and wrote from `started` on. An output for buckets has a
    `place`, the number of earlier outputs of the task there. Its `group` is the group that it was
    given.
    """

    number: int
    task: int
    function: str
    wrap: str
    process: int
    started: float
    ended: float
    output: Object | None = None
    error: dict[str, Any] | None = None
    asked: float | None = None
    ready: float | None = None
    delayed: float | None = None
    cpu: float | None = None
    processes_mib: float | None = None
    runtime_mib: float | None = None
    own_mib: float | None = None
    ticks: list[Tick] | None = None
    cpu_probe: tuple[float, float] | None = None
    emitted: str | None = None
    writes: float | None = None
    reads: tuple[float, float] | None = None
    place: int | None = None
    group: str | None = None
    changes: Changes | None = None

    def frames(self) -> list[Unsent]:
        """Return the frames for another wrap: a header and the output, empty if there is none."""
        if self.output is None:
            return [self._header(None), ""]
        described, frame = self.output.described()
        return [self._header(described), frame]

    def frames_within(self) -> list[Unsent | Shared]:
        """Return the frames for another process of this wrap."""
        if self.output is None:
            return [self._header(None), ""]
        return [self._header(self.output.said()), self.output.unsent_within()]

    def _header(self, output: list[Any] | None) -> Unsent:
        fields = vars(self) | {"output": output}
        return encoded_header(list(fields.values()))

    @classmethod
    def read(cls, frames: Sequence[Frame | Shared]) -> list[Result]:
        """Return the results of a list of frames, two frames each."""
        results = []
        for header, content in zip(frames[::2], frames[1::2], strict=True):
            result = cls(*decoded_header(header))
            if result.output is not None:
                result.output = received(content, cast(list[Any], result.output))
            results.append(result)
        return results

    def shifted(self, seconds: float) -> None:
        """Move all times from another machine's clock to this one's."""
        self.started += seconds
        self.ended += seconds
        self.asked = None if self.asked is None else self.asked + seconds
        self.ready = None if self.ready is None else self.ready + seconds
        self.writes = None if self.writes is None else self.writes + seconds
        if self.reads is not None:
            self.reads = (self.reads[0] + seconds, self.reads[1] + seconds)


#: Headers are lists of fields in order, which takes half the time of fields with names.
_JSON = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_DECODER = json.JSONDecoder()


def encoded_header(fields: Sequence[Any]) -> Unsent:
    """Return a list of fields as a frame."""
    try:
        return encoded(fields)
    except (TypeError, ValueError):  # halves of surrogate pairs, subclasses of texts and numbers
        return _JSON(fields)


def decoded_header(header: Frame | Shared) -> list[Any]:
    """Return the fields of a header. Raises ValueError or TypeError if it is none."""
    text = header.text() if isinstance(header, Shared) else str(header, "utf-8")
    fields, _ = _DECODER.raw_decode(text)
    if not isinstance(fields, list):
        raise TypeError("a header that is no list")
    return fields
