"""`python -m chiron.gateway`: runs the gateway until told to end; prints its URL as a JSON line."""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

from chiron.gateway import processes
from chiron.gateway.access import Credentials
from chiron.gateway.function_user import DEFAULT
from chiron.gateway.names import PASSWORD_VARIABLE, USER_VARIABLE, BackendName
from chiron.gateway.server import Gateway, Settings
from chiron.workflow.errors import ChironError


async def _serve(settings: Settings, end_with_stdin: bool) -> bool:
    """Serve until SIGTERM, SIGINT or the end of stdin; return whether the supervisor was lost."""
    loop = asyncio.get_running_loop()
    gateway = Gateway(settings)
    lost = gateway.supervisor_lost
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, told.set)
    print(json.dumps({"url": await gateway.start()}), flush=True)
    if end_with_stdin:
        _on_end_of_stdin(told.set)
    # Exempt objects that live as long as the gateway from every full collection.
    gc.collect()
    gc.freeze()
    waits = [asyncio.ensure_future(event.wait()) for event in (lost, told)]
    await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
    was_lost = lost.is_set()
    await gateway.stop()
    return was_lost


def _on_end_of_stdin(then: Callable[[], None]) -> None:
    descriptor = sys.stdin.fileno()
    loop = asyncio.get_running_loop()

    def look() -> None:
        if not os.read(descriptor, 4096):
            loop.remove_reader(descriptor)
            then()

    loop.add_reader(descriptor, look)


def main(arguments: list[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; return the exit status: 2 for an error the caller can fix."""
    processes.forbid_inspection()
    options = _parser().parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    try:
        settings = Settings(
            host=options.host,
            port=options.port,
            backend=options.backend,
            images=options.images,
            credentials=_credentials(options.with_stdin),
            ready_s=options.ready_timeout,
            idle_s=options.idle_timeout,
            user=options.user,
        )
        processes.adopt_orphans()
        if asyncio.run(_serve(settings, options.with_stdin)):
            processes.kill_descendants()
            message = "the supervisor of the gateway was killed: restart it"
            raise ChironError("supervisor-lost", message)
    except ChironError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m chiron.gateway",
        description="Runs an OpenFaaS-compatible gateway; functions are processes or containers.",
        epilog=f"{USER_VARIABLE} and {PASSWORD_VARIABLE} set the credentials of /system/*.",
    )
    add = parser.add_argument
    seconds: dict[str, Any] = {"type": float, "metavar": "S"}
    default = "(default %(default)s)"
    add("--host", default="127.0.0.1", help=f"address {default}")
    add("--port", type=int, default=8080, help="0 for a free one (default 8080)")
    backends = get_args(BackendName)
    add("--backend", choices=backends, default="process", help=f"what a replica is {default}")
    add("--images", type=Path, help="image store of processes (default $CHIRON_HOME/images)")
    add("--ready-timeout", **seconds, default=Settings.ready_s, help="seconds to get ready")
    idle = "seconds that a connection may be idle or stuck (default %(default)g)"
    add("--idle-timeout", **seconds, default=Settings.idle_s, help=idle)
    add("--user", default=DEFAULT, help=f"user that functions run as, for root {default}")
    stdin = "take [USER, PASSWORD] from the first line of standard input, and end when it ends"
    add("--with-stdin", action="store_true", help=stdin)
    return parser


def _credentials(from_stdin: bool) -> Credentials | None:
    """Return the given credentials, if any; raises ChironError if only half of them is given."""
    if from_stdin:
        user, password = json.loads(sys.stdin.readline() or "[null, null]")
    else:
        user, password = os.environ.get(USER_VARIABLE), os.environ.get(PASSWORD_VARIABLE)
    if bool(user) != bool(password):
        message = f"credentials need both: set {USER_VARIABLE} and {PASSWORD_VARIABLE}, or neither"
        raise ChironError("half-credentials", message)
    return Credentials(user, password) if user and password else None


if __name__ == "__main__":
    sys.exit(main())
