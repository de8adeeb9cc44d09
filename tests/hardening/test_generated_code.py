"""Nothing that a user writes becomes code, a path, an option, an expansion or a header.

Hostile texts are put into every field of every artefact: in a soak, every text into each. Then it
is refused with an error, or what is generated is as harmless as without it.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Mapping
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from chiron.generator.generate import Sources, generate
from chiron.openfaas.stack import deployment, read_stack
from chiron.scheduler.folder_settings import FolderSettings
from chiron.scheduler.schedule import schedule
from chiron.workflow.constraints import read_constraints
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.names import NAME
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile
from chiron.workflow.strict_yaml import dump_yaml

MARK = "Evil"
HOSTILE = {
    "quotes": f"'); import {MARK}; ('",
    "triple quotes": f'"""\nimport {MARK}\n"""',
    "a new line": f"a\nimport {MARK}\n",
    "a carriage return": f"a\r\nX-{MARK}: 1",
    "a variable": f"${{{MARK}}}",
    "a variable with a default": f"${{{MARK}:-{MARK}}}",
    "a command": f"$(touch {MARK})",
    "a way out": f"../../{MARK}",
    "a way out that looks like a name": f"a/../../{MARK}",
    "a path": f"/tmp/{MARK}",  # noqa: S108
    "a NUL": f"a\0{MARK}",
    "a template": f"{{{{ {MARK} }}}}{{% for %}}",
    "an option": f"--index-url=http://{MARK}",
    "an include": f"-r /{MARK}",
    "a tag": f"!!python/object/apply:os.system ['{MARK}']",
    "an alias": f"*{MARK}",
    "a full-width name": "\uff53\uff50\uff4c\uff49\uff54",
    "an invisible character": "split\u200b",
    "a reversed text": f"\u202e{MARK}",
    "a line separator": f"a\u2028import {MARK}",
    "an escape": f"\x1b]0;{MARK}\x07",
    "a backslash": f"\\{MARK}\\N{{BULLET}}",
    "ten thousand characters": MARK * 2500,
    "nothing": "",
}
each_hostile_text = pytest.mark.parametrize(
    "text",
    [
        pytest.param(None, id="each in turn"),
        *(pytest.param(text, id=name, marks=pytest.mark.soak) for name, text in HOSTILE.items()),
    ],
)


def tried(places, text):
    """Each place with `text`; where that is None, each place and each text at least once."""
    places, texts = list(places), [text] if text is not None else list(HOSTILE.values())
    count = max(len(places), len(texts))
    return islice(zip(cycle(places), cycle(texts), strict=False), count)


WORKFLOW = {
    "Comment": "c",
    "Name": "w",
    "StartAt": "A",
    "States": {
        "A": {"Type": "Task", "Resource": "split", "Comment": "c", "Next": "F"},
        "F": {"Type": "Fail", "Error": "e", "Cause": "c"},
    },
}
STACK = {
    "version": "1.0",
    "provider": {"name": "openfaas", "gateway": "http://127.0.0.1:8080"},
    "configuration": {
        "copy": ["common"],
        "templates": [{"name": "dockerfile", "source": "https://example.com/templates.git"}],
    },
    "functions": {
        "split": {
            "lang": "python3-flask",
            "handler": "./functions/split",
            "image": "split:latest",
            "fprocess": "python index.py",
            "namespace": "openfaas-fn",
            "environment": {"KEY": "value"},
            "secrets": ["s"],
            "labels": {"l": "v"},
            "annotations": {"a": "v"},
            "constraints": ["c"],
            "build_args": {"PYTHON_VERSION": "3.12"},
            "build_options": ["dev"],
            "platforms": "linux/amd64",
            "limits": {"memory": "64Mi", "cpu": "1"},
        },
        "helper": {"lang": "dockerfile", "handler": "./functions/split", "image": "helper:latest"},
    },
}


def places(document, here=()):
    """The path of every text and of every key in a document; a key's ends in None."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield (*here, key, None)
            yield from places(value, (*here, key))
    elif isinstance(document, list):
        for index, value in enumerate(document):
            yield from places(value, (*here, index))
    elif isinstance(document, str):
        yield here


