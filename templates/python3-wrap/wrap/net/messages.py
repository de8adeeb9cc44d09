"""What processes and wraps say to each other: calls (tasks and objects) and results.

The same frames cross the socket to a further process and the HTTP body to another wrap, but that
large objects are in shared memory between processes. Objects are frames of their own, never inside
JSON and never pickles. Of one that a store has, the header has the name, and its frame is empty.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, cast

import msgspec

from wrap.core.program import Key
from wrap.functions.process_state import Changes
from wrap.net.framing import Frame, Unsent
from wrap.observe.gil_probe import Tick
from wrap.observe.trace_context import TraceContext
from wrap.values.shared_memory import Shared
from wrap.values.value import Object, received


class Watch(NamedTuple):
    """What is to be told of handlers beside their answers."""

    #: When they ran, and for how long they had no core.
    traced: bool = False
    #: Also the ticks of the probe.
    probed: bool = False
    #: Also how fast their core was: what the CPU-speed probe took right before and after.
    cpu_probed: bool = False
    #: Also what they change of what their process shares.
    observed: bool = False
    #: Also how much memory their process has had by itself.
    weighed: bool = False


#: As usual.
UNWATCHED = Watch()
#: What executions are numbered with: another server's begin elsewhere.
_NUMBERS = count(int.from_bytes(os.urandom(7), "big"))


@dataclass(frozen=True)
class Ident:
    """An execution in one wrap.

    Its results say its `number`: no other is taken for one of them. `mark` is what the lines that
    are printed meanwhile begin with; empty for nothing. `trace` is the trace that its request is
    part of, if it is part of one.
    """

    watch: Watch = UNWATCHED
    mark: str = ""
    number: int = field(default_factory=lambda: next(_NUMBERS))
    trace: TraceContext | None = None

    @property
    def is_exported(self) -> bool:
        """Whether its tasks are spans of a trace."""
        return self.trace is not None and self.trace.is_exported


@dataclass(frozen=True)
class Request:
    """Tasks that a process or a wrap is to run for an execution."""

    ident: Ident
    #: A group: what runs when among them, the place sees for itself.
    tasks: Sequence[int]
    #: What they need from elsewhere that the place has not got yet; None is the request's.
    objects: dict[Key, Object]
    #: The tasks whose objects are to be sent back.
    gives: frozenset[int] = frozenset()
    #: How many tasks the place will be called for later in this execution.
    rest: int = 0
    #: Whether nothing else can run there meanwhile.
    alone: bool = False
    #: The number of the process.
    process: int = 0
    #: Whether streams are read while they are written.
    live: bool = False
    #: Whether the client gets what the task that answers gives piece by piece.
    piecewise: bool = False

    def frames(self) -> list[Unsent]:
        """A header, then every distinct object once, as another wrap gets them."""
        unsent = [(key, *each.described()) for key, each in self.objects.items()]
        objects = [(key, *described) for key, described, _ in unsent]
        return [self._header(objects), *(frame for _, _, frame in unsent)]

    def frames_within(self) -> list[Unsent | Shared]:
        """The same for another process of this wrap."""
        objects = [(key, *each.said()) for key, each in self.objects.items()]
        return [self._header(objects), *(each.unsent_within() for each in self.objects.values())]

    def _header(self, objects: Sequence[tuple[Any, ...]]) -> Unsent:
        return _encode(
            (
                *(self.ident.watch, self.ident.mark, self.ident.number, self.ident.trace),
                *(
                    self.tasks,
                    objects,
                    list(self.gives),
                    self.rest,
                    self.alone,
                    self.process,
                    self.live,
                    self.piecewise,
                ),
            )
        )

    @classmethod
    def read(cls, frames: Iterator[Frame | Shared]) -> Request | None:
        """The next one of a stream of frames; None at its end, or where it breaks off."""
        try:
            watch, mark, number, trace, tasks, named, *more = _decoded(next(frames))
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
    """How one task went: its output where that is wanted, or its error.

    Times are in seconds of the monotonic clock.

    `asked` is when its process was asked for and `ready` when that process had the request; both
    are None for what was not the process's first in the execution. `delayed` is for how many
    seconds the handler's thread had no core, `cpu` the CPU time of its process and of those that it
    started and that ended, `processes_mib` the most memory that one of these ever had,
    `runtime_mib` what of that a process of another runtime takes without any function, `own_mib`
    the most that its process had and shared with no other, `ticks` are those of the probe, and
    `cpu_probe` is what the CPU-speed probe took right before and right after it, `changes` are what
    the function changes of what its process shares; where these were asked for. `writes` is when it
    began to write what it answers, and `reads` is from when to when it read its streams, where
    these were there before. `emitted` is the name of an output that the task gave before its end,
    and wrote from `started` on. One that goes into buckets has a `place`, which is how many the
    task gave there before, and the `group` that it was given.
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
        """A header and the output, empty where there is none, as another wrap gets them."""
        if self.output is None:
            return [self._header(None), ""]
        described, frame = self.output.described()
        return [self._header(described), frame]

    def frames_within(self) -> list[Unsent | Shared]:
        """The same for another process of this wrap."""
        if self.output is None:
            return [self._header(None), ""]
        return [self._header(self.output.said()), self.output.unsent_within()]

    def _header(self, output: list[Any] | None) -> Unsent:
        fields = vars(self) | {"output": output}
        return _encode(list(fields.values()))

    @classmethod
    def read(cls, frames: Sequence[Frame | Shared]) -> list[Result]:
        """The results of a list of frames, two to each."""
        results = []
        for header, content in zip(frames[::2], frames[1::2], strict=True):
            result = cls(*_decoded(header))
            if result.output is not None:
                result.output = received(content, cast(list[Any], result.output))
            results.append(result)
        return results

    def shifted(self, seconds: float) -> None:
        """Move all its times, from another machine's clock to this one's."""
        self.started += seconds
        self.ended += seconds
        self.asked = None if self.asked is None else self.asked + seconds
        self.ready = None if self.ready is None else self.ready + seconds
        self.writes = None if self.writes is None else self.writes + seconds
        if self.reads is not None:
            self.reads = (self.reads[0] + seconds, self.reads[1] + seconds)


#: Headers are lists of fields in their order, which takes half of the time of names with them.
_JSON = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
_MSGSPEC = msgspec.json.Encoder().encode
_DECODER = json.JSONDecoder()


def _encode(fields: Sequence[Any]) -> Unsent:
    try:
        return _MSGSPEC(fields)
    except (TypeError, ValueError):  # halves of surrogate pairs, subclasses of texts and numbers
        return _JSON(fields)


def _decoded(header: Frame | Shared) -> list[Any]:
    text = header.text() if isinstance(header, Shared) else str(header, "utf-8")
    fields, _ = _DECODER.raw_decode(text)
    if not isinstance(fields, list):
        raise TypeError("a header that is no list")
    return fields
