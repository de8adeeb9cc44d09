"""A generated folder appears whole or not at all, and replaces nothing but another one."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from chiron.generator.generate import Sources, generate
from chiron.openfaas.stack import read_stack
from tests.generator.building import refused, tree


def test_a_wrap_named_as_another_function_is_refused(with_helper, plan_by_hand, tmp_path):
    folder = with_helper()
    plan = plan_by_hand({"helper": [["t"]]})
    error = refused("name-taken", plan, folder, tmp_path / "build")
    assert error.functions == ("helper",)
    refused("name-taken", plan_by_hand({"template": [["t"]]}), folder, tmp_path / "build")


def test_a_plan_for_another_workflow_is_refused(small, plan_by_hand, tmp_path):
    refused("unknown-task", plan_by_hand({"w": [["no such"]]}), small, tmp_path / "build")
    refused("missing-task", plan_by_hand({"w": [["Split it"]]}), small, tmp_path / "build")


@pytest.mark.parametrize("content", ["file", "folder", "stack only"])
def test_what_was_not_generated_is_never_replaced(content, small, plan_of, tmp_path):
    out = tmp_path / "build"
    if content == "file":
        out.write_text("precious")
    else:
        out.mkdir()
        (out / ("stack.yaml" if content == "stack only" else "thesis.txt")).write_text("precious")
    before = tree(tmp_path)
    refused("not-generated", plan_of(small.workflow), small, out)
    assert tree(tmp_path) == before


def test_an_empty_folder_is_taken(small, plan_of, tmp_path):
    (tmp_path / "build").mkdir()
    assert generate(plan_of(small.workflow), Sources.read(small), tmp_path / "build").is_file()


def test_a_generated_folder_is_replaced_whole(small, generated, plan_of):
    (generated.parent / "left-over.txt").write_text("old")
    stack_file = generate(plan_of(small.workflow), Sources.read(small), generated.parent)
    entries = {entry.name for entry in stack_file.parent.iterdir()}
    assert entries == {"stack.yaml", "template", *read_stack(stack_file, {}).functions}
    assert hidden(generated.parent.parent) == []


def test_a_failure_leaves_the_old_folder_as_it_was(small, generated, plan_of, tmp_path):
    before = tree(generated.parent)
    pins = (small.path / "functions" / name / "requirements.txt" for name in ("wave", "join"))
    for number, file in enumerate(pins):
        file.write_text(f"numpy=={number}")
    refused("requirements-conflict", plan_of(small.workflow), small, generated.parent)
    assert tree(generated.parent) == before
    assert hidden(tmp_path) == []


def test_a_failure_at_the_last_moment_puts_the_old_folder_back(
    small, generated, plan_of, tmp_path, monkeypatch
):
    before = tree(generated.parent)
    rename = Path.rename

    def fail_on_drafts(path: Path, target: Path) -> Path:
        if path.name.startswith(".build.") and not path.name.endswith(".old"):
            raise OSError("no room")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_on_drafts)
    with pytest.raises(OSError, match="no room"):
        generate(plan_of(small.workflow), Sources.read(small), generated.parent)
    assert tree(generated.parent) == before
    assert hidden(tmp_path) == []


def test_a_failure_leaves_no_folder_where_there_was_none(small, plan_of, tmp_path):
    shutil.rmtree(small.path / "functions" / "wave")
    refused("no-handler", plan_of(small.workflow), small, tmp_path / "build")
    assert not (tmp_path / "build").exists()
    assert hidden(tmp_path) == []


def test_the_missing_code_of_a_function_that_is_no_task_is_named(with_helper, plan_of, tmp_path):
    folder = with_helper()
    shutil.rmtree(folder.path / "functions" / "helper")
    error = refused("no-handler", plan_of(folder.workflow), folder, tmp_path / "build")
    assert error.functions == ("helper",)
    assert not (tmp_path / "build").exists()


@pytest.mark.parametrize("function", ["wave", "helper"])
def test_a_link_out_of_the_workflow_folder_is_copied_into_no_function(
    with_helper, plan_of, tmp_path, function
):
    folder = with_helper()
    (folder.path / "functions" / function / "key").symlink_to("/etc/passwd")

    error = refused("bad-link", plan_of(folder.workflow), folder, tmp_path / "build")

    assert f"{function}/key" in error.message
    assert not (tmp_path / "build").exists()


def test_variables_come_from_no_file_that_a_link_leads_to(with_helper, plan_of, tmp_path):
    folder = with_helper(environment_file=["variables.yml"])
    (tmp_path / "private.yml").write_text("environment: {KEY: secret}")
    (folder.path / "variables.yml").symlink_to("../private.yml")

    refused("bad-link", plan_of(folder.workflow), folder, tmp_path / "build")


def test_a_function_that_is_no_task_may_have_an_image_alone(with_helper, plan_of, tmp_path):
    folder = with_helper(lang="", handler="", image="cows:1", skip_build=True)
    stack_file = generate(plan_of(folder.workflow), Sources.read(folder), tmp_path / "build")
    helper = read_stack(stack_file, {}).functions["helper"]
    assert (helper.image, helper.handler, helper.skip_build) == ("cows:1", "", True)
    assert not (stack_file.parent / "helper").exists()


def hidden(folder: Path) -> list[Path]:
    """Drafts that were left behind."""
    return list(folder.glob(".*"))
