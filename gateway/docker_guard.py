"""The gateway's side of the containers' guardian: starts it, hears of its end, dismisses it."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gateway.docker_guardian import ALL_CLEAR

_COMMAND = (sys.executable, "-m", "gateway.docker_guardian")


@dataclass
class Guard:
    """Holds the channel to the guardian; closing it has the gateway's containers removed."""

    channel: socket.socket
    process: subprocess.Popen[bytes]
    scratch: Path
    on_lost: Callable[[], None]

    @classmethod
    def open(cls, owner: str, scratch: Path, on_lost: Callable[[], None]) -> Guard:
        """Start the guardian of the gateway `owner`. Needs a running event loop.

        Args:
            owner: what the label of its containers says.
            scratch: folder of the gateway's temporary files, which the guardian removes.
            on_lost: called if the guardian ends by itself.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = subprocess.Popen(
                [*_COMMAND, str(theirs.fileno()), owner, str(scratch)],
                cwd=Path(__file__).resolve().parent.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )
        guard = cls(ours, process, scratch, on_lost)
        asyncio.get_running_loop().add_reader(ours, guard._lost)
        return guard

    async def dismiss(self, *, all_clear: bool) -> None:
        """Let the guardian end: at once if no container is left, else when it has removed them."""
        asyncio.get_running_loop().remove_reader(self.channel)
        with self.channel:
            if all_clear and self.process.poll() is None:
                self.channel.send(ALL_CLEAR)
        if all_clear:
            await asyncio.to_thread(self.process.wait)
            # The guardian has removed it, unless it was killed.
            await asyncio.to_thread(shutil.rmtree, self.scratch, ignore_errors=True)

    def _lost(self) -> None:
        asyncio.get_running_loop().remove_reader(self.channel)
        self.on_lost()
