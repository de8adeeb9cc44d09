"""`chiron convert` writes a workflow of any form in another, or as a picture, or says why not."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import pytest

from chiron.workflow.folder import parse_workflow

DAG = {"name": "demo", "tasks": {"a": "f", "b": "g"}, "edges": [["a", "b"]]}
FLAT = """
functions:
- {name: a, source: F_1, next: {type: pass, nodes: [b]}}
- {name: b, source: g}
"""


@pytest.fixture
def file(tmp_path):
    """Writes a workflow's file."""

    def file(text: str, name: str = "demo.json"):
        (tmp_path / name).write_text(text)
        return tmp_path / name

    return file


def test_a_plain_dag_becomes_a_state_machine(chiron, file, tmp_path):
    output = tmp_path / "out" / "machine.json"
    result = chiron("convert", file(json.dumps(DAG)), "--to", "asl", "-o", output)
    assert (result.status, result.stdout) == (0, "")
    assert result.stderr.endswith(f"wrote {output}\n")
    assert parse_workflow(json.loads(output.read_text())) == parse_workflow(DAG)


def test_a_state_machine_becomes_a_plain_dag_on_stdout(chiron, file):
    machine = {"StartAt": "a", "States": {"a": {"Type": "Task", "Resource": "f", "End": True}}}
    result = chiron("convert", file(json.dumps(machine)), "--to", "dag")
    assert json.loads(result.stdout) == {"tasks": {"a": "f"}, "edges": []}


def test_what_has_no_effect_is_said(chiron, file):
    role = {"RoleArn": "arn:aws:iam::111122223333:role/r"}
    state = {"Type": "Task", "Resource": "f", "Credentials": role, "End": True}
    result = chiron(
        "convert", file(json.dumps({"StartAt": "a", "States": {"a": state}})), "--to", "dag"
    )
    assert json.loads(result.stdout) == {"tasks": {"a": "f"}, "edges": []}
    assert result.stderr.count("Credentials of state 'a'") == 1


def test_other_forms_are_converted_with_their_names_of_functions(chiron, file):
    result = chiron("convert", file(FLAT, "demo.yaml"), "--to", "dag")
    assert json.loads(result.stdout)["tasks"] == {"a": "F_1", "b": "g"}


def test_a_folder_is_drawn_by_its_name(chiron, file, tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "workflow.yaml").write_text(FLAT)
    result = chiron("convert", folder, "--to", "svg")
    assert ElementTree.fromstring(result.stdout).findtext("{*}title") == "shop"  # noqa: S314


def test_a_workflow_becomes_a_state_diagram(chiron, file):
    result = chiron("convert", file(json.dumps(DAG)), "--to", "mermaid")
    assert result.stdout.startswith("stateDiagram-v2\n")
    assert "s1 --> s2\n" in result.stdout


@pytest.mark.parametrize(
    ("document", "form", "words"),
    [
        (
            {"tasks": {n: n for n in "abcd"}, "edges": [["a", "c"], ["b", "c"], ["b", "d"]]},
            "asl",
            ["'b'", "'c'", "'d'", "series"],
        ),
        (
            {
                "StartAt": "A",
                "States": {
                    "A": {"Type": "Task", "Resource": "f", "Next": "Rest"},
                    "Rest": {"Type": "Wait", "Seconds": 1, "End": True},
                },
            },
            "dag",
            ["Wait 'Rest'", "decides"],
        ),
        ({"tasks": {}}, "svg", ["demo.json", "tasks"]),
    ],
)
def test_what_cannot_be_is_refused(document, form, words, chiron, file):
    result = chiron("convert", file(json.dumps(document)), "--to", form)
    assert (result.status, result.stdout) == (2, "")
    assert [word for word in words if word not in result.error()] == []


def test_what_is_wrong_is_said_with_file_and_line(chiron, file):
    path = file(FLAT.replace("nodes: [b]", "nodes: [c]"), "demo.yml")
    error = chiron("convert", path, "--to", "asl").error()
    assert error.startswith(f"{path}: ")
    assert "line 3: functions[0]" in error


def test_a_folder_without_a_workflow_is_named(chiron, tmp_path):
    result = chiron("convert", tmp_path, "--to", "svg")
    assert result.status == 2
    assert f"folder {tmp_path} has no workflow.json" in result.error()
