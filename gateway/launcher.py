"""The gateway's side of the supervisor: orders starts and signals, hears of ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from gateway import processes
from gateway.backend import Child, above_limit
from gateway.environment import start_supervisor
from gateway.supervisor import MAX_MESSAGE

_NOT_STARTED = 127


@dataclass(frozen=True)
class Command:
    """A process to start.

    Attributes:
        cores: what it is bound to; all if None.
        memory: its limit, in bytes.
        user: the uid and gid to run it as; the gateway's own if None.
    """

    command: list[str]
    folder: Path
    env: dict[str, str]
    cores: list[int] | None = None
    memory: int | None = None
    user: tuple[int, int] | None = None


class Process(Child):
    """A function process; the supervisor knows it by `ident`.

    Attributes:
        init: the process above it, below which all is that it starts; 0 until it has started.
        kills: how many processes the kernel had killed for want of memory before.
    """

    def __init__(self, launcher: Launcher, ident: int) -> None:
        super().__init__()
        self.ident = ident
        self.init = 0
        self.kills = processes.killed_for_memory()
        self._launcher = launcher

    def signal(self, number: signal.Signals) -> None:
        """Have the supervisor signal it."""
        if not self.ended.done():
            self._launcher.signal(self.ident, number)


@dataclass
class Launcher:
    """Holds the channel to the supervisor; closing it ends every process the supervisor started."""

    channel: socket.socket
    process: subprocess.Popen[bytes]
    scratch: Path
    on_lost: Callable[[], None]
    _children: dict[int, Process] = field(default_factory=dict)
    _idents: count[int] = field(default_factory=count)

    @classmethod
    def open(cls, scratch: Path, on_lost: Callable[[], None]) -> Launcher:
        """Start the supervisor; it removes `scratch` when it ends. Needs a running event loop.

        Args:
            scratch: folder of the gateway's temporary files.
            on_lost: called if the supervisor ends by itself.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 * MAX_MESSAGE)
        with theirs:
            process = start_supervisor("gateway.supervisor", theirs, str(scratch))
        launcher = cls(ours, process, scratch, on_lost)
        asyncio.get_running_loop().add_reader(ours, launcher._receive)
        return launcher

    def start(self, command: Command, listener: socket.socket, output: int) -> Process:
        """Order a process that inherits `listener` and writes to `output`; raises OSError.

        It returns at once.
        """
        child = Process(self, next(self._idents))
        child.port = listener.getsockname()[1]
        message = json.dumps(
            {
                "do": "start",
                "id": child.ident,
                "command": command.command,
                "folder": str(command.folder),
                "env": command.env,
                "cores": command.cores,
                "memory": command.memory or 0,
                "user": command.user,
            }
        ).encode()
        if len(message) > MAX_MESSAGE:
            raise OSError(f"its environment is larger than {MAX_MESSAGE // 1024} KiB")
        self._children[child.ident] = child
        socket.send_fds(self.channel, [message], [listener.fileno(), output])
        self._resume()
        return child

    def signal(self, ident: int, number: signal.Signals) -> None:
        """Signal a process; SIGKILL reaches everything it started."""
        message = {"do": "signal", "id": ident, "signal": int(number)}
        with contextlib.suppress(OSError):  # supervisor gone, and its processes with it
            self.channel.send(json.dumps(message).encode())
        self._resume()

    async def close(self) -> None:
        """Have the supervisor end every process, and wait until it has."""
        asyncio.get_running_loop().remove_reader(self.channel)
        self.channel.close()
        self._resume()
        await asyncio.to_thread(self.process.wait)
        # The supervisor has removed it, unless it was killed.
        await asyncio.to_thread(shutil.rmtree, self.scratch, ignore_errors=True)

    def _resume(self) -> None:
        """Have the supervisor go on: a function of the same user may have stopped it."""
        self.process.send_signal(signal.SIGCONT)

    def _receive(self) -> None:
        try:
            data = self.channel.recv(MAX_MESSAGE, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except ConnectionError:
            data = b""
        if not data:
            self._lost()
            return
        message = json.loads(data)
        child = self._children.get(message["id"])
        if child is None:
            return  # it was told already that it ended
        match message:
            case {"pid": pid, "init": init}:
                child.pid, child.init = pid, init
                child.started.set()
            case {"error": error}:
                self._end(child, _NOT_STARTED, error)
            case {"memory": used, "limit": limit}:
                child.fault = f"killed: it used {used >> 20} MiB, {above_limit(limit)}"
            case {"exit": code}:
                self._end(child, code)

    def _end(self, child: Process, code: int, error: str | None = None) -> None:
        del self._children[child.ident]
        killed = code == -signal.SIGKILL and not (error or child.fault)
        if killed and processes.killed_for_memory() > child.kills:
            child.fault = (
                "killed by SIGKILL; the kernel has killed for want of memory since it began"
            )
        child.end(code, error)

    def _lost(self) -> None:
        asyncio.get_running_loop().remove_reader(self.channel)
        for child in list(self._children.values()):
            self._end(child, -signal.SIGKILL, "the supervisor process is gone")
        self.on_lost()
