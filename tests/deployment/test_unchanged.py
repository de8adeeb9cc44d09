"""A supporting function that runs as it would be deployed is left alone, a changed one is not."""

from __future__ import annotations

import pytest

from chiron.deployment.deploy import deploy_stack
from chiron.generator.fingerprint import DEFINITION
from chiron.generator.generate import Sources, generate
from chiron.openfaas.stack import read_stack
from chiron.workflow.folder import WorkflowFolder

pytestmark = pytest.mark.usefixtures("without_template")
HANDLER = "def handle(req):\n    return req\n"


@pytest.fixture
def folder(write_folder, tmp_path) -> WorkflowFolder:
    """A workflow of one task, and `helper`, which it may call."""
    functions = {"wave": HANDLER, "helper": HANDLER}
    fields = {"helper": {"environment": {"A": "1"}}}
    template = tmp_path / "f" / "template" / "python3-flask"
    template.mkdir(parents=True)
    (template / "index.py").write_text("THREADS = 1\n")
    return write_folder(tmp_path / "f", {"tasks": {"t": "wave"}}, functions, {}, fields)


@pytest.fixture
def deployed(folder, plan_of, fake, tmp_path):
    """Deploys a planner of the workflow as it is now; what the gateway was asked to deploy."""

    def deploy(planner: str) -> set[str]:
        fake.calls.clear()
        plan = plan_of(folder.workflow, planner)
        deploy_stack(fake, generate(plan, Sources.read(folder), tmp_path / "build"))
        return {call.split()[1] for call in fake.calls if call.startswith("deploy")}

    return deploy


def test_a_supporting_function_that_runs_unchanged_is_not_deployed_again(deployed, fake):
    assert "helper" in deployed("sand")
    assert "helper" not in deployed("one-to-one")
    assert "wait helper" in fake.calls


def test_the_code_of_wraps_is_deployed_every_time(deployed):
    assert deployed("sand") - {"helper"} == deployed("sand")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("functions/helper/handler.py", "return req", "return ''"),
        ("stack.yaml", '"A": "1"', '"A": "2"'),
        ("template/python3-flask/index.py", "1", "2"),
    ],
)
def test_a_supporting_function_that_has_changed_is_deployed(file, old, new, deployed, folder):
    deployed("sand")
    path = folder.path / file
    before = path.read_text()
    path.write_text(before.replace(old, new))
    assert path.read_text() != before
    assert "helper" in deployed("sand")


def test_a_function_of_that_name_from_elsewhere_is_replaced(deployed, fake):
    fake.add("helper")
    assert "helper" in deployed("sand")


def test_the_note_depends_on_nothing_but_the_definition(folder, plan_of, tmp_path):
    notes = set()
    for planner in ("sand", "one-to-one"):
        file = generate(plan_of(folder.workflow, planner), Sources.read(folder), tmp_path / planner)
        notes.add(read_stack(file, {}).functions["helper"].annotations[DEFINITION])
    assert len(notes) == 1