def put(document, place, text):
    """The document with `text` at that place, as its value or as its key."""
    copy = json.loads(json.dumps(document))
    holder = copy
    key_itself = place[-1] is None
    *way, last = place[:-1] if key_itself else place
    for part in way:
        holder = holder[part]
    if key_itself:
        holder[text] = holder.pop(last)
    else:
        holder[last] = text
    return copy


class Everything(Mapping):
    """Variables of which every one is set."""

    def __getitem__(self, name):
        return "expanded"

    def __iter__(self):
        return iter(())

    def __len__(self):
        return 0


@pytest.fixture
def folder(tmp_path):
    """Where a workflow folder is written; beside it nothing may appear but `build`."""
    (tmp_path / "w" / "functions" / "split").mkdir(parents=True)
    (tmp_path / "w" / "functions" / "split" / "handler.py").write_text(
        "def handle(req):\n    return req\n"
    )
    (tmp_path / "w" / "common").mkdir()
    (tmp_path / "w" / "common" / "shared.py").write_text("WORD = 1\n")
    return tmp_path / "w"


@pytest.fixture
def generated(folder, profile_of, platform, without_template):
    """Write the artefacts, and generate; None where they are refused."""
    plans = dict[str, Plan]()

    def planned(workflow):
        known = repr(workflow)
        if known not in plans:
            plans[known] = schedule(workflow, profile_of(workflow), platform, 1000.0)
        return plans[known]

    def attempt(workflow=WORKFLOW, stack=STACK, requirements=None, change=None):
        (folder / "workflow.json").write_text(json.dumps(workflow), encoding="utf-8")
        (folder / "stack.yaml").write_bytes(dump_yaml(stack).encode("utf-8", "surrogatepass"))
        if requirements is not None:
            file = folder / "functions" / "split" / "requirements.txt"
            file.write_text(requirements, encoding="utf-8")
        try:
            opened = WorkflowFolder.open(folder)
            plan = planned(opened.workflow)
            plan = change(plan) if change else plan
            out = folder.parent / "build"
            return generate(plan, Sources.read(opened, {}), out, trace_key="the-key")
        except ChironError as error:
            assert str(error).isprintable()
            return None
        finally:
            assert {path.name for path in folder.parent.iterdir()} <= {"w", "build"}

    return attempt


def check(stack_file: Path) -> None:
    """What was generated is declarations, plain requirements and text that nothing expands."""
    build = stack_file.parent
    stack = read_stack(stack_file, {})
    assert stack == read_stack(stack_file, Everything())
    assert {path.name for path in build.iterdir()} <= {"template", "stack.yaml", *stack.functions}
    for name, function in stack.functions.items():
        assert NAME.fullmatch(name)
        assert function.handler in (f"./{name}", "")
        with suppress(ChironError):  # it may lack an image
            assert deployment(stack, name, build).service == name
        if function.lang == "python3-wrap":
            check_declaration((build / name / "handler.py").read_text())
            for line in (build / name / "requirements.txt").read_text().splitlines():
                Requirement(line)


def check_declaration(source: str) -> None:
    """The file imports the runtime's two classes, and makes one of literals."""
    text, imported, made = ast.parse(source).body
    assert isinstance(text, ast.Expr)
    assert isinstance(ast.literal_eval(text.value), str)
    assert isinstance(imported, ast.ImportFrom)
    assert (imported.module, [name.name for name in imported.names]) == (
        "wrap.core.wrap_spec", ["Entry", "Wrap"]
    )  # fmt: skip
    assert isinstance(made, ast.Assign)
    check_call(made.value, ["Wrap", "Entry"])


def check_call(call: ast.expr, classes: list[str]) -> None:
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    assert (call.func.id, call.args) == (classes[0], [])
    for keyword in call.keywords:
        if isinstance(keyword.value, ast.Call):
            check_call(keyword.value, classes[1:])
        else:
            ast.literal_eval(keyword.value)


def test_what_is_harmless_is_generated(generated):
    check(generated())


@each_hostile_text
def test_in_the_workflow(generated, folder, text):
    for place, each in tried(places(WORKFLOW), text):
        if stack_file := generated(workflow=put(WORKFLOW, place, each)):
            check(stack_file)


