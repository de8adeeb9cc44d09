"""The gateway's side of the containers' supervisor: starts it, hears of its end, dismisses it."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gateway.docker_supervisor import ALL_CLEAR
from gateway.environment import start_supervisor


@dataclass
class Supervision:
    """Holds the channel to the supervisor; closing it has the gateway's containers removed."""

    channel: socket.socket
    process: subprocess.Popen[bytes]
    scratch: Path
    on_lost: Callable[[], None]

    @classmethod
    def open(cls, owner: str, scratch: Path, on_lost: Callable[[], None]) -> Supervision:
        """Start the supervisor of the gateway `owner`. Needs a running event loop.

        Args:
            owner: what the label of its containers says.
            scratch: folder of the gateway's temporary files, which the supervisor removes.
            on_lost: called if the supervisor ends by itself.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = start_supervisor("gateway.docker_supervisor", theirs, owner, str(scratch))
        supervision = cls(ours, process, scratch, on_lost)
        asyncio.get_running_loop().add_reader(ours, supervision._lost)
        return supervision

    async def dismiss(self, *, all_clear: bool) -> None:
        """Let the supervisor end: at once if no container is left, else once it removed them."""
        asyncio.get_running_loop().remove_reader(self.channel)
        with self.channel:
            if all_clear and self.process.poll() is None:
                self.channel.send(ALL_CLEAR)
        if all_clear:
            await asyncio.to_thread(self.process.wait)
            # The supervisor has removed it, unless it was killed.
            await asyncio.to_thread(shutil.rmtree, self.scratch, ignore_errors=True)

    def _lost(self) -> None:
        asyncio.get_running_loop().remove_reader(self.channel)
        self.on_lost()
