"""A handler in a process of another runtime, such as Node.js or a JVM.

Each process of the wrap has one runtime process, shared by all handlers of that runtime. The first
`prepare` starts it, but never in a process that forks others.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from wrap.core.errors import TaskError
from wrap.core.wrap_spec import Seen
from wrap.functions import styles
from wrap.functions.function_runner import FunctionRunner, Place, raised
from wrap.functions.process_state import Changes
from wrap.functions.public import PACKAGE
from wrap.functions.remote import asked
from wrap.functions.runtime_process import Content, RuntimeProcess
from wrap.observe import log
from wrap.values.value import Object, is_request

if TYPE_CHECKING:
    from wrap.functions.task_io import TaskIO


@dataclass(frozen=True, slots=True)
class Answer:
    """A handler's answer; `error` is the TaskError that an error's answer stands for."""

    status: int
    kind: str
    headers: list[tuple[str, str]]
    content: bytes | bytearray
    error: TaskError | None


class InRuntime(FunctionRunner):
    """A function whose handler runs in the process `runtime`.

    `exits` is the call by which a handler ends that process.
    """

    runtime: ClassVar[type[RuntimeProcess]]
    exits: ClassVar[str]
    is_prepared = False
    forkable = False
    in_python = False

    def __init__(self, name: str, style: str, place: Place) -> None:
        super().__init__(name, style, place)
        self._directory = place.folder / name
        self.folder = self._directory / PACKAGE
        self._loading = threading.Lock()
        self._loaded_in: RuntimeProcess | None = None
        self._task: int | None = None
        self._at_import: set[str] | None = None
        self._in_runs = set[str]()

    @abstractmethod
    def code(self) -> str:
        """Return what the process loads, such as a class path. Raises ImportError."""

    @abstractmethod
    def unsaid_type(self, given: Object, *, is_request: bool) -> str:
        """Return the default content type of a request, or of another task's output.

        It is empty if the handler sees none.
        """

    @abstractmethod
    def joined(self, name: str, first: str, second: str) -> str:
        """Return what the template makes of two values of the header `name`, in lower case."""

    @abstractmethod
    def frames(self, answer: Mapping[str, Any]) -> Sequence[str]:
        """Return an error's frames in the function's own files, the innermost last."""

    @property
    def changes(self) -> Changes:  # type: ignore[override]
        """Its observed changes of the runtime process's shared state."""
        return Changes(sorted(self._in_runs), sorted(self._at_import or ()), [])

    @contextmanager
    def observed(self) -> Iterator[None]:
        before = self.state()
        if self._at_import is None:  # before the first run in this process
            self._at_import = set(before)
        yield
        self._in_runs.update(name for name, _ in before.items() ^ self.state().items())

    def state(self) -> dict[str, str]:
        """Return the runtime's state that differs from its start: name -> value."""
        answer, _ = self._loaded().call({"state": "now"}, b"")
        return answer

    def prepare(self) -> None:
        """Load the handler into the runtime process, and start that if needed."""
        self._loaded()

    def arguments(
        self, given: Object, task_io: TaskIO | None, trace: Mapping[str, str]
    ) -> tuple[Any, ...]:
        """Return the request's method, target and headers, and its body."""
        method, target, headers = asked(given, trace, self.joined)
        body = given.view()
        lowered = {name.lower(): value for name, value in headers.items()}
        if kind := given.content_type or self.unsaid_type(given, is_request=is_request(given)):
            lowered["content-type"] = kind
        if len(body) or not isinstance(given.head, dict) or "CONTENT_LENGTH" in given.head:
            lowered.setdefault("content-length", str(len(body)))
        return {"method": method, "target": target or "/", "headers": lowered}, body

    def call(self, request: dict[str, Any], body: Content) -> Answer:
        """Call the handler and return its answer of any status.

        Raises TaskError: ``raised`` or ``exited`` by the handler, or the runtime process died.
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
        line = styles.status_line(value.status)
        found = styles.found(line, value.kind, value.headers, value.content, seen)
        return styles.unless_failed(value.status, found, seen)

    @contextmanager
    def marked(self, task: int) -> Iterator[None]:
        """Make the runtime process mark begin and end of runs for a tracer."""
        self._task = task
        try:
            yield
        finally:
            self._task = None

    def computed_s(self) -> float:
        return self.runtime.own(self._directory).computed_s()

    def memory_mib(self) -> float:
        return self.runtime.own(self._directory).memory_mib()

    def bare_mib(self) -> float:
        return self.runtime.own(self._directory).bare_mib

    def close(self) -> None:
        self.runtime.end_own()

    def _loaded(self) -> RuntimeProcess:
        """Return the runtime process after loading the handler. Raises ImportError."""
        process = self.runtime.own(self._directory)
        if self._loaded_in is process:
            return process
        with self._loading:
            if self._loaded_in is not process:
                answer, _ = process.call({"name": self.name, "load": self.code()}, b"")
                if error := self._error(answer):
                    raise ImportError(f"function {self.name}: {error.message}") from error
                process.bare_mib = process.bare_mib or int(answer["bare_kib"]) / 1024
                self._loaded_in, self.is_prepared = process, True
                self.after_import()
        return process

    def _error(self, answer: dict[str, Any]) -> TaskError | None:
        """Log the handler's error and return it, or None."""
        if "exited" in answer:
            message = f"the handler called {self.exits}({answer['exited']}): return instead"
            return TaskError("exited", message)
        if said := answer.get("shown"):
            log.tell(self.name, said)
        if "error" not in answer:
            return None
        return raised(answer["error"], answer["message"], self.frames(answer))
