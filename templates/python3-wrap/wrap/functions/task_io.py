"""The implementation of `chiron_io` for one run of a task: early outputs and streams."""

from __future__ import annotations

import io
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import IO, Any, NamedTuple, cast

from chiron_io import OUTPUT

from wrap.core.buckets.routes import ALL, emission_targets
from wrap.core.errors import TaskError
from wrap.core.streams import StreamId
from wrap.core.wrap_spec import Wrap
from wrap.functions import styles
from wrap.net.messages import Result
from wrap.pipes.broker import Open
from wrap.pipes.frames import BUFFER
from wrap.pipes.outlets import Outlet, Outlets
from wrap.pipes.reader import Reader, WrittenStream
from wrap.pipes.writer import Writer
from wrap.values.in_json import InJson
from wrap.values.value import Object

#: Emitted values are converted like answers of this style, whatever the handler's style.
_STYLE = "flask"
#: Receives the result of an output.
Emitted = Callable[[Result], None]
#: Lets the next task begin.
Begins = Callable[[], None]


class Access(NamedTuple):
    """How a task opens streams."""

    execution: int
    #: Opens an end of a live stream; None if no stream is live.
    open: Open | None
    #: Returns the object of a task number: a stream that was written before.
    given: Callable[[int], Object]
    #: Opens the connection to the client for the answering task; None if its answer goes whole.
    client: Callable[[StreamId], socket.socket] | None = None


