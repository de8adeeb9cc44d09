"""One replica of a function: polled until it answers, drained, ended."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Iterator
from typing import Any

import aiohttp

from chiron.gateway.backend import Child
from chiron.gateway.connections import CONNECTIONS, Connections
from chiron.gateway.liveness import await_death

_POLL_PERIOD_S = 0.02
# The longest time from the end of its connections to the report of its end; Docker reports late.
_END_S = 2.0
# Stalled uploads of large bodies leave the other connections to other callers.
_LARGE_CALLS = CONNECTIONS // 2
# Seconds from SIGTERM to SIGKILL of a replica.
_STOP_S = 5.0
#: Seconds that running calls have to end when the gateway ends.
LAST_DRAIN_S = 5.0


class StartFailedError(Exception):
    """The replica ended or timed out before it was ready."""


class Replica:
    """A replica and the connections to it."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.inflight = 0
        #: Whether a call was answered, and whether a call could not connect, since the last check
        #: for doubt.
        self.heard = self.unreachable = False
        self.connections = Connections(child)
        #: Held by calls with a streamed body.
        self.large = asyncio.Semaphore(_LARGE_CALLS)
        self._idle = asyncio.Event()
        self._watch: asyncio.Task[None] | None = None

    async def become_ready(self, ready_s: float, answer_s: float) -> None:
        """Wait until it answers its health check.

        Args:
            ready_s: the timeout.
            answer_s: the timeout of its calls, after which silence may mean that it is dead.

        Raises StartFailedError: it could not be started, ended, or was not ready within `ready_s`.
        """
        child = self.child
        await child.started.wait()
        if child.error:
            raise StartFailedError(f"it cannot be started: {child.error}")
        polling = asyncio.ensure_future(self._poll())
        try:
            await _first([polling, child.ended], ready_s)
            if child.ended.done():
                raise StartFailedError(await describe_end(child))
            if not polling.done():
                raise StartFailedError(f"no answer to {child.health_path} within {ready_s:g} s")
        finally:
            polling.cancel()
        # The silence may also be a restart in the same process, hence `ready_s`.
        self._watch = asyncio.create_task(self._end_when_dead(max(answer_s, ready_s)))

    @contextlib.contextmanager
    def busy(self) -> Iterator[None]:
        """Count a request in flight for the duration of a block."""
        self.inflight += 1
        try:
            yield
        finally:
            self.inflight -= 1
            if not self.inflight:
                self._idle.set()

    async def wait_end(self) -> str:
        """Wait until it has ended, or is dead and being killed; return the reason in words."""
        if self._watch:
            await _first([self._watch, self.child.ended])
            if self._watch.done():
                self._watch.result()  # an error of the watch also ends and replaces the replica
        return self.child.fault or await describe_end(self.child)

    async def broken_connection_cause(self) -> str | None:
        """Return how a replica that closed a connection ended; None if it still runs."""
        child = self.child
        await asyncio.wait([child.ended], timeout=0 if child.fault else _END_S)
        return await describe_end(child) if child.ended.done() else child.fault

    async def stop(self, drain_s: float, closing: asyncio.Event) -> None:
        """Let requests in flight end, then end the replica: SIGTERM, and SIGKILL after a pause.

        They have `drain_s` seconds, and at most `LAST_DRAIN_S` from the event `closing` on.
        """
        child = self.child
        if not child.ended.done():
            self._idle.clear()
            if self.inflight:
                await self._drain(drain_s, closing)
            child.signal(signal.SIGTERM)
            await asyncio.wait([child.ended], timeout=_STOP_S)
            child.signal(signal.SIGKILL)
            await asyncio.shield(child.ended)
        if self._watch:
            self._watch.cancel()
        # Requests detect the end of the replica themselves, after reading all that it sent.
        self.connections.close()

    async def _drain(self, drain_s: float, closing: asyncio.Event) -> None:
        idle, ending = (asyncio.ensure_future(each.wait()) for each in (self._idle, closing))
        await _first([idle, ending, self.child.ended], drain_s)
        if ending.done():
            await _first([idle, self.child.ended], LAST_DRAIN_S)
        idle.cancel()
        ending.cancel()

    async def _end_when_dead(self, longest_silence_s: float) -> None:
        """Kill the replica, and so its calls, when it will never answer again."""
        why = await await_death(self.child, longest_silence_s, self._doubtful)
        self.child.fault = f"killed: {why}"
        self.child.signal(signal.SIGKILL)

    def _doubtful(self) -> bool:
        """Return whether calls wait unanswered, or could not connect, since the last check."""
        doubtful = self.unreachable or (self.inflight > 0 and not self.heard)
        self.heard = self.unreachable = False
        return doubtful

    async def _poll(self) -> None:
        # A process's socket listens already: the first request waits in its backlog.
        while True:
            with contextlib.suppress(aiohttp.ClientError):
                async with self.connections.request("GET", self.child.health_path[1:]) as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(_POLL_PERIOD_S)


async def _first(futures: list[asyncio.Future[Any]], limit_s: float | None = None) -> None:
    """Wait for one of `futures`, or for the timeout; cancels none."""
    await asyncio.wait(futures, timeout=limit_s, return_when=asyncio.FIRST_COMPLETED)


async def describe_end(child: Child) -> str:
    """Wait until a replica has ended; return how, in words."""
    code = await asyncio.shield(child.ended)
    if child.fault is not None:
        return child.fault
    if code < 0:
        return f"ended by {signal.Signals(-code).name}"
    return f"exited with status {code}"
