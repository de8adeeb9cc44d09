"""constraints.json: placement (apart, together), unchecked parts of answers, payload weights."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from chiron.workflow.documents import Document, read_document
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Workflow

CONSTRAINTS_FILE = "constraints.json"


class Constraints(Document):
    """Functions in a process or wrap of their own, functions that share a wrap, and more.

    ``{"format": 1, "isolate": {"parse": "process", "audit": "wrap"}, "together": [["a", "b"]]}``:
    `parse` shares its process with no other function, `audit` not even its sandbox; `a` and `b` are
    in one sandbox. Several tasks of one function may always share.

    Attributes:
        weights: the relative frequency of a payload: ``{"payloads/large.json": 3}``. The default is
            1.
        no_check: the parts of the workflow's answer that are never compared: a task's output
            (``"parse"``), a JSON path (``"$.took_ms"``), or the whole answer (``"$"``).
    """

    format: Literal[1]
    isolate: dict[str, Literal["process", "wrap"]] = Field(default_factory=dict)
    together: tuple[Annotated[tuple[str, ...], Field(min_length=2)], ...] = ()
    weights: dict[str, Annotated[float, Field(gt=0)]] = Field(default_factory=dict)
    no_check: tuple[str, ...] = ()

    def check_functions(self, functions: Collection[str]) -> None:
        """Raise ``unknown-function`` if a constraint names a function other than `functions`."""
        constrained = {*self.isolate, *(name for group in self.together for name in group)}
        unknown = sorted(constrained.difference(functions))
        if unknown:
            raise ChironError(
                "unknown-function",
                f"{CONSTRAINTS_FILE} has constraints for {', '.join(unknown[:8])}, which the "
                "workflow does not use: correct the name or take the constraint out",
                functions=unknown,
            )

    def unchecked(self, workflow: Workflow) -> tuple[str, ...]:
        """Return ``no_check`` as JSON paths of the answer; ``unknown-task`` for other tasks."""
        output = workflow.output
        if isinstance(output, tuple):
            paths = {task: f"$[{index}]" for index, task in enumerate(output)}
        else:
            paths = {output: "$"} if output else {}
        unknown = [each for each in self.no_check if each not in paths and each[:1] != "$"]
        if unknown:
            tasks = f"one of {', '.join(list(paths)[:8])}, or " if paths else ""
            raise ChironError(
                "unknown-task",
                f"no_check of {CONSTRAINTS_FILE} has {', '.join(unknown[:8])}, whose output is no "
                f"part of the answer: name {tasks}a JSON path of it such as $.time",
                path="no_check",
                functions=unknown,
            )
        return tuple(paths.get(each, each) for each in self.no_check)


NO_CONSTRAINTS = Constraints(format=1)


def read_constraints(folder: Path) -> Constraints:
    """Return the constraints in the workflow folder `folder`; empty without constraints.json."""
    file = folder / CONSTRAINTS_FILE
    return read_document(Constraints, file, "constraints") if file.exists() else NO_CONSTRAINTS
