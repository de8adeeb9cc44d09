"""A Node.js handler: it runs in a Node process that belongs to the process of the task.

All Node.js handlers of a process share one, and so one event loop. It is started by what first
prepares a handler, never by a process from which others are forked.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from werkzeug.http import HTTP_STATUS_CODES

from wrap.config.wrap_spec import Seen
from wrap.core.errors import TaskError
from wrap.functions import styles
from wrap.functions.function_runner import FunctionRunner, Place, raised
from wrap.functions.node_process import Content, NodeProcess
from wrap.functions.public import PACKAGE
from wrap.functions.remote import asked
from wrap.observe import log
from wrap.values.value import JSON, TEXT, Object

if TYPE_CHECKING:
    from wrap.functions.task_io import TaskIO

#: How templates call handlers: with Express 4, with Express 5, by a callback, without a request.
STYLES = ("node", "node22", "node-callback", "node-classic")
#: A line of a stack trace: the function, if it has a name, the file and the line.
_FRAME = re.compile(r"^    at (?:(.*) \()?(?:file://)?(/[^()]*):(\d+):\d+\)?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler answers; `error` is the TaskError of an answer that stands for an error."""

    status: int
    kind: str
    headers: list[tuple[str, str]]
    content: bytes | bytearray
    error: TaskError | None


class Node(FunctionRunner):
    """A function with a ``handler.js``.

    Parameters
    ----------
    name, style
        Its name, and the style of its handler.
    folder
        Where its folder ``function`` is.
    """

    is_prepared = False
    forkable = False
    in_python = False

    def __init__(self, name: str, style: str, folder: Path) -> None:
        super().__init__(name, style)
        self._directory = folder
        self._folder = folder / PACKAGE
        self._loading = threading.Lock()
        self._loaded_in: NodeProcess | None = None
        self._task: int | None = None

    @classmethod
    def of(cls, name: str, style: str, place: Place) -> Self:
        return cls(name, style, place.folder / name)

    def prepare(self) -> None:
        """Load the handler into this process's Node process, which is started if there is none."""
        self._loaded()

    def arguments(
        self, given: Object, task_io: TaskIO | None, trace: Mapping[str, str]
    ) -> tuple[Any, ...]:
        """What the event is made of, and its body."""
        method, target, headers = asked(given, trace)
        body = given.view()
        lowered = {name.lower(): value for name, value in headers.items()}
        lowered["content-type"] = given.content_type or _unsaid_type(given)
        if len(body) or not isinstance(given.head, dict) or "CONTENT_LENGTH" in given.head:
            lowered.setdefault("content-length", str(len(body)))
        return {"method": method, "target": target or "/", "headers": lowered}, body

    def call(self, request: dict[str, Any], body: Content) -> Answer:
        """The handler's answer, whatever its status.

        Raises TaskError: ``raised`` or ``exited`` by the handler, or the Node process has died.
        """
        told = {"name": self.name, "style": self.style, "execution": log.marked(), **request}
        if self._task is not None:
            told["task"] = self._task
        answer, content = self._loaded().call(told, body)
        error = self._error(answer)
        if error is not None and "status" not in answer:
            raise error
        headers = styles.sent(answer["headers"])
        return Answer(answer["status"], answer["type"], headers, content, error)

    def answer(self, value: Any, seen: Seen) -> Object:
        if value.error is not None and seen is not Seen.BY_CLIENT:
            raise value.error
        line = f"{value.status} {HTTP_STATUS_CODES.get(value.status, 'Unknown').upper()}"
        found = styles.found(line, value.kind, value.headers, value.content, seen)
        return styles.unless_failed(value.status, found, seen)

    @contextmanager
    def marked(self, task: int) -> Iterator[None]:
        """Has the Node process show a tracer where runs in the block begin and end."""
        self._task = task
        try:
            yield
        finally:
            self._task = None

    def computed_s(self) -> float:
        return NodeProcess.own(self._directory).computed_s()

    def memory_mib(self) -> float:
        return NodeProcess.own(self._directory).memory_mib()

    def close(self) -> None:
        """End the Node process."""
        NodeProcess.end_own()

    def _loaded(self) -> NodeProcess:
        """The Node process, with the handler loaded. Raises ImportError where that fails."""
        process = NodeProcess.own(self._directory)
        if self._loaded_in is process:
            return process
        with self._loading:
            if self._loaded_in is not process:
                told = {"name": self.name, "load": str(self._folder / "handler")}
                answer, _ = process.call(told, b"")
                if error := self._error(answer):
                    raise ImportError(f"function {self.name}: {error.message}") from error
                self._loaded_in, self.is_prepared = process, True
                self.after_import()
        return process

    def _error(self, answer: dict[str, Any]) -> TaskError | None:
        """The error that the handler failed with, which is logged."""
        if "exited" in answer:
            message = f"the handler called process.exit({answer['exited']}): return instead"
            return TaskError("exited", message)
        if "error" not in answer:
            return None
        log.tell(self.name, answer["stack"] or f"{answer['error']}: {answer['message']}")
        frames = list(self._frames(answer["stack"]))
        place = frames[-1].partition(" in ")[0] if frames else ""
        return raised(answer["error"], answer["message"], frames, place)

    def _frames(self, stack: str) -> Iterator[str]:
        """The frames of the function's own files, the innermost last."""
        own = f"{self._folder}/"
        for name, file, line in reversed(_FRAME.findall(stack)):
            if file.startswith(own) and "/node_modules/" not in file:
                yield f"{file.removeprefix(own)}:{line} in {name or '<anonymous>'}"


def _unsaid_type(given: Object) -> str:
    """What the template says if nobody says it; of another task's output, JSON that it parses."""
    if isinstance(given.head, dict):
        return "text/plain"
    kind = given.answer_type()
    return TEXT if kind == JSON and bytes(given.view()[:1]) in b'"0123456789-tfn' else kind
