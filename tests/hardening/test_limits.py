"""Documents have limits, and code of users sees nothing of the environment of those who run it."""

from __future__ import annotations

import json

import pytest

from chiron.evaluation.reference.executor import Handler, run_reference
from chiron.openfaas.languages import find_handler
from chiron.openfaas.stack import StackFile, StackFunction, read_stack
from chiron.workflow import documents
from chiron.workflow.documents import parse_json, read_file
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.forms import WORKFLOW_LIMIT
from chiron.workflow.model import Task, Workflow

DEEPEST = "[" * documents.LEVELS + "]" * documents.LEVELS


def refused(function, *arguments):
    with pytest.raises(ChironError) as refusal:
        function(*arguments)
    return refusal.value


def test_json_is_as_deep_as_it_may_be_and_no_deeper():
    parse_json(DEEPEST, "plan")

    for text in (f"[{DEEPEST}]", '{"a":' * 500 + "1" + "}" * 500):
        error = refused(parse_json, text, "plan")
        assert (error.code, "nested too deeply" in error.message) == ("bad-json", True)


def test_json_has_as_many_values_as_it_may_have_and_no_more(monkeypatch):
    monkeypatch.setattr(documents, "VALUES", 10)
    parse_json(json.dumps([0] * 9), "plan")

    for value in ([0] * 10, {"a": [0] * 5, "b": [0] * 5}):
        assert refused(parse_json, json.dumps(value), "plan").code == "too-large"


def test_a_file_is_as_large_as_it_may_be_and_no_larger(tmp_path):
    (tmp_path / "file").write_bytes(b"12345")

    assert read_file(tmp_path / "file", "it", 5) == b"12345"
    assert refused(read_file, tmp_path / "file", "it", 4).code == "too-large"


def test_a_workflow_and_a_stack_that_are_too_large_are_refused_unread(tmp_path):
    (tmp_path / "workflow.json").write_bytes(b"[" * (WORKFLOW_LIMIT + 1))
    (tmp_path / "stack.yaml").write_bytes(b"- " * 1024 * 1024)

    assert refused(WorkflowFolder.open, tmp_path).code == "too-large"
    assert refused(read_stack, tmp_path / "stack.yaml", {}).code == "too-large"


@pytest.mark.parametrize(
    "code",
    [
        "(" * 100_000,
        "-" * 100_000 + "1",
        "x = " + "[" * 150 + "]" * 150 + ".a" * 50_000,
        "a" + ".a" * 100_000,
        "def handle(req):\n" + "".join(" " * i + "if 1:\n" for i in range(1, 200)),
        "\0",
        "# coding: nonsense\n",
        "\ufeff" * 3,
    ],
)
def test_a_handler_that_python_cannot_parse_is_refused(tmp_path, code):
    (tmp_path / "handler.py").write_text(code)
    stack = StackFile(functions={"f": StackFunction(lang="python3-http", handler=".")})

    assert refused(find_handler, stack, "f", tmp_path).code == "bad-handler"


def test_the_reference_executor_keeps_its_environment_from_the_functions(tmp_path, monkeypatch):
    monkeypatch.setenv("PASSWORD_OF_THE_SERVICE", "hunter2")
    code = "import os\ndef handle(req): return sorted(os.environ)"
    (tmp_path / "handler.py").write_text(code)
    workflow = Workflow("w", (Task("t", "f", None),), "t")

    done = run_reference(
        workflow,
        {"f": Handler(tmp_path, "flask", {"MINE": "1"})},
        b"",
        environment={"gateway_url": "http://g"},
    )

    seen = set(json.loads(done.output))
    assert {"MINE", "gateway_url", "PATH"} <= seen
    assert seen <= {
        "MINE", "gateway_url", "PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "TMPDIR", "PYTHONPATH"
    }  # fmt: skip