@each_hostile_text
def test_in_the_stack_file(generated, text):
    for place, each in tried(places(STACK), text):
        if stack_file := generated(stack=put(STACK, place, each)):
            check(stack_file)


@each_hostile_text
def test_in_the_requirements(generated, text):
    lines = ("{}", "numpy=={}", "numpy; {}", "numpy[{}]", "numpy @ {}")
    for line, each in tried(lines, text):
        if stack_file := generated(requirements=line.replace("{}", each) + "\n"):
            check(stack_file)


@each_hostile_text
def test_in_the_plan(generated, text):
    def change_at(place, each):
        def change(plan):
            document = json.loads(plan.model_dump_json(exclude_none=True))
            return validate(Plan, put(document, place, each), "plan")

        return change

    document = {"format": 2, "workflow": "w", "planner": "pgp", "trigger": "stage", "cpus": 1}
    wrap = {"name": "w-wrap1", "cpus": 1, "memory_mib": 64, "mechanism": "fork"}
    whole = {**document, "wraps": [{**wrap, "processes": [["A"]]}], "why": ["because"]}
    for place, each in tried(places(whole), text):
        if stack_file := generated(change=change_at(place, each)):
            check(stack_file)


@each_hostile_text
def test_in_the_profile_and_the_platform(generated, profile_of, platform, folder, text):
    generated()
    opened = WorkflowFolder.open(folder)
    profile = json.loads(profile_of(opened.workflow).model_dump_json(exclude_none=True))
    profile["functions"]["split"] |= {
        "runtime": "python3.11", "requirements": ["numpy==1"], "unshareable": ["os.chdir"],
        "files_read": ["/a"], "files_written": ["/b"],
    }  # fmt: skip
    measured = json.loads(platform.model_dump_json(exclude_none=True))
    for which, document in ((0, profile), (1, measured)):
        for place, each in tried(places(document), text):
            changed = [profile, measured]
            changed[which] = put(document, place, each)
            try:
                plan = schedule(
                    opened.workflow,
                    validate(Profile, changed[0], "profile"),
                    validate(Platform, changed[1], "platform"),
                    1000.0,
                )
            except ChironError as error:
                assert str(error).isprintable()
                continue
            check(generated(change=lambda _, plan=plan: plan))


CONSTRAINTS = {"format": 1, "isolate": {"split": "process"}, "together": [["split", "split"]]}


@each_hostile_text
def test_in_the_constraints(generated, profile_of, platform, folder, text):
    generated()
    workflow = WorkflowFolder.open(folder).workflow

    def planned(constraints):
        (folder / "constraints.json").write_text(json.dumps(constraints))
        return schedule(
            workflow,
            profile_of(workflow),
            platform,
            1000.0,
            settings=FolderSettings(read_constraints(folder)),
        )

    assert planned(CONSTRAINTS)
    for place, each in tried(places(CONSTRAINTS), text):
        try:
            plan = planned(put(CONSTRAINTS, place, each))
        except ChironError as error:
            assert str(error).isprintable()
            continue
        check(generated(change=lambda _, plan=plan: plan))


def test_in_the_payload(generated, folder):
    # Its length is in stack.yaml, and nothing else of it.
    generated()
    for text in HOSTILE.values():
        (folder / "payload.json").write_text(text, encoding="utf-8")
        assert WorkflowFolder.open(folder).payloads()[0].content == text.encode()
    text = HOSTILE["a template"]
    (folder / "payload.json").write_text("x" * len(text))
    without = generated().read_text()
    (folder / "payload.json").write_text(text)
    assert generated().read_text() == without


def test_texts_that_may_be_anything_arrive_as_they_are(generated):
    for text in HOSTILE.values():
        stack = put(STACK, ("functions", "split", "environment", "KEY"), text)
        if stack_file := generated(stack=_escaped(stack)):
            functions = read_stack(stack_file, Everything()).functions
            assert [f.environment["KEY"] for f in functions.values() if f.environment] == [text]


def _escaped(stack):
    """The stack file in which `$` and the backslash stand for themselves."""
    return json.loads(json.dumps(stack).replace("$", "$$").replace("\\\\", "\\\\\\\\"))
