"""The events of a workflow of buckets: held until they fire, or handled at once to their end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from wrap.errors import TaskError
from wrap.keeper import Keeper
from wrap.messages import Result, Watch
from wrap.metrics import StreamMetrics
from wrap.objects import Object
from wrap.runtime import Runtime
from wrap.stores import late
from wrap.stream import Stream
from wrap.trace_context import TraceContext


class Events:
    """The buckets of a wrap.

    Parameters
    ----------
    declared, numbers
        As `Stream` has them.
    most_bytes
        What objects may take that wait or are worked on.
    keeper
        Where they are to outlive the process.
    """

    def __init__(
        self,
        runtime: Runtime,
        declared: dict[str, Any],
        numbers: dict[str, int],
        most_bytes: int,
        keeper: Keeper | None = None,
    ) -> None:
        self._keeper = keeper
        self._runtime = runtime
        self._declared = declared
        self._numbers = numbers
        self._most_bytes = most_bytes
        self._metrics = StreamMetrics(declared["buckets"])
        # The time of day, by which windows go; it does not jump.
        offset_s = time.time() - time.monotonic()
        self._stream = Stream(
            runtime, declared, numbers, offset_s, metrics=self._metrics, keeper=keeper
        )
        if keeper is not None:
            keeper.join(self._stream)

    def check_room(self, given: Object) -> None:
        """Raise TaskError, ``full``, where there is no room for a request."""
        elsewhere = self._keeper.held_elsewhere if self._keeper is not None else 0
        if self._stream.size + elsewhere + given.size > self._most_bytes:
            message = f"objects may have {self._most_bytes} bytes here, and do: send it again later"
            raise TaskError("full", message, status=503)

    def take(
        self, given: Object, deadline: float, reply: Callable[[int | TaskError], None]
    ) -> None:
        """Hold the events of a request.

        `reply` is called once: with their number as soon as they are held, or with the error
        ``store`` if the store has not confirmed them at the deadline. The store may have them then.
        """
        keeper = self._keeper
        if keeper is None:
            self._stream.take(given, reply)
            return
        first = threading.Lock()

        def once(answer: int | TaskError) -> None:
            if first.acquire(blocking=False):
                reply(answer)

        def held(number: int) -> None:
            timer.cancel()
            once(number)

        timer = self._runtime.loop.call_at(deadline, lambda: once(late(keeper.place)))
        self._stream.take(given, held)

    def handle(
        self,
        given: Object,
        deadline: float,
        watch: Watch,
        reply: Callable[[TaskError | None, list[Result], Object], None],
        trace: TraceContext | None = None,
    ) -> None:
        """Run what a request's events fire, in buckets of their own, in which no time passes.

        What waits for one fires when nothing else is left to run. `reply` is called with the first
        error, `Stream.results`, and `Stream.answer`.
        """
        stream = Stream(
            self._runtime, self._declared, self._numbers, None, deadline, watch, trace=trace
        )

        def over() -> None:
            error, output = stream.error, Object("")
            try:
                output = stream.answer()
            except TaskError as not_text:
                error = error or not_text
            reply(error, stream.results, output)

        stream.take(given, lambda _: None)
        stream.drain(over)

    def close(self, within_s: float) -> None:
        """Have all that waits fire now, or leave it where it is kept; returns when that is done."""
        until = time.monotonic() + within_s
        if self._keeper is not None:
            self._stream.stop(until)
            self._keeper.leave(until)
            return
        over = threading.Event()
        self._stream.drain(over.set)
        if not over.wait(within_s):
            print(f"objects of {self._stream.size} bytes are lost: functions take too long")

    @property
    def size(self) -> int:
        """Bytes of the objects that wait or are worked on."""
        return self._stream.size

    @property
    def load(self) -> tuple[int, int, int]:
        """How many firings run, how many wait, and how many may run at once."""
        return self._stream.load

    def metrics(self) -> list[str]:
        """Lines of metrics."""
        return self._metrics.lines()