class TaskIO:
    """The outputs and streams of one run; `result` is the run's result as it begins."""

    def __init__(
        self,
        wrap: Wrap,
        result: Result,
        emitted: Emitted,
        access: Access,
        watched: bool = False,
    ) -> None:
        #: Whether to record when a command begins to answer.
        self.watched = watched
        #: Stream name -> number of the output that it reads.
        self.inputs: Mapping[str, int] = wrap.streams.get(result.task, {})
        self._wrap = wrap
        self._result = result
        self._emitted = emitted
        self._access = access
        self._awaited: Mapping[str, int] = wrap.outputs_of.get(result.task, {})
        self._left = dict(self._awaited)
        #: Emitted objects, if the run is alone and buckets would receive them.
        self._all: list[tuple[str, str | None, InJson]] = []
        #: The number of objects put into buckets, and whether the run has ended.
        self._given, self._over = 0, False
        self._giving = threading.Lock()
        self._others: set[str] = set()
        self._readers: dict[str, Reader] = {}
        self._complete: dict[str, WrittenStream] = {}
        self._outlets = Outlets()
        self._files: dict[str, Writer] = {}
        self._unopened: TaskError | None = None

    @property
    def broken(self) -> TaskError | None:
        """The error of a stream whose peer is gone, even if the handler ignored it."""
        readers = (each.broken for each in self._readers.values() if each.broken is not None)
        return self._unopened or self._outlets.broken or next(readers, None)

    @property
    def has_written(self) -> bool:
        return OUTPUT in self._files

    def emit(self, name: str, value: Any, group: str | None = None) -> None:
        """Emit an output; drop it if no task and no bucket needs it.

        Raises TaskError as `styles.output` does; ValueError if buckets are declared without it.
        """
        group = None if group is None else str(group)
        entry = self._wrap.entry
        if entry is not None and entry.buckets is not None:
            emission_targets(entry.buckets, entry.names[self._result.task], name)
            self._put(name, value, group)
            return
        if ALL in self._awaited:
            self._all.append((name, group, styles.output(_STYLE, value).in_json()))
            return
        if name not in self._awaited:
            self._others.add(str(name))
            return
        self._check_new(name)
        output = styles.output(_STYLE, value)
        if self.is_read(name):
            with self.open_output(name) as file:
                file.write(output.view())
        else:
            self._give(name, output=output)

    def _put(self, name: str, value: Any, group: str | None) -> None:
        """Put an object into buckets, numbered so that a repeated run puts the same numbers."""
        output = styles.output(_STYLE, value)
        with self._giving:
            if self._over:
                raise ValueError(f"{name} is emitted when the handler has ended")
            now, place = time.monotonic(), self._given
            result = replace(self._result, output=output, emitted=name, group=group, place=place)
            self._emitted(replace(result, started=now, ended=now))
            self._given += 1

    def open_input(self, name: str | None = None) -> IO[bytes]:
        if name is None and len(self.inputs) == 1:
            (name,) = self.inputs
        if name is None or name not in self.inputs:
            raise ValueError(self.unknown(name))
        if name in self._readers or name in self._complete:
            raise ValueError(f"the stream {name} was opened before")
        return io.BufferedReader(self.given(name), BUFFER)

    def unknown(self, name: str | None) -> str:
        known = ", ".join(self.inputs) or 'there are none (an edge has to end in "stream")'
        return f"no stream is called {name}: {known}"

    def given(self, name: str) -> Reader | WrittenStream:
        """Return the reader of the input stream `name`."""
        number, task = self.inputs[name], self._result.task
        if self._access.open is None or task not in self._wrap.live.get(number, ()):
            if name not in self._complete:
                self._complete[name] = WrittenStream(self._access.given(number).view())
            return self._complete[name]
        if name not in self._readers:
            end = self._open(self._access.open, number, task, False)
            self._readers[name] = Reader(end, self._wrap.names([self._wrap.giver_of(number)]))
        return self._readers[name]

    def wrote(self) -> None:
        if self._result.writes is None:
            self._result.writes = time.monotonic()

    def open_output(self, name: str = OUTPUT) -> IO[bytes]:
        if name == OUTPUT or name in self._awaited:
            self._check_new(name)
        else:
            self._others.add(str(name))
        outlets: list[Outlet] = []
        number = self._number(name)
        if self._access.open is not None and number is not None:
            for reader in self._wrap.live.get(number, ()):
                end = self._open(self._access.open, number, reader, True)
                outlets.append(Outlet(end, self._wrap.names([reader])))
                self._outlets.add(outlets[-1])
        kept, written = self._is_kept(name), partial(self._written, name)
        self._files[name] = file = Writer(outlets, self._outlets, kept, written)
        return cast(IO[bytes], file)

    def is_read(self, name: str) -> bool:
        """Whether other tasks read the output while it is written."""
        return self._access.open is not None and self._number(name) in self._wrap.live

    def ended(self, value: Object) -> Object:
        """Finish a run whose handler returned `value`, and return the task's answer.

        Waits until readers have received its outputs, and reads its input streams to their ends.
        Raises TaskError if an awaited output is missing or a peer is gone.
        """
        if self.broken is not None:
            raise self.broken
        if self.has_written:
            self._files[OUTPUT].close()
            value = Object(self._files[OUTPUT].whole)
        elif self.is_read(OUTPUT):
            with self.open_output() as file:
                file.write(value.view())
            value = value if self._is_kept(OUTPUT) else Object("")
        for each in list(self._files.values()):
            each.close()
        self._note_streams()
        self._check()
        self._outlets.finish()
        for name in self.inputs:
            if isinstance(given := self.given(name), Reader):
                given.drain()
        return value

    def fail(self, error: dict[str, Any]) -> None:
        """Fail all outputs that the failed task has not given."""
        for file in self._files.values():
            file.abandon()
        self._outlets.close(TaskError.from_dict(error, status=500))
        for name in [*self._left]:
            self._give(name, error=error)

    def close(self) -> None:
        """Release all streams; give the emitted objects that are due at the end."""
        with self._giving:
            self._over = True
        if ALL in self._left:
            self._give(ALL, output=Object(json.dumps(self._all)))
        self._outlets.close()
        for reader in self._readers.values():
            reader.let_go()

    def _open(self, opens: Open, output: int, reader: int, writes: bool) -> socket.socket:
        try:
            return opens(StreamId(self._access.execution, output, reader), writes)
        except TaskError as error:
            self._unopened = error
            raise

    def _note_streams(self) -> None:
        """Record when it read complete streams and wrote its answer."""
        if self.has_written and self._result.writes is None:
            self._result.writes = self._files[OUTPUT].begun
        written = [each for each in self._complete.values() if each.read_from is not None]
        if written:
            ended = self._result.ended
            self._result.reads = (
                min(each.read_from or ended for each in written),
                max(each.read_until or ended for each in written),
            )

    def _check(self) -> None:
        if self._left.keys() - {ALL}:
            others = ", ".join(sorted(self._others))
            hint = (
                f"it has emitted {others}, which nothing takes"
                if others
                else "in threads that it starts, emit does nothing"
            )
            message = f"the handler has ended without emitting {', '.join(self._left)}: {hint}"
            raise TaskError("not-emitted", message)

    def _check_new(self, name: str) -> None:
        if name in self._files or (name != OUTPUT and name not in self._left):
            raise ValueError(f"{name} was emitted before")

    def _written(self, name: str) -> None:
        if name in self._left:
            writer = self._files[name]
            self._give(name, output=Object(writer.whole), started=writer.begun)

    def _give(self, name: str, started: float | None = None, **how: Any) -> None:
        number = self._left.pop(name)
        how["ended"] = now = time.monotonic()
        how["started"] = started or now
        self._emitted(replace(self._result, task=number, emitted=name, **how))

    def _number(self, name: str) -> int | None:
        return self._result.task if name == OUTPUT else self._awaited.get(name)

    def _is_kept(self, name: str) -> bool:
        """Whether the output is also needed as a whole."""
        number = self._number(name)
        return number is not None and (
            self._access.open is None or number not in self._wrap.passing
        )
