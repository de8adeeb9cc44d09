"""Every field of stack.yaml arrives in build/stack.yaml by a rule, or is refused or warned of."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from chiron.generator.fingerprint import source_of
from chiron.generator.generate import Sources, generate
from chiron.generator.stack_check import calling, check_commands
from chiron.openfaas.sharing import (
    BUILD_ARGUMENTS,
    PACKAGES,
    handed_on,
    left_out,
    one_valued,
    united,
)
from chiron.openfaas.stack import StackFile, StackFunction, deployment, read_stack
from chiron.profiler.solo import solo_workflow
from chiron.scheduler.conflict_rules import variable_conflicts
from chiron.scheduler.folder_settings import read_settings
from chiron.scheduler.schedule import schedule
from chiron.templates import TEMPLATES
from chiron.workflow.errors import ChironError
from tests.generator.building import built
from tests.rows import each_row

#: The fields that faas-cli reads: go-sdk's stack/schema.go as vendored in
#: github.com/openfaas/faas-cli at c8191b71e7edf10be3b660ddcaee52c11de79238 (2026-07-24).
FAAS_CLI = {
    "": {"version", "functions", "provider", "configuration"},
    "provider": {"name", "gateway"},
    "configuration": {"templates", "copy"},
    "configuration.templates": {"name", "source"},
    "functions": {
        "lang",
        "handler",
        "image",
        "fprocess",
        "environment",
        "secrets",
        "skip_build",
        "constraints",
        "environment_file",
        "labels",
        "limits",
        "requests",
        "readonly_root_filesystem",
        "build_options",
        "annotations",
        "namespace",
        "build_args",
        "platforms",
        "build_secrets",
    },
    "functions.limits": {"memory", "cpu"},
    "functions.requests": {"memory", "cpu"},
}
README = Path(__file__).parents[2] / "generator" / "README.md"

PAIR = {"tasks": {"t": "wave", "u": "join"}}
PROFILE = "com.openfaas.profile"
SCALE = "com.openfaas.scale."
#: field, its value of wave, its value of join, what the wrap of both has, or the error's code.
#: None is a function without the field. Alone in a wrap, each has what it says.
TOGETHER: list[tuple[str, Any, Any, Any]] = [
    ("environment", {"A": "1"}, {"B": "2"}, {"A": "1", "B": "2"}),
    ("environment", {"A": "1"}, {"A": "2"}, "environment-conflict"),
    ("environment_file", ["one.yml"], ["two.yml"], "environment-conflict"),
    ("secrets", ["one"], ["two", "one"], ["one", "two"]),
    ("constraints", ["zone=a"], ["disk=ssd"], ["disk=ssd", "zone=a"]),
    ("constraints", ["zone=a"], ["zone=b"], "stack-conflict"),
    ("constraints", ["node.role == worker"], ["node.role==manager"], "stack-conflict"),
    ("constraints", ["zone=a"], None, ["zone=a"]),
    ("labels", {"team": "a"}, {"tier": "b"}, {"team": "a", "tier": "b"}),
    ("labels", {"team": "a"}, {"team": "b"}, "stack-conflict"),
    ("labels", {"team": "a"}, None, {"team": "a"}),
    ("annotations", {"a": "1"}, {"b": "2"}, {"a": "1", "b": "2"}),
    ("annotations", {"a": "1"}, {"a": "2"}, "stack-conflict"),
    ("annotations", {"prometheus.io.scrape": "false"}, None, {"prometheus.io.scrape": "false"}),
    ("annotations", {PROFILE: "gvisor"}, {PROFILE: "gvisor"}, {PROFILE: "gvisor"}),
    ("annotations", {PROFILE: "gvisor"}, None, "stack-conflict"),
    ("readonly_root_filesystem", True, True, True),
    ("readonly_root_filesystem", True, None, "stack-conflict"),
    ("namespace", "openfaas-fn", None, "openfaas-fn"),
    ("platforms", "linux/amd64", None, "linux/amd64"),
    ("platforms", "linux/a,linux/b", "linux/b, linux/a", "linux/b, linux/a"),
    ("platforms", "linux/amd64", "linux/arm64", "stack-conflict"),
    ("build_args", {PACKAGES: "jq"}, {PACKAGES: "sox"}, {PACKAGES: "sox jq"}),
    ("build_args", {"PYTHON_VERSION": "3.12"}, {}, {"PYTHON_VERSION": "3.12"}),
    ("build_args", {"http_proxy": "http://p"}, {}, {"http_proxy": "http://p"}),
    ("build_args", {"PYTHON_VERSION": "3.12"}, {"PYTHON_VERSION": "3.13"}, "stack-conflict"),
    ("limits", {"memory": "1Gi", "cpu": "2"}, {"memory": "3Gi"}, {"memory": "3072Mi", "cpu": "2"}),
    ("requests", {"memory": "1Gi"}, {"cpu": "600m"}, {"memory": "1024Mi", "cpu": "600m"}),
    *(
        ("labels", {SCALE + name: one}, {SCALE + name: other}, {SCALE + name: both})
        for name, one, other, both in [
            ("min", "2", "10", "10"),
            ("max", "9", "10", "9"),
            ("factor", "20", "5", "20"),
            ("target", "50", "100", "50"),
            ("target-proportion", "0.9", "0.10", "0.10"),
            ("zero", "true", "true", "true"),
            ("zero", "true", "false", "false"),
            ("zero-duration", "15m", "1h", "1h"),
            ("down.window", "5m", "90s", "5m"),
        ]
    ),
    (
        "labels",
        {SCALE + "min": "4"},
        {SCALE + "max": "3"},
        {SCALE + "min": "4", SCALE + "max": "4"},
    ),
    ("labels", {SCALE + "zero": "true"}, None, {SCALE + "zero": "false"}),
    ("labels", {SCALE + "type": "rps"}, {SCALE + "type": "cpu"}, "stack-conflict"),
]
#: field, its value of wave, the code of the refusal.
REFUSALS = [
    ("namespace", "dev", "bad-namespace"),
    ("build_options", ["fancy"], "bad-build-option"),
    ("build_secrets", {"netrc": "./netrc"}, "no-build-secrets"),
    ("annotations", {"topic": "orders"}, "inner-trigger"),
    ("handler", "./nowhere", "no-handler"),
]
#: field, its value of wave, a part of the warning.
WARNINGS = [
    ("skip_build", True, "skip_build has no effect"),
    ("fprocess", "gunicorn x:y", "fprocess 'gunicorn x:y' is left out"),
    ("build_args", {"TEST_ENABLED": "false"}, "build argument TEST_ENABLED is left out"),
    ("limits", {"memory": "lots"}, "limits.memory is 'lots'"),
    ("requests", {"cpu": "some"}, "requests.cpu is 'some'"),
    ("labels", {SCALE + "min": "few"}, "scale.min is 'few'"),
    ("annotations", {"com.openfaas.health.http.path": "/x"}, "com.openfaas.health.http.path"),
    ("annotations", {"chiron.role": "entry"}, "chiron.role"),
    ("image", "docker.io/me/wave:1", "several registries (docker.io/me, none)"),
    ("environment", {"upstream_url": "http://127.0.0.1:9"}, "environment.upstream_url is left out"),
    ("environment", {"max_inflight": "1"}, "environment.max_inflight, '1', is left out"),
    ("environment", {"exec_timeout": "9 s"}, "environment.exec_timeout is '9 s' and left out"),
    ("environment", {"read_timeout": "5m"}, "environment.read_timeout is left out"),
    ("environment", {"pool_concurrency": "98765"}, "environment.pool_concurrency is left out"),
    ("environment", {"WRAP_OBJECTS_MIB": "98765"}, "environment.WRAP_OBJECTS_MIB is left out"),
    *(
        ("environment", {each: "98765"}, f"environment.{each} is left out")
        for each in ("port", "suppress_lock", "http_buffer_req_body", "log_buffer_size")
    ),
    ("environment_file", ["server.yml"], "environment.upstream_url is left out"),
    ("enviroment", {"A": "1"}, "functions.wave.'enviroment' is no field"),
]


def fields_of(*values: tuple[str, str, Any]) -> dict[str, dict[str, Any]]:
    return {name: {field: value} for name, field, value in values if value is not None}


def holds(found: Any, wanted: Any) -> bool:
    """Whether a wrap's field has what is wanted of it: more is the wrap's own."""
    if isinstance(wanted, dict):
        found = found.model_dump() if isinstance(found, BaseModel) else found
        return {key: found.get(key) for key in wanted} == wanted
    return sorted(found) == sorted(wanted) if isinstance(wanted, list) else bool(found == wanted)


def test_the_fields_are_those_of_faas_cli():
    def fields(model: type[BaseModel]) -> set[str]:
        return {field.alias or name for name, field in model.model_fields.items()}

    def within(model: type[BaseModel], place: str) -> dict[str, set[str]]:
        found = {place: fields(model)}
        for name, field in model.model_fields.items():
            types = [field.annotation, *get_args(field.annotation)]
            for each in types:
                if isinstance(each, type) and issubclass(each, BaseModel):
                    found |= within(each, f"{place}.{name}".strip("."))
        return found

    assert within(StackFile, "") == FAAS_CLI


@each_row("field", sorted({*FAAS_CLI["functions"], *FAAS_CLI["configuration"]}))
def test_every_field_has_its_row_in_the_table(field):
    rows = re.findall(r"^\| ([^|]*) \|", README.read_text(), re.MULTILINE)
    named = {
        name.rpartition("configuration.")[2] for row in rows for name in re.findall(r"`(.*?)`", row)
    }
    assert field in named


def test_every_field_of_functions_is_tried_here():
    tried = {field for field, *_ in (*TOGETHER, *REFUSALS, *WARNINGS)}
    tried.add("lang")  # in test_called.py
    assert tried >= FAAS_CLI["functions"]


@each_row(("field", "one", "other", "both"), TOGETHER)
def test_fields_of_two_functions_in_one_wrap(folder_of, plan_of, tmp_path, field, one, other, both):
    folder = folder_of(fields_of(("wave", field, one), ("join", field, other)), PAIR)
    plan = plan_of(folder.workflow)
    if isinstance(both, str) and both.endswith("-conflict"):
        with pytest.raises(ChironError) as refused:
            built(folder, plan, tmp_path / "build")
        assert refused.value.code == both
        assert "wave" in refused.value.functions
        return
    (wrap,) = built(folder, plan, tmp_path / "build")
    assert holds(getattr(wrap, field), both)


@each_row(("field", "one", "other", "both"), TOGETHER)
def test_fields_of_two_functions_in_two_wraps(
    folder_of, plan_of, tmp_path, field, one, other, both
):
    folder = folder_of(fields_of(("wave", field, one), ("join", field, other)), PAIR)
    wraps = built(folder, plan_of(folder.workflow, "one-to-one"), tmp_path / "build")
    given = read_stack(folder.stack_file, {}).functions
    for name, wrap, value, elsewhere in zip(
        ("wave", "join"), wraps, (one, other), (other, one), strict=True
    ):
        if field == "environment_file":
            assert wrap.environment["IN_FILE"] == {"one.yml": "1", "two.yml": "2"}[value[0]]
        elif field in ("limits", "requests"):
            asked, found = getattr(given[name], field), getattr(wrap, field)
            assert found.memory_mib >= asked.memory_mib
            assert found.millicores >= asked.millicores
        else:
            assert holds(getattr(wrap, field), elsewhere if value is None else value) is (
                value is not None
            )


@each_row(
    ("field", "one", "other"),
    [(field, one, other) for field, one, other, both in TOGETHER if str(both).endswith("conflict")],
)
def test_the_scheduler_keeps_apart_what_generate_would_refuse(
    folder_of, profile_of, platform, tmp_path, field, one, other
):
    folder = folder_of(fields_of(("wave", field, one), ("join", field, other)))
    plan = schedule(
        folder.workflow,
        profile_of(folder.workflow),
        platform,
        1000.0,
        settings=read_settings(folder, {}),
    )
    for wrap in plan.wraps:
        assert not {"wave", "join"} <= {*map(folder.workflow.function_of, wrap.tasks)}
    assert len(built(folder, plan, tmp_path / "build")) == len(plan.wraps) > 1
    reasons = ("want different values of", "which does not, may depend on that")
    assert any(reason in line for line in plan.why for reason in reasons)


@each_row(("field", "value", "code"), REFUSALS)
def test_what_no_wrap_can_have_is_refused_by_name(folder_of, plan_of, tmp_path, field, value, code):
    folder = folder_of({"wave": {field: value}})
    with pytest.raises(ChironError) as refused:
        built(folder, plan_of(folder.workflow), tmp_path / "build")
    assert (refused.value.code, refused.value.functions) == (code, ("wave",))
    assert "wave" in refused.value.message


@each_row(("field", "value", "line"), WARNINGS)
def test_what_has_no_effect_is_a_warning(folder_of, plan_of, tmp_path, field, value, line):
    folder = folder_of({"wave": {field: value}})
    (warning,) = Sources.read(folder, {}).warnings
    assert line in warning
    assert "wave" in warning or field == "image"
    (wrap,) = built(folder, plan_of(folder.workflow), tmp_path / "build")
    assert "few" not in wrap.labels.values()
    assert not [key for key in wrap.annotations if "health" in key]
    assert (wrap.fprocess, wrap.skip_build) == ("python index.py", False)
    assert "TEST_ENABLED" not in wrap.build_args
    assert "98765" not in wrap.environment.values()


@pytest.mark.parametrize(("value", "said"), [("true", True), ("1", True), ("false", False)])
def test_a_token_that_all_callers_of_a_wrap_need_is_said(value, said):
    lines = list(left_out("wave", StackFunction(), {"jwt_auth": value}))
    why = "guards its wrap: callers need a token, which chiron and other wraps do not send"
    assert lines == [f"function wave: environment.jwt_auth {why}"] * said


def test_an_ordinary_folder_has_no_warning(small):
    assert Sources.read(small, {}).warnings == []


_KEYS = st.sampled_from(["a", "b", SCALE + "min", SCALE + "zero", PROFILE, "topic", "chiron.x"])
_VALUES = st.sampled_from(["1", "2", "true", "x"])
_MAPS = st.dictionaries(_KEYS, _VALUES, max_size=4)
_FUNCTIONS = st.builds(
    StackFunction,
    labels=_MAPS,
    annotations=_MAPS,
    build_args=st.dictionaries(st.sampled_from([*BUILD_ARGUMENTS, "OTHER"]), _VALUES, max_size=3),
    constraints=st.lists(st.sampled_from(["z=a", "z=b", "d=1", "odd"]), max_size=2).map(tuple),
    readonly_root_filesystem=st.booleans(),
    secrets=st.lists(st.sampled_from("xyz"), max_size=2).map(tuple),
)


@given(one=_FUNCTIONS, other=_FUNCTIONS)
def test_functions_that_are_not_kept_apart_lose_nothing_that_is_not_said(one, other):
    functions = {"one": one, "other": other}
    if variable_conflicts(one_valued(functions)):
        return
    wrap = united([one, other])
    for name, function in functions.items():
        said = " ".join(left_out(name, function, function.environment))
        assert {*function.constraints} <= {*wrap.constraints}
        assert {*function.secrets} <= {*wrap.secrets}
        assert function.readonly_root_filesystem == wrap.readonly_root_filesystem
        for field in ("labels", "annotations", "build_args"):
            for key, value in getattr(function, field).items():
                arrived = getattr(wrap, field).get(key)
                by_rule = key in (SCALE + "min", SCALE + "zero", "topic")
                assert arrived == value or (by_rule and arrived) or f" {key} is " in said


def test_the_build_arguments_are_those_of_the_dockerfile():
    text = (TEMPLATES / "python3-wrap" / "Dockerfile").read_text()
    assert {*re.findall(r"^ARG (\w+)", text, re.MULTILINE)} == {*BUILD_ARGUMENTS, PACKAGES}


def test_build_options_become_packages(folder_of, plan_of, tmp_path):
    options = {"build_options": ["libpq"], "build_args": {PACKAGES: "jq"}}
    folder = folder_of({"wave": options, "join": {"build_options": ["dev"]}})
    (wrap,) = built(folder, plan_of(folder.workflow), tmp_path / "build")
    assert wrap.build_options == ()
    assert {"jq", "libpq-dev", "make", "gcc"} <= {*wrap.build_args[PACKAGES].split()}


def test_templates_of_functions_that_are_no_task_keep_their_source(write_folder, plan_of, tmp_path):
    handler = "def handle(req):\n    return req\n"
    own = {"name": "mine", "source": "https://example.com/t"}
    official = {
        "name": "python3-flask",
        "source": "https://github.com/openfaas/python-flask-template",
    }
    folder = write_folder(
        tmp_path / "f",
        {"tasks": {"t": "wave"}},
        {"wave": handler, "side": handler},
        {},
        {"side": {"lang": "mine", "build_secrets": {"netrc": "./netrc"}, "skip_build": True}},
    )
    stack = json.loads(folder.stack_file.read_text())
    stack["configuration"] = {"templates": [own, official]}
    folder.stack_file.write_text(json.dumps(stack))
    sources = Sources.read(folder, {})
    assert sources.warnings == []
    found = read_stack(generate(plan_of(folder.workflow), sources, tmp_path / "build"), {})
    assert [each.model_dump() for each in found.configuration.templates] == [own]
    # faas-cli looks for it in the folder where it runs, which is another one now.
    assert found.functions["side"].build_secrets == {"netrc": str(folder.path / "netrc")}
    assert found.functions["side"].skip_build
    stack["configuration"]["templates"] = [official | {"source": "https://example.com/fork"}]
    folder.stack_file.write_text(json.dumps(stack))
    (warning,) = Sources.read(folder, {}).warnings
    assert "wave" in warning


def test_a_wrap_is_in_the_registry_of_its_functions(folder_of, plan_of, tmp_path):
    images = {
        name: {"image": f"docker.io/me/{name}:1"} for name in ("split", "wave", "mirror", "join")
    }
    folder = folder_of(images)
    plan = plan_of(folder.workflow)
    (wrap,) = built(folder, plan, tmp_path / "build")
    assert wrap.image.startswith(f"docker.io/me/{plan.wraps[0].name}:")
    named = Sources.read(folder, {"OPENFAAS_PREFIX": "ghcr.io/you"})
    functions = read_stack(generate(plan, named, tmp_path / "named"), {}).functions
    assert functions[plan.wraps[0].name].image.startswith(f"ghcr.io/you/{plan.wraps[0].name}:")


def test_variables_of_a_functions_own_server_are_none_of_its_wraps(folder_of, plan_of, tmp_path):
    own = {"mode": "streaming", "fprocess": "python own.py", "LEVEL": "debug"}
    folder = folder_of({"wave": {"environment": own}})
    (wrap,) = built(folder, plan_of(folder.workflow), tmp_path / "build")
    assert wrap.environment.keys() & own.keys() == {"LEVEL"}


def test_a_handler_may_be_the_folder_of_the_workflow_in_which_is_the_build(
    write_folder, plan_of, tmp_path
):
    code = "def handle(req):\n    return req\n"
    folder = write_folder(
        tmp_path, {"tasks": {"t": "echo"}}, {"echo": code}, {}, {"echo": {"handler": "./"}}
    )
    (folder.path / "handler.py").write_text(code)
    (folder.path / "template").mkdir()
    names = []
    for _ in range(2):
        sources = Sources.read(folder, {})
        names.append(source_of(sources))
        generate(plan_of(folder.workflow), sources, folder.path / "build")
        assert not list((folder.path / "build").glob("*/functions/echo/function/build"))
        assert not list((folder.path / "build").glob("*/functions/echo/function/template"))
    assert names[0] == names[1]


def test_variables_and_the_gateway_arrive_with_their_values(folder_of, plan_of, tmp_path):
    folder = folder_of(
        {"wave": {"labels": {"team": "${TEAM:-a}"}, "environment": {"B": "${B}"}}},
        provider={"name": "openfaas", "gateway": "${GATEWAY:-http://there:8080}"},
    )
    stack_file = generate(
        plan_of(folder.workflow), Sources.read(folder, {"B": "2"}), tmp_path / "b"
    )
    stack = read_stack(stack_file, {"TEAM": "other", "GATEWAY": "http://other"})
    assert stack.provider.gateway == "http://there:8080"
    (name,) = stack.functions
    spec = deployment(stack, name, stack_file.parent)
    assert (spec.labels["team"], spec.env_vars["B"]) == ("a", "2")


def test_what_is_handed_on_is_what_means_the_same_for_a_wrap():
    given = {"a": "1", "chiron.b": "2", "com.openfaas.ready.http.path": "/", "topic": "t"}
    assert handed_on(given) == {"a": "1", "topic": "t"}


def test_a_command_that_is_no_task_is_said_to_be_left_out(write_folder, plan_of, tmp_path):
    handlers = dict.fromkeys(("wave", "sort"), "def handle(req):\n    return req\n")
    command = {"sort": {"lang": "command", "fprocess": "sort -r"}}
    folder = write_folder(tmp_path / "f", {"tasks": {"t": "wave"}}, handlers, {}, command)
    sources = Sources.read(folder, {})
    why = "lang command runs in wraps alone, and no task uses it"
    assert sources.warnings == [f"function sort is not deployed: {why}"]
    stack = read_stack(generate(plan_of(folder.workflow), sources, tmp_path / "build"), {})
    assert "sort" not in stack.functions


@each_row(
    ("edges", "fprocess", "lost"),
    [
        ([["a", "c", "stream"], ["b", "c", "stream"]], "cat", "another stream"),
        ([["a", "c"], ["b", "c", "stream"]], "cat", "the input"),
        ([["a", "c"], ["b", "c", "stream"]], "cat {in:b} -", None),
        ([["a", "c", "stream"], ["b", "c", "stream"]], "cat {in:b} -", None),
    ],
)
def test_a_command_that_would_lose_a_stream_or_its_input_is_refused(
    write_folder, tmp_path, edges, fprocess, lost
):
    handlers = dict.fromkeys("abc", "def handle(req):\n    return req\n")
    command = {"c": {"lang": "command", "fprocess": fprocess}}
    workflow = {"tasks": {name: name for name in "abc"}, "edges": edges}
    folder = write_folder(tmp_path / "f", workflow, handlers, {}, command)
    if lost is None:
        assert Sources.read(folder, {}).commands == {"c": tuple(fprocess.split())}
        return
    with pytest.raises(ChironError, match=f"and so {lost} nowhere") as refused:
        Sources.read(folder, {})
    assert (refused.value.code, refused.value.path) == ("bad-command", "functions.c.fprocess")


def test_a_command_that_reads_a_stream_is_profiled_with_that_as_its_request(write_folder, tmp_path):
    handlers = dict.fromkeys("ac", "def handle(req):\n    return req\n")
    workflow = {"tasks": {"a": "a", "c": "c"}, "edges": [["a", "c", "stream"]]}
    command = {"c": {"lang": "command", "fprocess": "cat"}}
    folder = write_folder(tmp_path / "f", workflow, handlers, {}, command)
    check_commands(solo_workflow(folder.workflow), Sources.read(folder, {}).stack)


def test_the_limit_of_a_machines_data_is_that_of_any_of_its_functions(
    write_folder, plan_by_hand, tmp_path
):
    states = {
        name: {"Type": "Task", "Resource": name, "ResultPath": "$.v", **then}
        for name, then in (("wave", {"Next": "join"}), ("join", {"End": True}))
    }
    handlers = dict.fromkeys(states, "def handle(req):\n    return req\n")
    fields = {
        "wave": {"environment": {"WRAP_STATE_BYTES": "9000"}},
        "join": {"environment": {"WRAP_STATE_BYTES": "800"}},
    }
    machine = {"StartAt": "wave", "States": states}
    folder = write_folder(tmp_path / "f", machine, handlers, {}, fields)
    plan = plan_by_hand({"a": [["wave"]], "b": [["join"]]}, workflow=folder.workflow.name)
    entry, _ = built(folder, plan, tmp_path / "build")
    assert entry.environment["WRAP_STATE_BYTES"] == "800"


def test_what_of_the_workflow_has_no_effect_is_a_warning(write_folder, tmp_path):
    role = {"RoleArn": "arn:aws:iam::111122223333:role/r"}
    state = {"Type": "Task", "Resource": "echo", "Credentials": role, "End": True}
    machine = {"StartAt": "A", "States": {"A": state}}
    code = {"echo": "def handle(req):\n    return req\n"}
    folder = write_folder(tmp_path / "demo", machine, code, {})
    (warning,) = Sources.read(folder, {}).warnings
    assert "Credentials of state 'A'" in warning


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ('URL = "http://gateway:8080/function/wave"', True),
        ('post(f"{URL}/async-function/{name}") for name in ["wave"]', True),
        ("post(`${url}/function/${'wave'}`)", True),
        ('open("./function/wave.txt")', False),
        ('URL = "http://gateway:8080/function/waves"', False),
        ('CALLED = "wave"', False),
    ],
)
def test_a_function_that_calls_one_of_a_wrap_through_the_gateway_is_said(code, found):
    told = list(calling({"helper": code, "wave": code}, ["wave"]))
    assert [line.partition(" through")[0] for line in told] == [
        "function helper seems to call wave"
    ] * found


def test_variables_name_called_functions_too(write_folder, tmp_path):
    address = {"NEXT": "http://gateway.openfaas:8080/function/join"}
    folder = write_folder(tmp_path / "w", fields={"wave": {"environment": address}})
    told = Sources.read(folder, {}).warnings
    assert any(line.startswith("function wave seems to call join") for line in told)


@pytest.mark.parametrize(
    ("field", "file", "code"),
    [
        ({"lang": "golang-http"}, "handler.go", 'http.Post(gateway+"/function/"+"wave", "", body)'),
        ({"lang": "rust"}, "src/lib.rs", 'let url = "http://gateway:8080/function/wave";'),
        ({"lang": "php8"}, "Handler.php", "curl_init('http://gateway:8080/function/wave');"),
        ({"lang": "bash", "fprocess": "curl http://gateway:8080/function/wave"}, "notes.md", ""),
    ],
)
def test_a_director_of_any_language_is_said(write_folder, tmp_path, field, file, code):
    functions = {"wave": "def handle(req):\n    return req\n", "director": ""}
    folder = write_folder(
        tmp_path / "w", {"tasks": {"t": "wave"}}, functions, {}, {"director": field}
    )
    place = folder.path / "functions" / "director" / file
    place.parent.mkdir(exist_ok=True)
    place.write_text(code)
    (told,) = Sources.read(folder, {}).warnings
    assert told.startswith("function director seems to call wave through the gateway")


@pytest.mark.parametrize("file", ["README.md", "go.sum", "node_modules/x/index.js", "vendor/x.go"])
def test_documents_and_libraries_beside_a_director_are_not_its_code(write_folder, tmp_path, file):
    functions = {"wave": "def handle(req):\n    return req\n", "director": ""}
    fields = {"director": {"lang": "golang-http"}}
    folder = write_folder(tmp_path / "w", {"tasks": {"t": "wave"}}, functions, {}, fields)
    place = folder.path / "functions" / "director" / file
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("curl http://gateway:8080/function/wave")
    assert Sources.read(folder, {}).warnings == []


def test_a_function_with_a_longer_name_is_another():
    assert list(calling({"helper": "http://gateway:8080/function/wave-2"}, ["wave"])) == []


def test_lines_of_the_log_are_as_all_functions_of_a_wrap_say(write_folder, plan_of, tmp_path):
    bare, usual = {"environment": {"prefix_logs": "false"}}, {}
    echo = "def handle(req):\n    return req\n"
    for name, other, kept in (("agree", bare, "false"), ("differ", usual, None)):
        folder = write_folder(
            tmp_path / name,
            {"tasks": {"a": "one", "b": "two"}},
            {"one": echo, "two": echo},
            {},
            {"one": bare, "two": other},
        )
        sources = Sources.read(folder, {})
        stack = read_stack(generate(plan_of(folder.workflow), sources, tmp_path / f"of-{name}"), {})
        (wrap,) = stack.functions.values()
        assert wrap.environment.get("prefix_logs") == kept
        said = [line for line in sources.warnings if "environment.prefix_logs differs" in line]
        assert len(said) == (kept is None)


def test_a_variable_that_is_not_set_is_told(folder_of):
    folder = folder_of({"wave": {"environment": {"API": "URL"}}})
    written = folder.stack_file.read_text()
    folder.stack_file.write_text(written.replace("URL", "${URL}"))
    (told,) = Sources.read(folder, {}).warnings
    assert told.startswith("stack.yaml: not set, and so empty, are URL: ")
    assert Sources.read(folder, {"URL": "https://a"}).warnings == []
