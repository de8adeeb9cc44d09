"""The States Language by tables: each case says which section documents its answer.

A case has the states of a machine, of which the first is entered, and their input. In place of
them it may have an `expression`, the output of a Pass, or a `rule` of a Choice, true if it matches.
`gives` is the machine's output, `fails` the name of its error, `refused` the path of the field
that is refused. `says` has to be in the message. `answers` are what the Tasks answer, by function
and attempt: values, or the `Error` and `Cause` that they fail with. `given` is what they get.
`file` is what the function ``file`` answers: a text, or a list with one for each call. `waits` are
the seconds that pass, each a number or the bounds of one.
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
from chiron.wrap.core.statemachine.errors import StatesError
from tests.rows import each_row

HERE = Path(__file__).parent
#: The one in C, where there is one, is several times as fast.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Functions:
    """What the Tasks of the cases run.

    ``echo`` answers its input, ``raise`` fails, ``flaky`` fails twice, ``late`` takes too long, and
    ``file`` answers a text.
    """

    def __init__(self, answers: dict[str, list[Any]], file: str | list[str]) -> None:
        self._calls = Counter[str]()
        self._answers = answers
        self._file = file

    def __call__(self, function: str, text: str) -> str:
        self._calls[function] += 1
        if function in self._answers:
            answer = self._answers[function][self._calls[function] - 1]
            if isinstance(answer, dict) and "Error" in answer:
                raise StatesError(answer["Error"], answer.get("Cause", ""))
            return json.dumps(answer)
        if function == "file":
            each = [self._file] if isinstance(self._file, str) else self._file
            return each[self._calls[function] - 1]
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
        table = yaml.load(file.read_text(), LOADER)  # noqa: S506 (a safe one)
        for section, rows in table["sections"].items():
            for row in rows:
                beside = table.get("beside", {}) | row.get("beside", {})
                name = f"{file.stem}, {section}: {row['case']}"
                yield pytest.param(row | {"beside": beside}, id=name)
                assert table["sources"][section.split(":")[0]]


def made(case: dict[str, Any], jsonata: bool) -> dict[str, Any]:
    """The states of a case that has an expression or a rule alone."""
    if "rule" in case:
        yes, no = ({"Type": "Pass", "Result": result, "End": True} for result in (True, False))
        choice = {"Type": "Choice", "Choices": [case["rule"] | {"Next": "Yes"}], "Default": "No"}
        return {"A": choice, "Yes": yes, "No": no}
    state = {"Type": "Pass", "Parameters": {"v.$": case["expression"]}, "OutputPath": "$.v"}
    if jsonata:
        state = {"Type": "Pass", "Output": f"{{% {case['expression']} %}}"}
    return {"A": state | {"End": True}}


def parsed(case: dict[str, Any]) -> Any:
    """The workflow of a case, with a Task besides: a workflow needs one."""
    jsonata = case["beside"].get("QueryLanguage") == "JSONata"
    states = case["states"] if "states" in case else made(case, jsonata)
    first, *_ = states
    choice = {"Condition": "{% true %}", "Next": first}
    start = {"Type": "Choice", "QueryLanguage": "JSONata", "Choices": [choice], "Default": "Task"}
    task = {"Type": "Task", "Resource": "echo", "End": True}
    if not jsonata:
        start = {"Type": "Choice", "Default": "Task"}
        start["Choices"] = [{"Variable": "$", "IsPresent": True, "Next": first}]
    document = {"StartAt": "Start", "States": {"Start": start, "Task": task} | states}
    return parse_states(document | case["beside"], "demo")


@each_row("case", cases())
def test_a_machine_answers_as_documented(case: dict[str, Any]) -> None:
    if "refused" in case:
        with pytest.raises(ChironError) as refused:
            parsed(case)
        assert refused.value.path == f"States.{case['refused']}"
        assert case.get("says", "") in refused.value.message
        return
    request = json.dumps(case.get("input", {})).encode()
    done = execute(parsed(case), request, Functions(case.get("answers", {}), case.get("file", "")))
    if "given" in case:
        assert [json.loads(text) for text in done.inputs.values()] == case["given"]
    if "waits" in case:
        passed = [each.wait_ms / 1000 for each in done.trace if each.task is None]
        bounds = [each if isinstance(each, list) else [each, each] for each in case["waits"]]
        for seconds, (least, most) in zip(passed, bounds, strict=True):
            assert least <= seconds <= most
    if "fails" in case:
        assert done.error is not None, done.output
        assert done.error.name == case["fails"]
        assert case.get("says", "") in done.error.cause
        return
    assert done.error is None
    assert json.loads(done.output or "") == case["gives"]
