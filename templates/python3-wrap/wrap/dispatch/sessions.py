"""The events of a workflow of buckets: held until they fire, or handled at once to their end."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from wrap.cluster.durable import DurableBuckets
from wrap.core.errors import TaskError
from wrap.dispatch.bucket_runs import BucketRuns
from wrap.dispatch.runtime import Runtime
from wrap.net.messages import Result, Watch
from wrap.net.object_store import late
from wrap.observe.metrics import StreamMetrics
from wrap.observe.trace_context import TraceContext
from wrap.values.quota import Quota
from wrap.values.value import Object


class Events:
    """The buckets of a wrap.

    Args:
        declared, numbers: see `BucketRuns`.
        most_bytes: the memory quota of objects that wait or are processed.
        durable: the store, if they are to outlive the process.
    """

    def __init__(
        self,
        runtime: Runtime,
        declared: dict[str, Any],
        numbers: dict[str, int],
        most_bytes: int,
        durable: DurableBuckets | None = None,
    ) -> None:
        self._durable = durable
        self._runtime = runtime
        self._declared = declared
        self._numbers = numbers

        def elsewhere() -> int:
            return durable.held_elsewhere if durable is not None else 0

        self._quota = Quota(most_bytes, elsewhere)
        self._metrics = StreamMetrics(declared["buckets"])
        # Windows follow the time of day; with this offset it never jumps.
        offset_s = time.time() - time.monotonic()
        self.buckets = BucketRuns(
            *(runtime, declared, numbers, offset_s),
            metrics=self._metrics,
            durable=durable,
            quota=self._quota,
        )
        if durable is not None and self.buckets.replica is not None:
            durable.join(self.buckets.replica)

    def take(
        self, given: Object, deadline: float, reply: Callable[[int | TaskError], None]
    ) -> None:
        """Hold the events of a request.

        `reply` is called once: with their number as soon as they are held, or with the error
        ``store`` at the deadline. The store may have received them even then. Raises as
        `BucketRuns.take`.
        """
        durable = self._durable
        if durable is None:
            self.buckets.take(given, reply)
            return
        first = threading.Lock()

        def once(answer: int | TaskError) -> None:
            if first.acquire(blocking=False):
                reply(answer)

        def held(number: int) -> None:
            timer.cancel()
            once(number)

        timer = self._runtime.loop.call_at(deadline, lambda: once(late(durable.place)))
        try:
            self.buckets.take(given, held)
        except TaskError:
            timer.cancel()
            raise

    def handle(
        self,
        given: Object,
        deadline: float,
        watch: Watch,
        reply: Callable[[TaskError | None, list[Result], Object], None],
        trace: TraceContext | None = None,
    ) -> None:
        """Run a request's events to their end, in buckets of their own, in which no time passes.

        Objects that wait for a time fire when nothing else is left to run. `reply` is called with
        the first error, `BucketRuns.results`, and `BucketRuns.answer`. Raises as `BucketRuns.take`.
        """
        buckets = BucketRuns(
            *(self._runtime, self._declared, self._numbers, None, deadline, watch),
            trace=trace,
            quota=self._quota,
        )

        def over() -> None:
            self._quota.takers.discard(buckets)
            error, output = buckets.error, Object("")
            try:
                output = buckets.answer()
            except TaskError as not_text:
                error = error or not_text
            reply(error, buckets.results, output)

        try:
            buckets.take(given, lambda _: None)
        except TaskError:
            self._quota.takers.discard(buckets)
            raise
        buckets.drain(over)

    def close(self, within_s: float) -> None:
        """Fire all waiting objects or leave them in the store; return when done or too late."""
        until = time.monotonic() + within_s
        if self._durable is not None:
            self.buckets.stop(until)
            self._durable.leave(until)
            return
        over = threading.Event()
        self.buckets.drain(over.set)
        if not over.wait(within_s):
            print(f"objects of {self.buckets.size} bytes are lost: functions take too long")

    @property
    def is_durable(self) -> bool:
        """Whether buckets are durable, so that there may be dead letters."""
        return self._durable is not None

    def letters(self, verb: str, which: Sequence[str], deadline: float) -> list[dict[str, Any]]:
        """Return the dead letters after `DurableBuckets.letters`. Raises TaskError, ``store``."""
        durable, found, done = self._durable, list[Any](), threading.Event()
        if durable is None:
            return []

        def on_answer(letters: Any) -> None:
            found.extend(letters)
            done.set()

        durable.manage_dead_letters(verb.encode(), [each.encode() for each in which], on_answer)
        if not done.wait(max(0.0, deadline - time.monotonic())):
            raise late(durable.place)
        return [
            {
                "name": name.decode(),
                "killed": int(killed),
                "bytes": int(size),
                "begins": [each.partition(b"\n")[2].decode(errors="replace") for each in begins],
            }
            for name, killed, size, begins in found
        ]

    def metrics(self) -> list[str]:
        return self._metrics.lines(self._durable.dead_letters if self._durable else None)
