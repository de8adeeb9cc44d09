"""A handler that runs in a process of another runtime, which belongs to the process of the task.

All handlers of a runtime share one in a process. It is started by what first prepares a handler,
never by a process from which others are forked.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from wrap.config.wrap_spec import Seen
from wrap.core.errors import TaskError
from wrap.functions import styles
from wrap.functions.function_runner import FunctionRunner, Place, raised
from wrap.functions.process_state import Changes
from wrap.functions.public import PACKAGE
from wrap.functions.remote import asked
from wrap.functions.runtime_process import Content, RuntimeProcess
from wrap.observe import log
from wrap.values.value import Object

if TYPE_CHECKING:
    from wrap.functions.task_io import TaskIO


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler answers; `error` is the TaskError of an answer that stands for an error."""

    status: int
    kind: str
    headers: list[tuple[str, str]]
    content: bytes | bytearray
    error: TaskError | None


class InRuntime(FunctionRunner):
    """A function of a language whose `runtime` runs it; a handler ends that by the call `exits`.

    Args:
        name, style: its name, and the style of its handler.
        folder: where its folder ``function`` is.
    """

    runtime: ClassVar[type[RuntimeProcess]]
    exits: ClassVar[str]
    is_prepared = False
    forkable = False
    in_python = False

    def __init__(self, name: str, style: str, folder: Path) -> None:
        super().__init__(name, style)
        self._directory = folder
        self.folder = folder / PACKAGE
        self._loading = threading.Lock()
        self._loaded_in: RuntimeProcess | None = None
        self._task: int | None = None
        self._at_import: set[str] | None = None
        self._in_runs = set[str]()

    @classmethod
    def of(cls, name: str, style: str, place: Place) -> Self:
        return cls(name, style, place.folder / name)

    @abstractmethod
    def code(self) -> str:
        """What the process loads. Raises ImportError if that cannot be made."""

    @abstractmethod
    def unsaid_type(self, given: Object) -> str:
        """The content type of an input that has none; empty if the handler sees none."""

    @abstractmethod
    def frames(self, answer: Mapping[str, Any]) -> Sequence[str]:
        """The frames of the function's own files in an error, the innermost last."""

    @property
    def changes(self) -> Changes:  # type: ignore[override]
        """What it was seen to change of what its process of the runtime shares."""
        return Changes(sorted(self._in_runs), sorted(self._at_import or ()), [])

    @contextmanager
    def observed(self) -> Iterator[None]:
        before = self.state()
        if self._at_import is None:  # nothing has run in this process yet
            self._at_import = set(before)
        yield
        self._in_runs.update(name for name, _ in before.items() ^ self.state().items())

    def state(self) -> dict[str, str]:
        """What is not as it was when the process started, with its values."""
        answer, _ = self._loaded().call({"state": "now"}, b"")
        return answer

    def prepare(self) -> None:
        """Load the handler into this process's process of the runtime, which may have to start."""
        self._loaded()

    def arguments(
        self, given: Object, task_io: TaskIO | None, trace: Mapping[str, str]
    ) -> tuple[Any, ...]:
        """What the request is made of, and its body."""
        method, target, headers = asked(given, trace)
        body = given.view()
        lowered = {name.lower(): value for name, value in headers.items()}
        if kind := given.content_type or self.unsaid_type(given):
            lowered["content-type"] = kind
        if len(body) or not isinstance(given.head, dict) or "CONTENT_LENGTH" in given.head:
            lowered.setdefault("content-length", str(len(body)))
        return {"method": method, "target": target or "/", "headers": lowered}, body

    def call(self, request: dict[str, Any], body: Content) -> Answer:
        """The handler's answer, whatever its status.

        Raises TaskError: ``raised`` or ``exited`` by the handler, or the process has died.
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
        """Has the process show a tracer where runs in the block begin and end."""
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
        """The process, with the handler loaded. Raises ImportError where that fails."""
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
        """The error that the handler failed with, which is logged."""
        if "exited" in answer:
            message = f"the handler called {self.exits}({answer['exited']}): return instead"
            return TaskError("exited", message)
        if "error" not in answer:
            return None
        log.tell(self.name, answer["stack"] or f"{answer['error']}: {answer['message']}")
        frames = self.frames(answer)
        place = frames[-1].partition(" in ")[0] if frames else ""
        return raised(answer["error"], answer["message"], frames, place)
