"""The variables of a workflow's functions are those of its stack.yaml, without the wraps' own."""

from __future__ import annotations

import pytest

from chiron.generator.settings import wrap_environment
from chiron.openfaas.sharing import OF_WRAPS
from chiron.scheduler.conflict_rules import variable_conflicts
from chiron.scheduler.folder_settings import read_settings
from chiron.scheduler.schedule import schedule
from chiron.workflow.errors import ChironError


def test_inline_variables_and_files_are_read(write_folder, tmp_path):
    folder = write_folder(
        tmp_path / "w",
        fields={
            "split": {"environment": {"LEVEL": "1", "exec_timeout": "3s"}},
            "mirror": {"environment": {"HOST": "${PEER}"}, "environment_file": ["more.yml"]},
        },
    )
    (folder.path / "more.yml").write_text("environment: {LEVEL: 2}\n")
    found = read_settings(folder, {"PEER": "there"}).environments
    assert found["split"] == {"LEVEL": "1", "RAW_BODY": "false"}
    assert found["mirror"] == {"HOST": "there", "LEVEL": "2"}
    assert found["join"] == {"RAW_BODY": "false"}


@pytest.mark.parametrize(
    ("lang", "read"),
    [
        ("node20", {"RAW_BODY": "false", "MAX_JSON_SIZE": "100kb", "MAX_RAW_SIZE": "100kb"}),
        ("node", {}),
    ],
)
def test_a_node_template_reads_its_variables_or_their_defaults(write_folder, tmp_path, lang, read):
    folder = write_folder(tmp_path / "w", fields={"join": {"lang": lang}})
    assert read_settings(folder, {}).environments["join"] == read


@pytest.mark.parametrize(
    ("lang", "value", "read"),
    [
        ("python3-flask", "1", "true"),
        ("python3-flask", "True", "true"),
        ("node20", "true", "true"),
        ("node20", "1", "false"),
    ],
)
def test_each_template_reads_raw_body_in_its_own_way(write_folder, tmp_path, lang, value, read):
    fields = {"join": {"lang": lang, "environment": {"RAW_BODY": value}}}
    found = read_settings(write_folder(tmp_path / "w", fields=fields), {}).environments
    assert found["join"]["RAW_BODY"] == read


@pytest.mark.parametrize("limit", ["MAX_JSON_SIZE", "MAX_RAW_SIZE"])
def test_a_limit_of_bodies_is_that_of_its_function(write_folder, tmp_path, limit):
    node = {"lang": "node20"}
    fields = {
        "split": {**node, "environment": {limit: "5mb"}},
        "join": {**node, "environment": {limit: "100kb"}},  # the default
        "wave": node,
    }
    found = read_settings(write_folder(tmp_path / "w", fields=fields), {}).environments
    apart = variable_conflicts(found)
    assert {*apart} == {("join", "split"), ("split", "wave")}
    assert all(limit in reason for reason in apart.values())


@pytest.mark.parametrize(("value", "apart"), [("true", True), ("1", True), ("false", False)])
def test_a_function_that_needs_a_token_is_apart_from_others(write_folder, tmp_path, value, apart):
    fields = {"join": {"environment": {"jwt_auth": value}}}
    found = read_settings(write_folder(tmp_path / "w", fields=fields), {}).environments
    names = {name for pair in variable_conflicts(found) for name in pair if name != "join"}
    assert names == ({"mirror", "split", "wave"} if apart else set())


def test_a_variable_that_a_function_reads_and_only_another_sets_is_empty_there(
    write_folder, tmp_path
):
    reads = "import os\ndef handle(req):\n    return os.environ.get('MODE', '')\n"
    names = "MODE = 'MODE'\ndef handle(req):\n    return MODE\n"
    workflow = {"tasks": {"a": "sets", "b": "reads", "c": "names"}}
    functions = {"sets": reads, "reads": reads, "names": names}
    fields = {"sets": {"environment": {"MODE": "debug", "OTHER": "1"}}}
    found = read_settings(write_folder(tmp_path / "w", workflow, functions, {}, fields), {})
    raw = {"RAW_BODY": "false"}
    assert found.environments == {
        "sets": {"MODE": "debug", "OTHER": "1", **raw},
        "reads": {"MODE": "", **raw},
        "names": raw,
    }


def test_a_handler_of_bytes_and_one_of_text_do_not_share_a_wrap(
    write_folder, profile_of, platform, tmp_path
):
    folder = write_folder(
        tmp_path / "w", fields={"join": {"environment": {"RAW_BODY": "true"}}}
    )  # fmt: skip
    plan = schedule(
        folder.workflow,
        profile_of(folder.workflow),
        platform(),
        1000.0,
        settings=read_settings(folder, {}),
    )
    assert len(plan.wraps) == 2
    assert not any({"Split it", "Zusammen/fügen? {50 %}"} <= {*wrap.tasks} for wrap in plan.wraps)


def test_a_folder_without_stack_file_sets_nothing(small):
    small.stack_file.unlink()
    assert read_settings(small, {}).environments == {}


def test_a_file_of_variables_that_is_missing_is_named(write_folder, tmp_path):
    folder = write_folder(tmp_path / "w", fields={"join": {"environment_file": ["no.yml"]}})
    with pytest.raises(ChironError, match=r"no\.yml"):
        read_settings(folder, {})


def test_what_a_wrap_sets_itself_is_no_conflict(workflow, profile, platform):
    plan = schedule(workflow("a"), profile(a="cpu 1"), platform(), 9.0)
    assert wrap_environment(plan, plan.wraps[0]).keys() <= OF_WRAPS
