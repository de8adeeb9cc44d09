"""Workflows whose functions name the data that they read, as FaaSFlow and DataFlower have them.

Their documents are read as steps, and written as a document of this project: a plain DAG where no
step says what it reads and none decides, else a state machine. That keeps in one object what the
functions have answered, by their steps' names, and gives each function an object of what it reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from chiron.workflow.errors import ChironError
from chiron.workflow.names import check_task_name, shown

#: What stands for the workflow's request among the steps' names.
REQUEST = "INPUT"


class Read(NamedTuple):
    """One value that a step reads: a field of what another has answered, or of the request."""

    step: str
    field: str
    #: Where the document has it.
    path: str


class Condition(NamedTuple):
    """A comparison of two values, each read or written out; `operator` as Python has it."""

    left: Any
    operator: str
    right: Any


class Arm(NamedTuple):
    """Steps that come next, all of them; where there are several arms, the first whose condition
    holds is taken. One without a condition always holds."""

    targets: tuple[str, ...]
    condition: Condition | None = None


@dataclass
class Step:
    """A function that is run, or only a place where paths part or join: then `function` is None."""

    name: str
    function: str | None
    #: Where the document has it.
    path: str
    #: By argument what the function gets: one value, or the list of several. None: what the step
    #: before has answered.
    reads: dict[str, Read | list[Read]] | None = None
    #: What comes next.
    arms: list[Arm] = field(default_factory=list)
    #: The argument of which the function gets one item, run once for every one of them.
    each: str | None = None
    #: Without a function: under which name what it reads is known from there on, whichever of
    #: several steps that keep by this name has been passed.
    keeps: str | None = None

    @property
    def decides(self) -> bool:
        """Whether one of several arms is taken, or none."""
        return any(arm.condition for arm in self.arms)


class Translated(NamedTuple):
    """A document that this project knows, and where the one that it was made of has its parts."""

    document: dict[str, Any]
    origins: dict[str, str]


def checked(steps: Sequence[Step]) -> dict[str, Step]:
    """The steps by name; ``no-tasks``, ``duplicate-state``, ``unknown-next``, ``bad-name`` else."""
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
    """The plain DAG of steps that neither decide nor say what they read; None for others.

    What runs no function has no place there: what comes before it leads to what comes after.
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
    """The condition ``STEP.field OPERATOR value``, or ``STEP.field`` alone where it has to be true.

    `own` is the step whose fields stand alone. Returns None for ``default``; raises
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
