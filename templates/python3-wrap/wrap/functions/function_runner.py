"""The seam between tasks and the kinds of functions that they use: handlers, programs, and others.

A kind is a subclass in a module of its own; `wrap.functions.kinds` finds it by the style.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from wrap.config.redaction import redacted
from wrap.core.errors import TaskError
from wrap.core.statemachine.errors import cause_of
from wrap.functions.process_state import Changes

if TYPE_CHECKING:
    from wrap.config.wrap_spec import Seen, Wrap
    from wrap.functions.task_io import TaskIO
    from wrap.values.value import Object

_UNCHANGED = Changes([], [], [])
_NOTHING = nullcontext()
#: Characters of the line that tells of an error; its cause, and the log, have more.
SHOWN = 1000


@dataclass(frozen=True)
class Place:
    """Where the functions of a wrap run."""

    wrap: Wrap
    #: Has a folder of each function whose code is in the wrap.
    folder: Path
    #: Where other functions are called.
    gateway_url: str
    #: Bytes that the answer of another function may have.
    longest: int


class FunctionRunner(ABC):
    """Prepares, calls and closes one function. What a kind does without does nothing."""

    #: Whether `call` needs no import.
    is_prepared = True
    #: Whether this process has to take the function's working directory: see `settle`.
    unsettled = False
    #: Whether a run has outputs of its own before its end.
    uses_io = False
    #: Whether it may look at more of a request than the body.
    sees_head = True
    #: Whether its calls start programs, which a reaper ends.
    starts_programs = False
    #: Whether a process in which it is prepared may be forked.
    forkable = True
    #: Whether it runs under the GIL.
    in_python = True
    #: What it was seen to change of what its process shares.
    changes = _UNCHANGED

    def __init__(self, name: str, style: str) -> None:
        self.name = name
        self.style = style
        #: Called when `prepare` has imported something.
        self.after_import: Callable[[], object] = lambda: None

    @classmethod
    @abstractmethod
    def of(cls, name: str, style: str, place: Place) -> Self:
        """The function `name` of a wrap.

        Raises ImportError if it cannot run there, ValueError if the wrap declares too little of it.
        """

    def prepare(self) -> None:  # noqa: B027 (optional)
        """Import what `call` needs, once. Raises ImportError if that fails."""

    def settle(self) -> None:  # noqa: B027 (optional)
        """Take its working directory, as the only function that this process runs."""

    def restore(self) -> None:  # noqa: B027 (optional)
        """Set again what its import has set of what the process shares."""

    def observed(self) -> AbstractContextManager[None]:
        """A block with one run, whose changes of what the process shares `changes` has then."""
        return nullcontext()

    @abstractmethod
    def arguments(
        self, given: Object, task_io: TaskIO | None, trace: Mapping[str, str]
    ) -> tuple[Any, ...]:
        """What `call` takes for the input `given`; `trace` are the headers of the task's trace."""

    def surroundings(
        self, given: Object, trace: Mapping[str, str]
    ) -> AbstractContextManager[object]:
        """What the function finds around it while it is called."""
        return _NOTHING

    @abstractmethod
    def call(self, *arguments: Any) -> Any:
        """Run the function; returns its answer in its own form."""

    @abstractmethod
    def answer(self, value: Any, seen: Seen) -> Object:
        """The output of a task whose `call` returned `value`.

        Raises TaskError, ``bad-output`` or ``status``, if the value is no output.
        """

    @contextmanager
    def marked(self, task: int) -> Iterator[None]:
        """Shows a tracer where the block, a run as that task, begins and ends."""
        os.access(f"/chiron/begin/{task}", os.F_OK)
        try:
            yield
        finally:
            os.access(f"/chiron/end/{task}", os.F_OK)

    def computed_s(self) -> float:
        """CPU time so far, in seconds, of a process that runs it beside this one."""
        return 0.0

    def memory_mib(self) -> float:
        """The most memory that such a process has had."""
        return 0.0

    def bare_mib(self) -> float:
        """What that process takes without any function: all that run in it share it."""
        return 0.0

    def close(self) -> None:  # noqa: B027 (optional)
        """Free what it holds: the wrap is ending."""


def raised(name: str, said: str, frames: Sequence[str], place: str) -> TaskError:
    """The error of a task whose function raised an error `name` that says `said`.

    `frames` are those of its own files, and `place` is the last of them, or empty.
    """
    said = redacted(said)
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    first = " ".join(lines[:2] if lines and lines[0].endswith(":") else lines[:1])
    message = ": ".join(filter(None, (name, first)))[:SHOWN] + (f" ({place})" if place else "")
    return TaskError(
        "raised", message, caught=(name, cause_of(name, said, list(map(redacted, frames))))
    )
