"""The States Language by tables: each case says which section documents its answer.

A case has the states of a machine, of which the first is entered, and their input. `gives` is the
machine's output, `fails` the name of its error, `refused` the path of the field that is refused.
`says` has to be in the message.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from chiron.workflow.asl import parse_states
from chiron.workflow.errors import ChironError
from chiron.workflow.execute import execute
from chiron.workflow.states.errors import StatesError

HERE = Path(__file__).parent


class Functions:
    """What the Tasks of the cases run.

    ``echo`` answers its input, ``raise`` fails, ``flaky`` fails twice, and ``late`` takes too long.
    """

    def __init__(self) -> None:
        self._calls = Counter[str]()

    def __call__(self, function: str, text: str) -> str:
        self._calls[function] += 1
        if function == "raise":
            raise StatesError("Bad", text)
        if function == "late":
            raise StatesError("States.Timeout", text)
        if function == "flaky" and self._calls[function] < 3:
            raise StatesError("Flaky", text)
        return text


def cases() -> Iterator[Any]:
    """The cases of all tables, each by its file, section and title."""
    for file in sorted(HERE.glob("*.yaml")):
        table = yaml.safe_load(file.read_text())
        for section, rows in table["sections"].items():
            for row in rows:
                beside = table.get("beside", {}) | row.get("beside", {})
                yield pytest.param(row | {"beside": beside}, id=f"{file.stem}-{row['case']}")
                assert table["sources"][section.split(":")[0]]


def parsed(case: dict[str, Any]) -> Any:
    """The workflow of a case, with a Task besides: a workflow needs one."""
    first, *_ = case["states"]
    choice = {"Condition": "{% true %}", "Next": first}
    start = {"Type": "Choice", "QueryLanguage": "JSONata", "Choices": [choice], "Default": "Task"}
    task = {"Type": "Task", "Resource": "echo", "End": True}
    if case["beside"].get("QueryLanguage") != "JSONata":
        start = {"Type": "Choice", "Default": "Task"}
        start["Choices"] = [{"Variable": "$", "IsPresent": True, "Next": first}]
    states = {"Start": start, "Task": task} | case["states"]
    return parse_states({"StartAt": "Start", "States": states} | case["beside"], "demo")


@pytest.mark.parametrize("case", cases())
def test_a_machine_answers_as_documented(case: dict[str, Any]) -> None:
    if "refused" in case:
        with pytest.raises(ChironError) as refused:
            parsed(case)
        assert refused.value.path == f"States.{case['refused']}"
        assert case.get("says", "") in refused.value.message
        return
    request = json.dumps(case.get("input", {})).encode()
    done = execute(parsed(case), request, Functions())
    if "fails" in case:
        assert done.error is not None, done.output
        assert done.error.name == case["fails"]
        assert case.get("says", "") in done.error.cause
        return
    assert done.error is None
    assert json.loads(done.output or "") == case["gives"]
