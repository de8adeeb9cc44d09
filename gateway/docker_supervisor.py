"""The supervisor of containers: removes what a gateway made when the gateway is gone.

The containers' parent is the Docker engine, so that nothing ends them with the gateway. This
process holds one end of a channel whose other end is the gateway's alone. When it closes, even
by SIGKILL, the containers and temporary files of that gateway are removed, unless the gateway
has said before that it did so itself.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import sys
import time

ALL_CLEAR = b"."
_BETWEEN_LOOKS_S = 0.5
_QUIET_LOOKS = 3
_ENGINE_LIMIT_S = 60.0


def main() -> None:
    """Supervise the gateway argv[2]: its channel is descriptor argv[1], its folder argv[3]."""
    # When to stop is the gateway's decision, told by its channel.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: None)
    try:
        if not _all_clear(socket.socket(fileno=int(sys.argv[1]))):
            _remove_all(sys.argv[2])
    finally:
        shutil.rmtree(sys.argv[3], ignore_errors=True)


def _all_clear(channel: socket.socket) -> bool:
    """Wait for the gateway's last word; False if it ended without one."""
    try:
        return channel.recv(1) == ALL_CLEAR
    except ConnectionError:
        return False


def _remove_all(owner: str) -> None:
    """Remove the gateway's containers; several looks, as the engine may still be making some."""
    # Imported only now: as long as the gateway lives, this process shall take little memory.
    from gateway.docker_engine import connect, owned, remove
    from gateway.errors import GatewayError

    end = time.monotonic() + _ENGINE_LIMIT_S
    quiet = 0
    while quiet < _QUIET_LOOKS and time.monotonic() < end:
        try:
            with contextlib.closing(connect()) as client:
                found = owned(client, owner)
                for container in found:
                    remove(container)
            quiet = 0 if found else quiet + 1
        except GatewayError:
            quiet = 0  # the engine is away: perhaps it comes back
        time.sleep(_BETWEEN_LOOKS_S)


if __name__ == "__main__":
    main()
