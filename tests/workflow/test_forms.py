"""The file of a workflow: JSON or YAML, of any form, with the line of what is wrong in YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.forms import workflow_file, workflow_folders

MACHINE = """
StartAt: A
States:
  A: {Type: Task, Resource: f, Next: B}
  B:
    Type: Task
    Resource: g
    End: true
"""
FLAT = """
functions:
- name: a
  source: f
  next:
    type: pass
    nodes: [b]
- {name: b, source: g}
"""


@pytest.fixture
def folder(tmp_path):
    """Writes a file of a workflow; returns its folder."""

    def folder(text: str, name: str = "workflow.yaml") -> Path:
        (tmp_path / name).write_text(text)
        return tmp_path

    return folder


@pytest.mark.parametrize("name", ["workflow.yaml", "workflow.yml"])
@pytest.mark.parametrize("text", [MACHINE, FLAT, "tasks: {a: f, b: g}\nedges: [[a, b]]\n"])
def test_yaml_of_any_form_is_a_workflow(text, name, folder):
    workflow = WorkflowFolder.open(folder(text, name)).workflow
    assert [task.function for task in workflow.tasks] == ["f", "g"]
    assert workflow.output == workflow.tasks[1].name


def test_a_folder_has_one_file_of_a_workflow(folder, refused):
    folder(MACHINE)
    error = refused(WorkflowFolder.open, folder("{}", "workflow.json"))
    assert error.code == "two-workflows"
    assert "workflow.json and workflow.yaml" in error.message


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        (MACHINE.replace("End: true", "End: maybe"), "missing-field", "line 5: States.B"),
        (MACHINE.replace("Next: B", "Next: C"), "unknown-next", "line 4: States.A.Next"),
        (FLAT.replace("[b]", "[c]"), "unknown-next", "line 3: functions[0]"),
        (FLAT.replace("type: pass", "typ: pass"), "unknown-field", "line 6: functions[0].next.typ"),
        (FLAT.replace("source: g", "source: G_1"), "bad-name", "line 8: functions[1]"),
        ("a: 1", "bad-document", "line 1"),
        ("name: a\ntype: swich", "bad-field", "line 2: type"),
        ("functions: {}", "bad-field", "line 1: functions"),
    ],
)
def test_what_is_wrong_in_yaml_is_said_with_its_line(text, code, path, folder, refused):
    error = refused(WorkflowFolder.open, folder(text))
    first = error.message if "faults" in error.message else f"(at {error.path})"
    assert error.code == code
    assert path in first


def test_every_fault_has_its_line(folder, refused):
    text = FLAT.replace("source: f", "sorce: f").replace("source: g", "source: 3")
    error = refused(WorkflowFolder.open, folder(text))
    for place in ("line 4: functions[0].sorce", "line 8: functions[1].source"):
        assert f"(at {place})" in error.message


@pytest.mark.parametrize(
    ("text", "code", "words"),
    [
        ("a: 1\na: 2", "duplicate-key", "line 2: key 'a' twice"),
        ("a: !Sub x", "bad-yaml", "line 1: tag !Sub"),
        ("a: [", "bad-yaml", "line"),
        ("a: &x [*x]", "bad-yaml", "inside itself"),
    ],
)
def test_yaml_that_is_none_is_refused(text, code, words, folder, refused):
    error = refused(WorkflowFolder.open, folder(text))
    assert error.code == code
    assert words in error.message


def test_yaml_that_is_no_utf8_is_refused(tmp_path, refused):
    (tmp_path / "workflow.yaml").write_bytes(b"a: \xff")
    assert refused(WorkflowFolder.open, tmp_path).code == "bad-yaml"


def test_the_text_of_a_workflow_is_json_whatever_its_form(folder):
    opened = WorkflowFolder.open(folder(FLAT))
    assert '"edges"' in opened.text
    assert '"StartAt"' in WorkflowFolder.open(folder(MACHINE)).text


def test_folders_are_found_by_any_of_the_files(tmp_path):
    for name, file in (("b", "workflow.yml"), ("a", "workflow.json"), ("c", "other.json")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).touch()
    assert workflow_folders(tmp_path, "*/") == [tmp_path / "a", tmp_path / "b"]
    assert workflow_file(tmp_path / "c") is None
