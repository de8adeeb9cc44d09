"""A gateway in a process of its own, for the duration of a `with` block."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import subprocess
import threading
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import IO, cast

from chiron.gateway import processes
from chiron.gateway.images import images_folder
from chiron.gateway.names import BackendName
from chiron.workflow.errors import ChironError

_TIMEOUT_S = 30.0
#: Seconds to wait for the last line of a gateway that has ended: its supervisor may say more.
_LAST_S = 2.0
#: A line of its log.
_LOGGED = re.compile(r"(?:WARNING|ERROR|CRITICAL) [\w.]+: (.+)")


class EmbeddedGateway:
    """Starts a gateway on entry and stops it, with all functions, on exit.

    It is a separate process, so it does not share the interpreter lock of a client that measures.
    It ends by itself when this process ends in any way. The server is not imported here, as the
    import takes as long as most verbs do.

    `say` is called with each line of its log, in another thread.
    """

    def __init__(
        self,
        port: int = 0,
        images: Path | None = None,
        user: str | None = None,
        password: str | None = None,
        ready_timeout_s: float | None = None,
        idle_timeout_s: float | None = None,
        backend: BackendName = "process",
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        #: Its URL, once entered.
        self.url = ""
        self.pid = 0
        options = {
            "--port": port,
            "--backend": backend,
            "--images": (images or images_folder()).absolute(),
            "--ready-timeout": ready_timeout_s,
            "--idle-timeout": idle_timeout_s,
        }
        given = [(name, str(value)) for name, value in options.items() if value is not None]
        self._arguments = ["--with-stdin", *chain(*given)]
        self._credentials = [user, password]
        self._say = say
        self._process: subprocess.Popen[bytes]
        self._words: _Words

    def __enter__(self) -> EmbeddedGateway:
        """Start it; raises ChironError if it cannot listen."""
        pipe, (reader, writer) = subprocess.PIPE, os.pipe()
        self._words = _Words(reader, self._say)
        with open(writer, "wb") as errors:  # noqa: PTH123  # it is a descriptor
            self._process = processes.start_own(
                "chiron.gateway", *self._arguments, stdin=pipe, stdout=pipe, stderr=errors
            )
        self.pid = self._process.pid
        try:
            self.url = json.loads(self._first_line())["url"]
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it and wait for its end."""
        with self._process:
            cast(IO[bytes], self._process.stdin).close()
            try:
                self._process.wait(_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                # Its supervisor detects its end and ends the functions.
                self._process.kill()

    def wait(self) -> None:
        self._process.wait()

    def describe_end(self) -> str | None:
        """Return how it ended by itself, with its last line of errors; None while it runs."""
        status = self._process.poll()
        if status is None:
            return None
        how = f"was killed by signal {-status}" if status < 0 else f"exited with status {status}"
        said = self._words.last()
        return f"{how}: {said}" if said else how

    def _first_line(self) -> bytes:
        """Send the credentials; return its first line of output, printed once it listens."""
        stdin, stdout = (
            cast(IO[bytes], each) for each in (self._process.stdin, self._process.stdout)
        )
        # By the pipe: other processes can read an environment.
        with contextlib.suppress(BrokenPipeError):  # it has ended: its output has the reason
            stdin.write(json.dumps(self._credentials).encode() + b"\n")
            stdin.flush()
        ready, _, _ = select.select([stdout], [], [], _TIMEOUT_S)
        line = stdout.readline() if ready else b""
        if not line:
            self._process.kill()
            self._process.wait()
            why = self._words.last() or "it said nothing"
            raise ChironError("gateway-not-started", f"the embedded gateway did not start: {why}")
        return line


class _Words:
    """Reads the lines on a gateway's stderr: passes its log to `say`, and remembers the last."""

    def __init__(self, descriptor: int, say: Callable[[str], None]) -> None:
        self._last = ""
        self._thread = threading.Thread(target=self._read, args=(descriptor, say), daemon=True)
        self._thread.start()

    def last(self) -> str:
        """Return the last line of a gateway that has ended."""
        self._thread.join(_LAST_S)
        return self._last.removeprefix("error: ")

    def _read(self, descriptor: int, say: Callable[[str], None]) -> None:
        with open(descriptor, "rb") as lines:  # it is a descriptor
            for line in lines:
                text = line.decode(errors="replace").strip()
                self._last = text or self._last
                if logged := _LOGGED.fullmatch(text):
                    say(logged[1])
