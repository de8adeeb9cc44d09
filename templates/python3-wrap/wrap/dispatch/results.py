"""The results of the tasks of a failed execution."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from wrap.config.redaction import redacted
from wrap.core.errors import TaskError
from wrap.core.program import MAIN
from wrap.net.messages import Result

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution

#: The error of tasks that have not ended when another task fails the execution.
_UNENDED = TaskError("cancelled", "another task has failed")


def all_results(execution: Execution, error: TaskError) -> list[Result]:
    """Return all results of this wrap, if the execution has failed with `error`.

    Unfinished tasks that `error` names get this error; the others get ``cancelled``.
    """
    wrap, began = execution.runtime.wrap, execution.run.began or {}
    function, code = error.function, error.code
    known = any(
        (each.error["function"], each.error["code"]) == (function, code)
        for each in execution.results
        if each.error is not None
    )
    failed = set() if known else set((function or "").split(", "))
    unended = began.keys() - {each.task for each in execution.results} - wrap.emits.keys()
    return execution.results + [
        failure(execution, number, error if wrap.function_of(number) in failed else _UNENDED)
        for number in sorted(unended)
        if wrap.runs(number)
    ]


def failure(execution: Execution, number: int, error: TaskError) -> Result:
    """Return the result of a task that failed without a result of its own."""
    wrap, now = execution.runtime.wrap, time.monotonic()
    function, ident = wrap.function_of(number), execution.ident.number
    began = (execution.run.began or {}).get(number, now)
    place = execution.part.place_of.get(number)
    process = place if isinstance(place, int) else MAIN
    return Result(
        *(ident, number, function, wrap.name, process, began, now), error=error.as_dict(redacted)
    )
