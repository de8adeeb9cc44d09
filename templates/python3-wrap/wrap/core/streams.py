"""The two ends of each stream: which ends wait, which are in use, and which break off.

A stream has a writer's end and a reader's end. Either task may ask for its end first; the other end
then waits here. A stream from another wrap may arrive before its execution begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Generic, NamedTuple, TypeVar
from weakref import WeakSet


class StreamId(NamedTuple):
    """Identifies a stream: an execution, an output, one reader of it, and the reader's attempt."""

    execution: int
    output: int
    reader: int
    attempt: int = 0


#: An end of a stream.
End = TypeVar("End")


class OpenStreams(Generic[End]):
    """The streams of an execution that runs in this process."""

    def __init__(self, number: int) -> None:
        #: The number of the execution, as `StreamId` has it.
        self.number = number
        #: The ends that tasks of this process use, for as long as the tasks hold references.
        self.in_use: dict[StreamId, WeakSet[End]] = {}
        #: Reader -> its current attempt, for restarted readers. Earlier attempts are over.
        self.since: dict[int, int] = {}

    def is_over(self, stream: StreamId) -> bool:
        """Return whether a stream belongs to an attempt that is over."""
        return stream.attempt < self.since.get(stream.reader, 0)

    def has_begun(self, stream: StreamId) -> bool:
        """Return whether a stream belongs to its reader's current attempt or an earlier attempt."""
        return stream.attempt <= self.since.get(stream.reader, stream.attempt)


#: An execution that runs here.
Running = TypeVar("Running", bound=OpenStreams[Any])


class Broken(NamedTuple, Generic[End]):
    """The ends of streams that break off."""

    #: The ends that no task has asked for.
    waiting: list[End]
    #: The ends that tasks may be blocked on.
    in_use: list[End]


class Streams(Generic[End, Running]):
    """All stream ends of a process, and the executions that may ask for them."""

    def __init__(self) -> None:
        self._waiting: dict[StreamId, End] = {}
        self._running: dict[int, Running] = {}

    @property
    def in_hand(self) -> bool:
        """Whether ends wait for an execution that has not begun here."""
        return any(stream.execution not in self._running for stream in self._waiting)

    def expects(self, execution: int) -> bool:
        """Return whether an execution runs here or has ends that wait for it."""
        waits = any(stream.execution == execution for stream in self._waiting)
        return waits or execution in self._running

    def get(self, execution: int) -> Running | None:
        return self._running.get(execution)

    def is_wanted(self, stream: StreamId) -> bool:
        """Return whether the stream's execution runs and the stream's attempt is not over."""
        running = self._running.get(stream.execution)
        return running is not None and not running.is_over(stream)

    def begin(self, running: Running) -> None:
        """Register an execution; its tasks may now ask for ends."""
        self._running[running.number] = running

    def end(self, running: Running) -> Broken[End]:
        """Unregister an execution and return its ends to break off.

        If the execution has begun again here, streams of later attempts stay.
        """
        if self._running.get(running.number) is running:
            del self._running[running.number]
        return self._break_off(running, running.has_begun)

    def begin_attempt(self, running: Running, readers: Iterable[int], attempt: int) -> Broken[End]:
        """Move `readers` to `attempt`, and return their ends of earlier attempts to break off."""
        running.since.update(dict.fromkeys(readers, attempt))
        return self._break_off(running, running.is_over)

    def add(self, stream: StreamId, end: End) -> bool:
        """Store an end until a task asks for it; return False if its attempt is over."""
        running = self._running.get(stream.execution)
        if running is not None and running.is_over(stream):
            return False
        self._waiting[stream] = end
        return True

    def take(self, stream: StreamId) -> End | None:
        return self._waiting.pop(stream, None)

    def use(self, stream: StreamId, end: End) -> bool:
        """Record that a task uses an end; return False if the attempt is over."""
        running = self._running.get(stream.execution)
        if running is None or running.is_over(stream):
            return False
        running.in_use.setdefault(stream, WeakSet()).add(end)
        return True

    def forget(self, stream: StreamId, end: End) -> bool:
        """Drop a waiting end if its execution has not begun; return whether it was dropped."""
        if stream.execution in self._running or self._waiting.get(stream) is not end:
            return False
        del self._waiting[stream]
        return True

    def _break_off(self, running: Running, is_over: Callable[[StreamId], bool]) -> Broken[End]:
        own = [each for each in self._waiting if each.execution == running.number]
        waiting = [self._waiting.pop(each) for each in own if is_over(each)]
        held = [running.in_use.pop(each) for each in list(running.in_use) if is_over(each)]
        return Broken(waiting, [end for ends in held for end in ends])
