"""What the tests of the vocabulary share: catching refusals, building machines and plans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from workflow.errors import ChironError

Refused = Callable[..., ChironError]
Machine = Callable[..., dict[str, Any]]


@pytest.fixture
def refused() -> Refused:
    """Calls a function that has to raise ChironError; returns the error."""

    def refused(call: Callable[..., object], *args: object, **kwargs: object) -> ChironError:
        with pytest.raises(ChironError) as caught:
            call(*args, **kwargs)
        error = caught.value
        assert error.message and str(error).isprintable(), "an error is one line"
        return error

    return refused


@pytest.fixture
def machine() -> Machine:
    """A state machine whose states run in the order given; a string value is a Task's function.

    ``machine(A="f", B=[["g"], ["h"]])`` runs task A, then a Parallel B whose branches are Tasks
    named after their functions.
    """

    def task(function: str, following: dict[str, Any]) -> dict[str, Any]:
        return {"Type": "Task", "Resource": function, **following}

    def chain(states: dict[str, Any]) -> dict[str, Any]:
        names = list(states)
        result = {}
        for name, after in zip(names, [*names[1:], None], strict=True):
            following = {"Next": after} if after else {"End": True}
            state = states[name]
            if isinstance(state, str):
                result[name] = task(state, following)
            elif isinstance(state, list):
                branches = [chain({function: function for function in branch}) for branch in state]
                result[name] = {"Type": "Parallel", "Branches": branches, **following}
            else:
                result[name] = {
                    **state,
                    **({} if state["Type"] in ("Succeed", "Fail") else following),
                }
        return {"StartAt": names[0], "States": result}

    return lambda **states: chain(states)
