"""The interface between tasks and kinds of functions: handlers, programs, remote functions.

A kind is a subclass in a module of its own; `wrap.functions.kinds` finds it by style.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wrap.config.redaction import redacted
from wrap.core.errors import TaskError
from wrap.core.statemachine.errors import cause_of
from wrap.functions.process_state import Changes

if TYPE_CHECKING:
    from wrap.core.wrap_spec import Seen, Wrap
    from wrap.functions.task_io import TaskIO
    from wrap.values.value import Object

_UNCHANGED = Changes([], [], [])
_NOTHING = nullcontext()
#: Characters of an error message; the cause and the log have more.
SHOWN = 1000


@dataclass(frozen=True)
class Place:
    """The environment of a wrap's functions."""

    wrap: Wrap
    #: Contains a folder for each function whose code is in the wrap.
    folder: Path
    #: The gateway that calls other functions.
    gateway_url: str
    #: The longest answer of another function, in bytes.
    longest: int
    #: Whether all processes of the plan are interpreters of one process, which has one working
    #: directory; and whether the functions run in a sub-interpreter of it.
    one_process: bool = False
    is_interpreter: bool = False


class FunctionRunner(ABC):
    """Prepares, calls and closes one function. Optional steps do nothing by default.

    Raises ImportError if it cannot run at that place, ValueError if its declaration is incomplete.
    """

    #: Whether `call` can run without an import.
    is_prepared = True
    #: Whether `settle` must set this process's working directory.
    unsettled = False
    #: Whether a run may emit outputs before its end.
    uses_io = False
    #: Whether it may read more of a request than the body.
    sees_head = True
    #: Whether its calls start programs, which the reaper ends.
    starts_programs = False
    #: Whether a process may fork after preparing it.
    forkable = True
    #: Whether it runs under the GIL.
    in_python = True
    #: Its observed changes of process-wide state.
    changes = _UNCHANGED

    def __init__(self, name: str, style: str, place: Place) -> None:
        self.name = name
        self.style = style
        #: Called when `prepare` has imported the function.
        self.after_import: Callable[[], object] = lambda: None

    def prepare(self) -> None:  # noqa: B027 (optional)
        """Import the function, once. Raises ImportError."""

    def settle(self) -> None:  # noqa: B027 (optional)
        """Change to its working directory, as the only function of this process."""

    def restore(self) -> None:  # noqa: B027 (optional)
        """Make the changes of its import to process-wide state again."""

    def observed(self) -> AbstractContextManager[None]:
        """Observe one run; its changes of process-wide state are in `changes` afterwards."""
        return nullcontext()

    @abstractmethod
    def arguments(
        self, given: Object, task_io: TaskIO | None, trace: Mapping[str, str]
    ) -> tuple[Any, ...]:
        """Return the arguments of `call` for the input `given` and the task's trace headers."""

    def surroundings(
        self, given: Object, trace: Mapping[str, str]
    ) -> AbstractContextManager[object]:
        """Return the context manager in which the function is called."""
        return _NOTHING

    @abstractmethod
    def call(self, *arguments: Any) -> Any:
        """Run the function and return its answer in the form of its kind."""

    @abstractmethod
    def answer(self, value: Any, seen: Seen) -> Object:
        """Convert the value that `call` returned into the task's output.

        Raises TaskError, ``bad-output`` or ``status``, if that fails.
        """

    @contextmanager
    def marked(self, task: int) -> Iterator[None]:
        """Mark begin and end of the task's run for a tracer of system calls."""
        os.access(f"/chiron/begin/{task}", os.F_OK)
        try:
            yield
        finally:
            os.access(f"/chiron/end/{task}", os.F_OK)

    def computed_s(self) -> float:
        """Return the CPU seconds of the runtime process beside this one; 0 without one."""
        return 0.0

    def memory_mib(self) -> float:
        """Return the peak memory of the runtime process in MiB."""
        return 0.0

    def bare_mib(self) -> float:
        """Return the runtime process's memory without functions in MiB: its functions share it."""
        return 0.0

    def close(self) -> None:  # noqa: B027 (optional)
        """Release its resources: the wrap is ending."""


def raised(name: str, said: str, frames: Sequence[str]) -> TaskError:
    """Return the task's error for an exception in its function.

    Args:
        name, said: the exception's class and message.
        frames: the frames in the function's own files, ``FILE:LINE in NAME``, the innermost last.
    """
    said = redacted(said)
    place = frames[-1].rpartition(" in ")[0] if frames else ""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    first = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
    message = ": ".join(filter(None, (name, first)))[:SHOWN] + (f" ({place})" if place else "")
    return TaskError(
        "raised", message, caught=(name, cause_of(name, said, list(map(redacted, frames))))
    )
