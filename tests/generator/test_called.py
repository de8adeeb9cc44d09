"""Functions that no wrap runs: what is generated of them, and what they cannot do."""

from __future__ import annotations

import json
import re

import pytest

from chiron.generator.annotations import CALLED, FOR_WRAPS
from chiron.generator.fingerprint import source_of
from chiron.generator.generate import Sources, generate
from chiron.openfaas.stack import read_stack
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder

HANDLER = "def handle(req):\n    return req\n"
WORKFLOW = {"tasks": {"t": "wave", "u": "gopher", "v": "before"}, "edges": [["t", "u"], ["u", "v"]]}
#: Fields of a function of another language, all of which it keeps.
FIELDS = {
    "lang": "golang-own",
    "environment": {"DELAY": "5", "exec_timeout": "7s"},
    "labels": {"a": "b"},
    "annotations": {"topic": "orders"},
    "secrets": ["gopher-key"],
    "build_args": {"GO111MODULE": "on"},
    "limits": {"memory": "64Mi"},
    "readonly_root_filesystem": True,
}


@pytest.fixture
def write(write_folder, tmp_path):
    """A workflow of a handler, a function with `fields`, and one that is not in stack.yaml."""

    def write(workflow=WORKFLOW, **fields: object) -> WorkflowFolder:
        functions = {"wave": HANDLER, "gopher": "package function\n"}
        return write_folder(tmp_path / "f", workflow, functions, {}, {"gopher": FIELDS | fields})

    return write


@pytest.mark.parametrize("planner", ["sand", "one-to-one"])
def test_they_are_deployed_as_they_are_beside_the_wraps_that_call_them(
    planner, write, plan_of, tmp_path
):
    folder = write()
    own = folder.path / "template" / "golang-own"
    own.mkdir(parents=True)
    (own / "Dockerfile").write_text("FROM scratch\n")
    plan, sources = plan_of(folder.workflow, planner), Sources.read(folder)
    build = generate(plan, sources, tmp_path / "build").parent
    functions = read_stack(build / "stack.yaml", {}).functions
    gopher = functions.pop("gopher")
    kept = gopher.model_dump(include={*FIELDS}, exclude={"annotations"}, exclude_defaults=True)
    assert kept == {name: value for name, value in FIELDS.items() if name != "annotations"} | {
        "secrets": ("gopher-key",)
    }
    assert {"topic", FOR_WRAPS} < gopher.annotations.keys()
    assert (build / "gopher" / "handler.py").read_text() == "package function\n"
    assert (build / "template" / "golang-own" / "Dockerfile").is_file()
    assert functions.keys() == {wrap.name for wrap in plan.wraps}
    called = {each.annotations.get(CALLED) for each in functions.values()}
    assert called == ({"before,gopher"} if planner == "sand" else {None, "gopher", "before"})
    for wrap in functions.values():
        assert (wrap.labels, wrap.secrets, wrap.readonly_root_filesystem) == ({}, (), False)
        assert "DELAY" not in wrap.environment and "topic" not in wrap.annotations
    sources_of_wraps = "".join(file.read_text() for file in build.glob("*/handler.py"))
    assert "'gopher': 'remote'" in sources_of_wraps and "'gopher': 7.0" in sources_of_wraps
    assert not list(build.glob("*/functions/gopher"))


def test_what_is_not_in_stack_yaml_is_said(write):
    (warning,) = Sources.read(write()).warnings
    assert warning == "function before is not in stack.yaml: it has to be deployed already"


def test_an_image_is_not_built(write, plan_of, tmp_path):
    folder = write(lang="", handler="", image="ghcr.io/me/gopher:1")
    build = generate(plan_of(folder.workflow), Sources.read(folder), tmp_path / "build")
    gopher = read_stack(build, {}).functions["gopher"]
    assert (gopher.image, gopher.skip_build) == ("ghcr.io/me/gopher:1", True)


def test_their_code_and_fields_are_part_of_what_a_deployment_is_made_from(write):
    sources = Sources.read(write())
    before = source_of(sources)
    assert source_of(Sources.read(write())) == before
    assert source_of(Sources.read(write(labels={}))) != before
    (sources.folder.path / "functions" / "gopher" / "handler.py").write_text("package other\n")
    assert source_of(sources) != before


@pytest.mark.parametrize("file", ["common/words.go", "own.yml", "template/golang-own/main.go"])
def test_what_their_image_is_built_from_besides_is_part_of_it_too(file, write):
    folder = write({"tasks": {"u": "gopher"}}, environment_file=["own.yml"]).path
    for each in ("common/words.go", "own.yml", "template/golang-own/main.go"):
        (folder / each).parent.mkdir(parents=True, exist_ok=True)
        (folder / each).write_text("environment: {A: 1}\n")
    stack = json.loads((folder / "stack.yaml").read_text())
    stack["configuration"] = {"copy": ["common"]}
    (folder / "stack.yaml").write_text(json.dumps(stack))
    sources = Sources.read(WorkflowFolder.open(folder), {})
    before = source_of(sources)
    (folder / file).write_text("environment: {A: 2}\n")
    assert source_of(sources) != before


@pytest.mark.parametrize(
    ("edge", "told"), [(["u#left", "v"], "gopher#left"), (["t", "u", "stream"], "(t)")]
)
def test_they_can_only_answer(edge, told, write):
    with pytest.raises(ChironError, match=re.escape(told)) as refused:
        Sources.read(write({**WORKFLOW, "edges": [edge]}))
    assert (refused.value.code, refused.value.functions) == ("only-answers", ("gopher",))


@pytest.mark.parametrize(
    ("lang", "told"),
    [
        ("python3-falsk", "lang python3-falsk runs in no wrap (did you mean python3-flask?)"),
        ("python", "lang python runs in no wrap (python3-flask calls the same handle as python)"),
        ("golang-middleware", None),
        ("", None),
    ],
)
def test_a_language_that_seems_misspelled_is_told(lang, told, write):
    lines = [line for line in Sources.read(write(lang=lang)).warnings if "of its own" in line]
    assert lines == ([f"function gopher stays a function of its own: {told}"] if told else [])


def test_the_function_of_stack_yaml_that_a_missing_one_resembles_is_told(write):
    tasks = {"t": "wave", "u": "gohper"}
    folder = write({"tasks": tasks, "edges": [["t", "u"]]})
    told = "function gohper is not in stack.yaml (did you mean gopher?): it has to be"
    assert any(line.startswith(told) for line in Sources.read(folder).warnings)
