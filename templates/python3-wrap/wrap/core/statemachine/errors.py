"""How states fail."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from traceback import walk_tb

#: Most characters of a cause: the limit of States Language.
LONGEST = 32_768
#: Most frames of a stack trace, those where the error was raised.
_MOST_FRAMES = 20


class StatesError(Exception):
    """A state that failed.

    Args:
        name: the Error Name, which Retry and Catch match: ``States.Runtime``, or what a task
            raised.
        cause: a sentence for people.
    """

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(f"{name}: {cause}")
        self.name = name
        self.cause = cause


class FailStateError(StatesError):
    """What a Fail state ends with."""


def failure_of(code: str, message: str, caught: tuple[str, str] | None = None) -> StatesError:
    """A failed task's error; `caught` is its name and cause if its function raised it.

    A timeout has an empty cause, as on AWS. Any other cause is what `cause_of` writes.
    """
    if caught is not None:
        return StatesError(*caught)
    if code == "timeout":
        return StatesError("States.Timeout", "")
    return StatesError(code, cause_of(code, message))


def cause_of(kind: str, message: str, frames: Sequence[str] = ()) -> str:
    """The cause of a failed task, as Lambda writes it: JSON that States.StringToJson reads.

    The text has at most `LONGEST` characters: the frames go first, then the end of `message`.
    Halves of surrogate pairs, which no encoding has, are written as escapes.
    """
    said = message.encode(errors="backslashreplace").decode()

    def text(characters: int, trace: Sequence[str] = ()) -> str:
        fields = {"errorMessage": said[:characters], "errorType": kind, "stackTrace": trace}
        return json.dumps(fields, ensure_ascii=False)

    whole = text(len(said), list(frames))
    if len(whole) <= LONGEST:
        return whole
    lengths = range(min(len(said), LONGEST) + 1)
    return text(bisect_right(lengths, LONGEST, key=lambda each: len(text(each))) - 1)


def frames_of(error: BaseException, own: Callable[[str], str | None]) -> list[str]:
    """The frames of the function's own files that `error` passed through, the innermost last.

    `own` returns the path of a file within the function's folder; None for any other file.
    """
    frames = [
        f"{file}:{line} in {frame.f_code.co_name}"
        for frame, line in walk_tb(error.__traceback__)
        if (file := own(frame.f_code.co_filename)) is not None
    ]
    return frames[-_MOST_FRAMES:]


def of_task(what: str, error: StatesError) -> StatesError:
    """`error` about `what` of a task, its input or answer: a Catch takes that, unlike others."""
    name = "States.TaskFailed" if error.name == "States.Runtime" else error.name
    return StatesError(name, f"{what}: {error.cause}")
