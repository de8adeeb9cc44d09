"""State machines whose tasks are answered by mocks: a whole machine, or a single state.

The terms are AWS's. A single state is tested as by TestState. The mocks of a machine are the
MockedResponses of Step Functions Local, by the names of states.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from chiron.workflow.asl import read_states
from chiron.workflow.asl_resources import tasks_of
from chiron.workflow.asl_shapes import listed, states_in
from chiron.workflow.asl_transitions import transitions
from chiron.workflow.documents import parse_json
from chiron.workflow.errors import ChironError
from chiron.workflow.execute import Execution, execute
from chiron.workflow.model import Task, Workflow
from chiron.workflow.names import AsWritten, shown
from chiron.workflow.running import MOST, GivenContext
from chiron.wrap.core.statemachine.context import Context
from chiron.wrap.core.statemachine.errors import StatesError
from chiron.wrap.core.statemachine.maps import reader_of, writer_of
from chiron.wrap.core.statemachine.retries import names_of, retrier_for

#: A state's answer: JSON, or the error with which it fails.
Mock = str | StatesError
#: The prefix of placeholders for the successors of the tested state.
_NEXT = "next: "
#: The state before the tested state, which assigns the variables; and the state in a mocked branch.
_BEFORE, _WITHIN = "(variables)", "(mocked)"
#: The sections of the context object and their fields (AWS Step Functions Developer Guide,
#: "Accessing execution data from the Context object in Step Functions").
_CONTEXT = {
    "Execution": ("Id", "Input", "Name", "RedriveCount", "RedriveTime", "RoleArn", "StartTime"),
    "State": ("EnteredTime", "Name", "RetryCount"),
    "StateMachine": ("Id", "Name"),
    "Task": ("Token",),
    "Map": ("Item",),
}
_ATTEMPTS = re.compile(r"(\d+)(?:-(\d+))?")


class Mocks:
    """The answers of states, by name and attempt, counted from 0."""

    def __init__(self, answers: Mapping[str, list[tuple[range, Mock]]]) -> None:
        self.answers = answers
        self._begun = Counter[str]()

    def answer(self, state: str) -> str:
        """Return the answer to the next attempt of `state`. Raises StatesError, ``no-mock``."""
        attempt = self._begun[state]
        self._begun[state] += 1
        for attempts, mock in self.answers.get(state, ()):
            if attempt in attempts:
                if isinstance(mock, StatesError):
                    raise mock
                return mock
        message = f"no mock answers attempt {attempt} of state {shown(state)}: add one to --mocks"
        raise ChironError("no-mock", message, path=state, functions=[state])


def read_mocks(document: Any) -> Mocks:
    """Read the mocks of a document: state -> attempt, or FIRST-LAST -> Return or Throw."""
    answers: dict[str, list[tuple[range, Mock]]] = {}
    for state, by_attempt in _object(document, "").items():
        answers[state] = found = []
        for attempts, answer in _object(by_attempt, state).items():
            path = f"{state}.{attempts}"
            matched = _ATTEMPTS.fullmatch(attempts)
            if matched is None:
                message = f"{shown(attempts)} is no attempt: write 0, or 1-2 for several"
                raise ChironError("bad-mock", message, path=path)
            first, last = int(matched[1]), int(matched[2] or matched[1])
            found.append((range(first, last + 1), _mock(answer, path)))
    return Mocks(answers)


def read_mock(state: str, document: Any) -> Mocks:
    """Read the mock of one state for all attempts, as in TestState: a result or an errorOutput."""
    fields = _object(document, "mock")
    if fields.keys() == {"result"}:
        result = fields["result"]
        value = parse_json(result, "the mock's result") if isinstance(result, str) else result
        return Mocks({state: [(range(MOST), json.dumps(value))]})
    if fields.keys() == {"errorOutput"}:
        mock = _error(fields["errorOutput"], "mock.errorOutput", "error", "cause")
        return Mocks({state: [(range(MOST), mock)]})
    message = "a mock has a result, the JSON as a string or as it is, or an errorOutput"
    raise ChironError("bad-mock", message, path="mock")


def read_context(document: Any) -> GivenContext:
    """Return the fields of a context object, by section. Raises ``bad-context``."""
    for path, value, known in _sections(document):
        if not isinstance(value, dict):
            raise ChironError("bad-context", "a context has to be an object", path=path)
        for field in value:
            if field not in known:
                message = f"{shown(field)} is no field of a context: known: {listed(known)}"
                raise ChironError("bad-context", message, path=path)
    found: GivenContext = document
    return found


def _sections(document: Any) -> Iterator[tuple[str, Any, Collection[str]]]:
    """Yield the document and its sections, each with its path and its allowed fields."""
    yield "context", document, _CONTEXT
    for section, fields in document.items():
        yield f"context.{section}", fields, _CONTEXT[section]


def _mock(answer: Any, path: str) -> Mock:
    fields = _object(answer, path)
    if fields.keys() == {"Return"}:
        return json.dumps(fields["Return"])
    if fields.keys() == {"Throw"}:
        return _error(fields["Throw"], f"{path}.Throw", "Error", "Cause")
    raise ChironError("bad-mock", "an attempt has Return or Throw", path=path)


def _error(value: Any, path: str, name: str, cause: str) -> StatesError:
    """Return the error of a mock with the fields `name` and `cause`."""
    fields = {name: "", cause: ""} | _object(value, path)
    if len(fields) > 2 or not all(isinstance(each, str) for each in fields.values()):
        raise ChironError("bad-mock", f"an error has {name} and {cause}, both strings", path=path)
    return StatesError(fields[name], fields[cause])


def _object(value: Any, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ChironError("bad-mock", "mocks have to be objects", path=path or None)
    return value


class _AnyNames(AsWritten):
    """Names of functions that are never called, including those of services."""

    def knows(self, given: str) -> bool:
        """Return True: a task may call any name."""
        return True


class Mocked:
    """The state machine of a document, validated as for a deployment.

    A mock replaces a Task's whole result from its service: that of ``lambda:invoke`` has a Payload.
    The mock of NAME.ItemReader is the content of the file: a string, or a value in JSON. If a
    manifest or listing names files, attempt 0 is the list, and the others are the files. The
    function of a ResultWriter needs none.
    """

    def __init__(self, document: dict[str, Any], name: str) -> None:
        self._machine, reading = read_states(document, _AnyNames())
        reading.faults.raise_all()
        self._name = name
        self._states = dict(states_in(self._machine))
        for state in self._states.values():
            state.pop("Invoke", None)
            state.pop("Functions", None)
        calls = {task for name, state in self._states.items() for task in _calls(name, state)}
        #: The tasks that read the items of Maps, and the tasks that write their results.
        self._readers = calls & set(map(reader_of, self._states))
        self._writers = calls & set(map(writer_of, self._states))

    def run(self, request: bytes, mocks: Mocks) -> dict[str, str]:
        """Run the whole machine; return its status, and its output or its error and cause."""
        self._check(mocks)
        return _told(self._executed(self._machine, request, mocks, {}).done)

    def test(
        self,
        name: str,
        request: bytes,
        mocks: Mocks,
        variables: dict[str, Any],
        retries: int,
        context: GivenContext | None,
    ) -> dict[str, str]:
        """Run the state `name`; return its result as TestState reports it.

        Args:
            variables: the variables that the state sees.
            retries: the number of times that its retrier has been used.
            context: the context object that it sees, by section; None for that of an execution.
        """
        if name not in self._states:
            raise _unknown(name)
        self._check(mocks)
        state = self._states[name]
        if name in mocks.answers:
            state = _answered(state, mocks.answers[name][0][1])

        counted = {"RetryCount": retries} if retries else {}
        seen = {"State": counted} if context is None else Context(context, {})

        def without(*fields: str) -> _Ran:
            alone = {field: value for field, value in state.items() if field not in fields}
            definition = _alone(name, alone, variables)
            return self._executed(definition, request, Mocks(mocks.answers), seen)

        ran = without("Retry", "Catch")
        error = ran.done.error
        if error is None:
            return ran.told("SUCCEEDED")
        names = names_of(state, error.name)
        used = dict.fromkeys(range(len(state.get("Retry", ()))), retries)
        if retrier_for(state, used, names) is not None:
            return {"status": "RETRIABLE", "error": error.name, "cause": error.cause}
        ran = without("Retry")
        if ran.next is None:
            return _told(ran.done)
        return ran.told("CAUGHT_ERROR") | {"error": error.name, "cause": error.cause}

    def _check(self, mocks: Mocks) -> None:
        for name in mocks.answers:
            if name in self._readers | self._writers:
                continue
            if name not in self._states:
                raise _unknown(name)
            kind = self._states[name]["Type"]
            if kind not in ("Task", "Parallel", "Map"):
                message = f"state {shown(name)} is a {kind}, which no mock stands for"
                raise ChironError("bad-mock", message, path=name, functions=[name])

    def _executed(
        self, definition: dict[str, Any], request: bytes, mocks: Mocks, context: GivenContext
    ) -> _Ran:
        states = dict(states_in(definition))
        tasks = [name for name in states if states[name]["Type"] == "Task"]
        tasks += [task for name, state in states.items() for task in _calls(name, state)]
        workflow = Workflow(
            name=self._name,
            tasks=tuple(Task(task, task, None) for task in tasks),
            output=None,
            machine=definition,
        )
        reached: list[tuple[str, str]] = []

        def answer(task: str, text: str) -> str:
            if task in self._writers and task not in mocks.answers:
                return "null"
            if not task.startswith(_NEXT):
                mock = mocks.answer(task)
                content = json.loads(mock) if task in self._readers else None
                return content if isinstance(content, str) else mock
            reached.append((task.removeprefix(_NEXT), text))
            return text

        done = execute(workflow, request, answer, context)
        return _Ran(done, reached[0][0] if reached else None)


class _Ran(NamedTuple):
    """The result of an execution, and the successor of the tested state."""

    done: Execution
    next: str | None

    def told(self, status: str) -> dict[str, str]:
        """Return the output under `status`, and the next state."""
        found = {"status": status, "output": self.done.output or ""}
        return found | ({} if self.next is None else {"nextState": self.next})


def _told(done: Execution) -> dict[str, str]:
    if done.error is None:
        return {"status": "SUCCEEDED", "output": done.output or ""}
    return {"status": "FAILED", "error": done.error.name, "cause": done.error.cause}


def _calls(name: str, state: dict[str, Any]) -> Iterable[str]:
    """Return the tasks that read and write for the state `name`."""
    return tasks_of(name, state) if state["Type"] == "Map" else ()


def _unknown(name: str) -> ChironError:
    message = f"{shown(name)} is no state of the machine"
    return ChironError("unknown-state", message, path=name, functions=[name])


def _answered(state: dict[str, Any], mock: Mock) -> dict[str, Any]:
    """Return a state answered by a mock: a Task, or a Parallel with a failing branch."""
    if state["Type"] == "Parallel" and isinstance(mock, StatesError):
        fails = {"Type": "Fail", "Error": mock.name, "Cause": mock.cause}
        return state | {"Branches": [{"StartAt": _WITHIN, "States": {_WITHIN: fails}}]}
    return state | {"Type": "Task"}


def _alone(name: str, state: dict[str, Any], variables: dict[str, Any]) -> dict[str, Any]:
    """Return a machine of one state, after one that assigns `variables`, before its successors."""

    def leading(holder: dict[str, Any]) -> dict[str, Any]:
        targets = {field: holder[field] for field in ("Next", "Default") if field in holder}
        return holder | {field: f"{_NEXT}{target}" for field, target in targets.items()}

    alone = leading(state)
    for field in ("Choices", "Catch"):
        if field in state:
            alone[field] = [leading(each) for each in state[field]]
    values = {each: f"{{% $parse({_quoted(value)}) %}}" for each, value in variables.items()}
    before = {"Type": "Pass", "QueryLanguage": "JSONata", "Assign": values, "Next": name}
    follows = {target: {"Type": "Task", "End": True} for _, target in transitions(alone, "")}
    return {"StartAt": _BEFORE, "States": {_BEFORE: before, name: alone, **follows}}


def _quoted(value: Any) -> str:
    """Return `value`, written as JSON, as a string literal of JSONata."""
    return json.dumps(json.dumps(value))
