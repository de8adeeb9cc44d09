"""A Node.js handler; the handlers of a process share one event loop."""

from __future__ import annotations

import os
import re
import select
import socket
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from wrap.functions.in_runtime import InRuntime
from wrap.functions.runtime_process import RuntimeProcess
from wrap.values.value import JSON, TEXT, Object

#: The program that Node runs.
_WORKER = Path(__file__).with_name("node_worker.js")
_TOKEN = "CHIRON_NODE_TOKEN"  # noqa: S105 (the name of the variable)
#: How fast a working event loop notices a closed connection, in milliseconds.
_NOTICE_MS = 1000
#: Headers of which Node keeps the first.
_ONCE = frozenset(
    {"age", "authorization", "etag", "expires", "from", "host", "if-modified-since"}
    | {"if-unmodified-since", "last-modified", "location", "max-forwards", "proxy-authorization"}
    | {"referer", "retry-after", "server", "user-agent"}
)
#: A line of a stack trace: function name, if any, file and line.
_FRAME = re.compile(r"^    at (?:(.*) \()?(?:file://)?(/[^()]*):(\d+):\d+\)?$", re.MULTILINE)
_ENCODER, _DECODER = msgspec.json.Encoder(), msgspec.json.Decoder(dict[str, Any])


class NodeProcess(RuntimeProcess):
    """A Node process; headers are JSON."""

    program, runtime, called = "node", "Node.js", "Node"

    def start(
        self, program: str, listener: socket.socket, folder: Path, token: str
    ) -> subprocess.Popen[bytes]:
        theirs, ours = os.pipe()
        self._lifeline = os.fdopen(ours, "wb")  # the process ends when this pipe closes
        descriptors = [listener.fileno(), theirs]
        try:
            return subprocess.Popen(
                [self.program, str(_WORKER), *map(str, descriptors)],  # its process.title
                executable=program,
                cwd=folder,
                env={**os.environ, _TOKEN: token},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=descriptors,
            )
        finally:
            os.close(theirs)

    def encoded(self, told: Mapping[str, Any]) -> bytes:
        return _ENCODER.encode(told)

    def decoded(self, told: bytes) -> dict[str, Any]:
        return _DECODER.decode(told)

    def give_up(self, connection: socket.socket, told: Mapping[str, Any]) -> None:
        """Cancel a call; kill the process if its event loop does not notice, as it hangs."""
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
            poll = select.poll()
            poll.register(connection, select.POLLIN)
            if not poll.poll(_NOTICE_MS):
                self.kill()


class Node(InRuntime):
    """A function with a ``handler.js``."""

    runtime, exits = NodeProcess, "process.exit"

    def code(self) -> str:
        return str(self.folder / "handler")

    def unsaid_type(self, given: Object, *, is_request: bool) -> str:
        """Return the template's default, or the output's type; text for JSON it would not parse."""
        if is_request:
            return "text/plain"
        kind = given.answer_type()
        return TEXT if kind == JSON and bytes(given.view()[:1]) in b'"0123456789-tfn' else kind

    def joined(self, name: str, first: str, second: str) -> str:
        if name in _ONCE:
            return first
        return f"{first}{'; ' if name == 'cookie' else ', '}{second}"

    def frames(self, answer: Mapping[str, Any]) -> Sequence[str]:
        own = f"{self.folder}/"
        return [
            f"{file.removeprefix(own)}:{line} in {name or '<anonymous>'}"
            for name, file, line in reversed(_FRAME.findall(answer["stack"]))
            if file.startswith(own) and "/node_modules/" not in file
        ]
