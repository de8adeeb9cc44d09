"""Workflows whose functions name the data that they read, as in FaaSFlow and DataFlower.

Their documents are read as steps. They are written as a plain DAG if no step names its reads or
decides, otherwise as a state machine. The machine stores all answers in one object, by step name,
and passes each function an object of its reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chiron.workflow.errors import ChironError
from chiron.workflow.names import check_task_name, shown

#: The name of the workflow's request among the steps' names.
REQUEST = "INPUT"


class Read(NamedTuple):
    """A value that a step reads: a field of another step's answer, or of the request."""

    step: str
    field: str
    #: Its path in the document.
    path: str


class Condition(NamedTuple):
    """A comparison of two values, each read or a literal; `operator` as in Python."""

    left: Any
    operator: str
    right: Any


class Arm(NamedTuple):
    """Steps that run next, all of them; the first arm whose condition is None or holds is taken."""

    targets: tuple[str, ...]
    condition: Condition | None = None


@dataclass
class Step:
    """A function to run, or a point where paths fork or join: then `function` is None."""

    name: str
    function: str | None
    #: Its path in the document.
    path: str
    #: The function's input by argument: one value, or a list of values. None: the answer of the
    #: previous step.
    reads: dict[str, Read | list[Read]] | None = None
    #: The alternative successors.
    arms: list[Arm] = field(default_factory=list)
    #: The argument whose items the function gets one at a time, in one run per item.
    each: str | None = None
    #: Without a function: the name under which its reads are stored for later steps. Several
    #: alternative steps may store under one name.
    keeps: str | None = None

    @property
    def decides(self) -> bool:
        """Whether any arm has a condition: at most one arm is taken."""
        return any(arm.condition for arm in self.arms)


class Translated(NamedTuple):
    """A document of this project, and the path of each of its parts in the original document."""

    document: dict[str, Any]
    origins: dict[str, str]


def checked(steps: Sequence[Step]) -> dict[str, Step]:
    """Map names to steps; ``no-tasks``, ``duplicate-state``, ``unknown-next`` or ``bad-name``."""
    if not any(step.function for step in steps):
        raise ChironError("no-tasks", "the workflow has no function: add one")
    by_name: dict[str, Step] = {}
    for step in steps:
        check_task_name(step.name, step.path)
        if step.name in by_name or step.name == REQUEST:
            taken = "the request is" if step.name == REQUEST else "two steps are"
            raise ChironError(
                "duplicate-state",
                f"{taken} named {shown(step.name)}: rename one",
                path=step.path,
                functions=[step.name],
            )
        by_name[step.name] = step
    for step in steps:
        for name in (target for arm in step.arms for target in arm.targets):
            if name not in by_name:
                raise ChironError(
                    "unknown-next",
                    f"{shown(name)} comes after {shown(step.name)} and is not there",
                    path=step.path,
                    functions=[name],
                )
    return by_name


def as_dag(steps: Sequence[Step], name: str | None = None) -> Translated | None:
    """Return the plain DAG of the steps; None if any step decides or names its reads.

    Steps without a function are bypassed: their predecessors lead to their successors.
    """
    if any(s.decides or s.reads is not None or s.each for s in steps):
        return None
    by_name = {step.name: step for step in steps}

    def after(step: Step) -> Iterator[str]:
        for target in (target for arm in step.arms for target in arm.targets):
            if by_name[target].function is None:
                yield from after(by_name[target])
            else:
                yield target

    tasks = [step for step in steps if step.function is not None]
    edges = [[step.name, target] for step in tasks for target in dict.fromkeys(after(step))]
    document = {"tasks": {step.name: step.function for step in tasks}, "edges": edges}
    origins = {f"tasks.{step.name}": step.path for step in tasks}
    return Translated(({"name": name} if name else {}) | document, origins)


_OPERAND = re.compile(r"(?P<step>[A-Za-z_][\w-]*)(?:\.(?P<field>[\w.-]+))?")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_COMPARED = re.compile(r"(?P<left>.+?)\s*(?P<operator>==|!=|<=|>=|<|>)\s*(?P<right>.+)", re.DOTALL)


def parse_condition(text: str, own: str | None, path: str) -> Condition | None:
    """Parse ``STEP.field OPERATOR value``, or ``STEP.field`` alone, which must be true.

    `own` is the step of fields without a step. Returns None for ``default``; raises
    ``bad-condition``.
    """
    if text.strip() == "default":
        return None
    match = _COMPARED.fullmatch(text.strip())
    left, operator, right = match.groups() if match else (text.strip(), "==", "True")
    sides = [_operand(side.strip(), own, path) for side in (left, right)]
    if not any(isinstance(side, Read) for side in sides):
        raise _bad_condition(text, path)
    if not isinstance(sides[0], Read):
        sides.reverse()
        operator = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(operator, operator)
    if isinstance(sides[1], bool) and operator not in ("==", "!="):
        raise _bad_condition(text, path)
    return Condition(sides[0], operator, sides[1])


def _operand(text: str, own: str | None, path: str) -> Any:
    if text in ("True", "true", "False", "false"):
        return text.lower() == "true"
    if _NUMBER.fullmatch(text):
        return float(text) if "." in text else int(text)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" and text[0] not in text[1:-1]:
        return text[1:-1]
    match = _OPERAND.fullmatch(text)
    if match and match["field"]:
        return Read(match["step"], match["field"], path)
    if match and own is not None:
        return Read(own, match["step"], path)
    raise _bad_condition(text, path)


def _bad_condition(text: str, path: str) -> ChironError:
    return ChironError(
        "bad-condition",
        f"{shown(text)} is no condition: write STEP.field (or {REQUEST}.field), one of "
        "== != < <= > >=, and a number, 'text', True, False or another STEP.field",
        path=path,
    )
