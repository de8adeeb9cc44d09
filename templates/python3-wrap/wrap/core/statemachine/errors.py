"""Errors of states, and the causes of failed tasks."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Sequence
from traceback import walk_tb

#: Most characters of a cause: the limit of States Language.
LONGEST = 32_768
#: Most frames of a stack trace; the innermost frames are kept.
_MOST_FRAMES = 20


class StatesError(Exception):
    """A state that failed.

    Args:
        name: the Error Name, which Retry and Catch match: ``States.Runtime``, or the class of an
            exception.
    """

    def __init__(self, name: str, cause: str) -> None:
        super().__init__(f"{name}: {cause}")
        self.name = name
        self.cause = cause


class FailStateError(StatesError):
    """The error of a Fail state."""


def failure_of(code: str, message: str, caught: tuple[str, str] | None = None) -> StatesError:
    """Return a failed task's error; `caught` is name and cause if its function raised it.

    A timeout has an empty cause, as on AWS. `cause_of` writes any other cause.
    """
    if caught is not None:
        return StatesError(*caught)
    if code == "timeout":
        return StatesError("States.Timeout", "")
    return StatesError(code, cause_of(code, message))


def cause_of(kind: str, message: str, frames: Sequence[str] = ()) -> str:
    """Return the cause of a failed task as Lambda's JSON, which States.StringToJson reads.

    A text above `LONGEST` characters loses its frames first, then the end of `message`. Lone
    surrogates, which no encoding has, are escaped.
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
    """Return the frames of `error` in the function's own files, the innermost last.

    `own` maps a file to its path in the function's folder, or None for other files.
    """
    frames = [
        f"{file}:{line} in {frame.f_code.co_name}"
        for frame, line in walk_tb(error.__traceback__)
        if (file := own(frame.f_code.co_filename)) is not None
    ]
    return frames[-_MOST_FRAMES:]


def of_task(what: str, error: StatesError) -> StatesError:
    """Return an error about a task's input or answer (`what`); a Catch can take this error."""
    name = "States.TaskFailed" if error.name == "States.Runtime" else error.name
    return StatesError(name, f"{what}: {error.cause}")
