"""Functions in Node.js: what is generated of them, what the reference run has them answer."""

from __future__ import annotations

import json
import shutil

import pytest

from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources, generate
from chiron.openfaas.stack import read_stack
from chiron.workflow.errors import ChironError, WorkflowFailedError
from chiron.workflow.folder import WorkflowFolder

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js: install node 20")
WORKFLOW = {"tasks": {"t": "more", "u": "twice"}, "edges": [["t", "u"]]}
MORE = "module.exports = async (event, context) => context.succeed({ n: event.body.n + 1 })\n"
TWICE = "import json\ndef handle(req):\n    return str(2 * json.loads(req)['n'])\n"


@pytest.fixture
def write(tmp_path):
    """A workflow of a Node.js handler and a Python handler."""

    def write(source: str = MORE, workflow: object = WORKFLOW) -> WorkflowFolder:
        folder = tmp_path / "folder"
        for name, file, content in (
            ("more", "handler.js", source),
            ("twice", "handler.py", TWICE),
        ):
            (folder / name).mkdir(parents=True, exist_ok=True)
            (folder / name / file).write_text(content)
        functions = {
            "more": {"lang": "node20", "handler": "./more", "image": "more"},
            "twice": {"lang": "python3-flask", "handler": "./twice", "image": "twice"},
        }
        stack = {"version": "1.0", "provider": {"name": "openfaas"}, "functions": functions}
        (folder / "stack.yaml").write_text(json.dumps(stack))
        (folder / "workflow.json").write_text(json.dumps({"name": "mixed", **workflow}))
        return WorkflowFolder.open(folder)

    return write


def test_their_wraps_alone_are_built_with_node(write, plan_of, tmp_path):
    folder = write()
    plan = plan_of(folder.workflow, "one-to-one")
    build = generate(plan, Sources.read(folder), tmp_path / "build")
    functions = read_stack(build, {}).functions
    arguments = [functions[wrap.name].build_args for wrap in plan.wraps]
    assert arguments == [{"RUNTIME_IMAGE": "node:20-bookworm-slim"}, {}]
    code = build.parent / plan.wraps[0].name / "functions" / "more" / "function" / "handler.js"
    assert code.read_text() == MORE


def test_a_template_with_a_newer_node_is_told_once(write):
    folder = write()
    stack = folder.path / "stack.yaml"
    stack.write_text(stack.read_text().replace("node20", "node22"))
    (warning,) = Sources.read(folder).warnings
    assert warning == (
        "function more: lang node22 runs on Node.js 20 in a wrap: to keep it a function of its "
        'own, write "engines": {"node": ">=22"} in its package.json'
    )


def test_they_neither_emit_nor_read_streams(write):
    emitting = write(workflow={**WORKFLOW, "edges": [["t#left", "u"]]})
    with pytest.raises(ChironError, match="more#left") as refused:
        Sources.read(emitting)
    assert (refused.value.code, refused.value.functions) == ("only-answers", ("more",))


@needs_node
def test_the_reference_run_has_them_answer(write):
    run = reference_run(Sources.read(write()), b'{"n": 4}', "http://127.0.0.1:1")
    assert (run.outputs, run.output) == ({"t": '{"n":5}', "u": "10"}, "10")


@needs_node
@pytest.mark.parametrize(("request_", "given"), [(b"{", "string"), (b"\xff", "object")])
def test_the_reference_run_gives_them_what_a_wrap_does(write, request_, given):
    telling = write("module.exports = async event => typeof event.body\n", {"tasks": {"t": "more"}})
    assert reference_run(Sources.read(telling), request_, "http://127.0.0.1:1").output == given


@needs_node
def test_the_reference_run_refuses_what_the_template_refuses(write):
    with pytest.raises(WorkflowFailedError, match="answered 413: PayloadTooLargeError"):
        reference_run(Sources.read(write()), b"[%s0]" % (b"0," * 60_000), "http://127.0.0.1:1")


@needs_node
def test_the_reference_run_tells_their_errors(write):
    failing = write("module.exports = async () => { throw new TypeError('no stock') }\n")
    with pytest.raises(WorkflowFailedError, match=r"function more failed.*no stock") as failed:
        reference_run(Sources.read(failing), b"", "http://127.0.0.1:1")
    assert failed.value.error == "TypeError"
    cause = json.loads(failed.value.cause)
    assert cause["stackTrace"] == ["handler.js:1 in module.exports"]
