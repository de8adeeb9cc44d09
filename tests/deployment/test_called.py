"""Functions that wraps call: which of them `chiron remove` takes, and which have to be there."""

from __future__ import annotations

import json

import pytest

from chiron.deployment.deploy import deploy_stack
from chiron.deployment.deployed import called_by, only_for
from chiron.deployment.launcher import Launcher
from chiron.generator.annotations import FOR_WRAPS
from chiron.openfaas.stack import StackFile, StackFunction, write_stack
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.tracing import KEY_VARIABLE


@pytest.fixture
def stack_file(tmp_path):
    """A stack.yaml of a wrap, and of functions that it calls."""
    wrap = {"chiron.workflow": "finra", "chiron.planner": "pgp", "chiron.called": "new,old,theirs"}
    key = {KEY_VARIABLE: "k"}
    w = StackFunction(lang="python3-wrap", image="w", annotations=wrap, environment=key)
    functions = {"w": w}
    functions |= {
        name: StackFunction(image=name, annotations={FOR_WRAPS: "true"}) for name in ("new", "old")
    }
    write_stack(tmp_path / "stack.yaml", StackFile(functions=functions))
    return tmp_path / "stack.yaml"


def test_those_that_others_deployed_stay_and_those_that_others_call(fake, stack_file):
    fake.add("old")
    fake.add("theirs")
    deploy_stack(fake, stack_file)
    assert called_by(fake, ["w"]) == ("new", "old", "theirs")
    assert only_for(fake, ["w"]) == ("new",)
    fake.add("w2", workflow="other", called="new")
    assert only_for(fake, ["w"]) == ()
    assert only_for(fake, ["w", "w2"]) == ("new",)


def test_those_that_were_deployed_for_wraps_are_so_after_an_update(fake, stack_file):
    deploy_stack(fake, stack_file)
    deploy_stack(fake, stack_file)
    assert only_for(fake, ["w"]) == ("new", "old")


def test_one_that_is_neither_in_stack_yaml_nor_deployed_is_refused(fake, write_folder, tmp_path):
    workflow = {"tasks": {"t": "wave", "u": "elsewhere"}, "edges": [["t", "u"]]}
    folder = write_folder(tmp_path / "f", workflow, {"wave": "def handle(req): ...\n"}, {})
    launcher = Launcher(fake, lambda _: None, gateway_url="http://inside")
    with pytest.raises(ChironError, match=r"not in stack\.yaml, nor deployed") as refused:
        launcher.sources(folder)
    assert (refused.value.code, refused.value.functions) == ("unknown-function", ("elsewhere",))
    (folder.path / "workflow.json").write_text(json.dumps({"tasks": {"t": "wavee"}}))
    with pytest.raises(ChironError, match=r"did you mean wave\?") as misspelled:
        launcher.sources(WorkflowFolder.open(folder.path))
    assert misspelled.value.code == "unknown-function"
    fake.add("elsewhere")
    assert launcher.sources(folder).called == ("elsewhere",)


def test_all_secrets_that_the_gateway_lacks_are_told_before_anything_is_built(
    fake, write_folder, tmp_path
):
    handler = "def handle(req): ...\n"
    more = {"one": {"secrets": ["there", "key"]}, "two": {"secrets": ["token", "key"]}}
    workflow = {"tasks": {"t": "one", "u": "two"}, "edges": [["t", "u"]]}
    folder = write_folder(tmp_path / "f", workflow, {"one": handler, "two": handler}, {}, more)
    launcher = Launcher(fake, lambda _: None, gateway_url="http://inside")
    fake.secrets = {"there"}
    with pytest.raises(ChironError, match=r"key, token: .*secret create NAME") as refused:
        launcher.sources(folder)
    assert (refused.value.code, refused.value.functions) == ("secret-missing", ("one", "two"))
    fake.secrets |= {"key", "token"}
    assert [*launcher.sources(folder).handlers] == ["one", "two"]
