"""The wraps of a generated folder, as a test looks at them."""

from __future__ import annotations

from pathlib import Path

import pytest

from chiron.generator.generate import Sources, generate
from chiron.openfaas.stack import StackFunction, read_stack
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan

#: A handler of no account.
HANDLER = "def handle(req):\n    return req\n"


def built(folder: WorkflowFolder, plan: Plan, out: Path) -> list[StackFunction]:
    """The wraps of build/stack.yaml, in the plan's order."""
    functions = read_stack(generate(plan, Sources.read(folder, {}), out), {}).functions
    return [functions[wrap.name] for wrap in plan.wraps]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below `folder`, and what is in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def refused(code: str, plan: Plan, folder: WorkflowFolder, out: Path) -> ChironError:
    """The error of that code with which `plan` is not generated."""
    with pytest.raises(ChironError) as error:
        generate(plan, Sources.read(folder), out)
    assert error.value.code == code
    return error.value
