"""Runs a gateway as a process of its own, until it is told to end; leaves no process behind."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
from collections.abc import Callable

from gateway import linux, processes
from gateway.errors import GatewayError
from gateway.server import Gateway, Settings


def run(
    settings: Settings,
    announce: Callable[[str], None],
    end_with_stdin: bool = False,
) -> None:
    """Run a gateway in this process until SIGTERM or SIGINT. Call it from the main thread.

    Args:
        settings: how to run it.
        announce: called with the URL once the gateway listens.
        end_with_stdin: end also when standard input ends, which it does when the process at its
            other end is gone.

    Raises:
        GatewayError: the port cannot be had, or the supervisor process was killed.
    """
    linux.adopt_orphans()
    lost = asyncio.run(_run(settings, announce, end_with_stdin))
    if lost:
        processes.kill_descendants()
        raise GatewayError(
            "supervisor-lost", "the supervisor of the gateway was killed: restart it"
        )


async def _run(settings: Settings, announce: Callable[[str], None], end_with_stdin: bool) -> bool:
    """Serve until told to end; returns whether the supervisor was lost."""
    loop = asyncio.get_running_loop()
    gateway = Gateway(settings)
    stop = gateway.supervisor_lost
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    announce(await gateway.start())
    if end_with_stdin:
        _on_end_of_stdin(told.set)
    # What lives as long as the gateway need not be looked at by every full collection.
    gc.collect()
    gc.freeze()
    waits = [asyncio.ensure_future(event.wait()) for event in (stop, told)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    lost = stop.is_set()
    await gateway.stop()
    return lost


def _on_end_of_stdin(then: Callable[[], None]) -> None:
    descriptor = sys.stdin.fileno()
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            then()

    loop.add_reader(descriptor, look)
