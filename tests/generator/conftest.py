"""Workflow folders with fields of stack.yaml."""

from __future__ import annotations

import json
from typing import Any

import pytest

from chiron.generator.generate import Sources, generate
from chiron.workflow.folder import WorkflowFolder
from tests.generator.building import HANDLER


@pytest.fixture
def whole_template() -> None:
    """What is generated has the wrap's template, which is the less usual here."""


@pytest.fixture(autouse=True)
def template_left_out(request) -> None:
    """The template takes longer to copy than all else of a generated folder."""
    if "whole_template" not in request.fixturenames:
        request.getfixturevalue("without_template")


@pytest.fixture
def folder_of(write_folder, tmp_path):
    """A workflow with fields of its functions, and more at the top of stack.yaml."""

    def make(
        fields: dict[str, dict[str, Any]],
        workflow: dict[str, Any] | None = None,
        **more: Any,
    ) -> WorkflowFolder:
        given = {"workflow": workflow} if workflow else {}
        folder: WorkflowFolder = write_folder(tmp_path / "f", **given, fields=fields)
        for name, value in (("one", "1"), ("two", "2")):
            (folder.path / f"{name}.yml").write_text(f"environment: {{IN_FILE: {value}}}\n")
        (folder.path / "server.yml").write_text("environment: {upstream_url: 'http://x'}\n")
        stack = json.loads(folder.stack_file.read_text()) | more
        folder.stack_file.write_text(json.dumps(stack))
        return folder

    return make


@pytest.fixture
def generated(small, plan_of, tmp_path):
    """The stack.yaml of the small workflow, one function in each wrap."""
    return generate(plan_of(small.workflow, "one-to-one"), Sources.read(small), tmp_path / "build")


@pytest.fixture
def with_helper(write_folder, tmp_path):
    """A workflow of the task t, beside whose function stack.yaml has `helper`, with `fields`."""

    def write(**fields: object) -> WorkflowFolder:
        workflow = {"tasks": {"t": "wave"}}
        functions = {"wave": HANDLER, "helper": HANDLER}
        return write_folder(tmp_path / "f", workflow, functions, {}, {"helper": fields})

    return write
