"""A gateway for the length of a `with` block, in a process of its own."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO, cast

from gateway.environment import own_environment
from gateway.errors import GatewayError
from gateway.images import images_folder
from gateway.names import BackendName, ProviderName

_START_TIMEOUT_S = 30.0
_STOP_TIMEOUT_S = 30.0


class EmbeddedGateway:
    """Starts a gateway on entry and stops it, with all functions, on exit.

    It is a separate process, so that a client that measures does not share its interpreter lock,
    and ends by itself when this process ends, however that happens. Nothing of the server is
    imported here: that takes as long as most verbs do.

    With `strict` it behaves as that provider, for tests: see `python -m gateway --help`.

    Attributes:
        url: where it listens, once entered.
        pid: its process.
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
        strict: ProviderName | None = None,
        grace_s: float | None = None,
    ) -> None:
        self.url = ""
        self.pid = 0
        self._command = [sys.executable, "-m", "gateway", "--with-stdin", "--port", str(port)]
        self._command += ["--backend", backend]
        if ready_timeout_s is not None:
            self._command += ["--ready-timeout", str(ready_timeout_s)]
        if idle_timeout_s is not None:
            self._command += ["--idle-timeout", str(idle_timeout_s)]
        if strict:
            self._command += ["--strict", strict]
        if grace_s is not None:
            self._command += ["--grace", str(grace_s)]
        self._command += ["--images", str((images or images_folder()).absolute())]
        self._credentials = [user, password]
        self._process: subprocess.Popen[bytes]
        self._errors: IO[bytes]

    def __enter__(self) -> EmbeddedGateway:
        """Start it; raises GatewayError if it cannot listen."""
        self._errors = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            self._command,
            cwd=Path(__file__).resolve().parent.parent,
            env=own_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # ^C is for the client, which then stops the gateway
        )
        self.pid = self._process.pid
        try:
            self._tell_credentials()
            self.url = json.loads(self._first_line())["url"]
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it and wait until it is gone."""
        self._stop()

    def _tell_credentials(self) -> None:
        """Send them through the pipe: an environment would show them to other processes."""
        stdin = cast(IO[bytes], self._process.stdin)
        with contextlib.suppress(BrokenPipeError):  # it has ended: its own words say why
            stdin.write(json.dumps(self._credentials).encode() + b"\n")
            stdin.flush()

    def _first_line(self) -> bytes:
        stdout = cast(IO[bytes], self._process.stdout)
        ready, _, _ = select.select([stdout], [], [], _START_TIMEOUT_S)
        line = stdout.readline() if ready else b""
        if not line:
            self._process.kill()
            self._process.wait()
            self._errors.seek(0)
            said = self._errors.read().decode(errors="replace").strip().splitlines()
            why = said[-1].removeprefix("error: ") if said else "it said nothing"
            raise GatewayError("gateway-not-started", f"the embedded gateway did not start: {why}")
        return line

    def _stop(self) -> None:
        with self._process, self._errors:
            cast(IO[bytes], self._process.stdin).close()
            try:
                self._process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                # Its supervisor ends the functions when it sees it gone.
                self._process.kill()
