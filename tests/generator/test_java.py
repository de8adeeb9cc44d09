"""Functions in Java: what is generated of them, what the reference run has them answer."""

from __future__ import annotations

import json
import shutil

import pytest

from chiron.evaluation.reference.sources import reference_run
from chiron.generator.generate import Sources, generate
from chiron.openfaas.stack import read_stack
from chiron.workflow.errors import WorkflowFailedError
from chiron.workflow.folder import WorkflowFolder

needs_java = pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK: install a JDK 17")
WORKFLOW = {"tasks": {"t": "more", "u": "twice"}, "edges": [["t", "u"]]}
MORE = """
package com.openfaas.function;
import com.openfaas.model.*;
public class Handler extends com.openfaas.model.AbstractHandler {
    public IResponse Handle(IRequest req) {
        Response res = new Response();
        res.setBody(String.valueOf(Integer.parseInt(req.getBody()) + 1));
        return res;
    }
}
"""
FILE = "src/main/java/com/openfaas/function/Handler.java"


@pytest.fixture
def write(tmp_path):
    """A workflow of a Java handler and a Python handler."""

    def write(source: str = MORE) -> WorkflowFolder:
        folder = tmp_path / "folder"
        for name, content in (
            (f"more/{FILE}", source),
            ("twice/handler.py", "def handle(req):\n    return str(2 * int(req))\n"),
        ):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        functions = {
            "more": {"lang": "java17", "handler": "./more", "image": "more"},
            "twice": {"lang": "python3-flask", "handler": "./twice", "image": "twice"},
        }
        stack = {"version": "1.0", "provider": {"name": "openfaas"}, "functions": functions}
        (folder / "stack.yaml").write_text(json.dumps(stack))
        (folder / "workflow.json").write_text(json.dumps({"name": "mixed", **WORKFLOW}))
        return WorkflowFolder.open(folder)

    return write


def test_their_wraps_alone_are_built_with_a_jdk(write, plan_of, tmp_path):
    folder = write()
    plan = plan_of(folder.workflow, "one-to-one")
    build = generate(plan, Sources.read(folder), tmp_path / "build")
    functions = read_stack(build, {}).functions
    arguments = [functions[wrap.name].build_args for wrap in plan.wraps]
    assert arguments == [{"ADDITIONAL_PACKAGE": "default-jdk-headless"}, {}]
    code = build.parent / plan.wraps[0].name / "functions" / "more" / "function" / FILE
    assert code.read_text() == MORE


def test_what_needs_a_jar_that_is_not_there_stays_a_function_of_its_own(write, plan_of, tmp_path):
    folder = write(MORE.replace("import", "import org.acme.Tool;\nimport", 1))
    sources = Sources.read(folder)
    assert sources.called == ("more",)
    assert (
        "function more stays a function of its own: it imports org.acme.Tool, which no jar in its "
        "folder lib has: copy it there" in sources.warnings
    )
    plan = plan_of(folder.workflow, "one-to-one")
    more = read_stack(generate(plan, sources, tmp_path / "build"), {}).functions["more"]
    assert (more.lang, more.handler, more.fprocess) == ("java17", "./more", "")


@needs_java
def test_the_reference_run_has_them_answer_and_tells_their_errors(write):
    sources = Sources.read(write())
    run = reference_run(sources, b"4", "http://127.0.0.1:1")
    assert (run.outputs, run.output) == ({"t": "5", "u": "10"}, "10")
    with pytest.raises(WorkflowFailedError, match=r"more failed.*For input string") as failed:
        reference_run(sources, b"a", "http://127.0.0.1:1")
    assert failed.value.error == "java.lang.NumberFormatException"
    cause = json.loads(failed.value.cause)
    assert cause["stackTrace"] == ["Handler.java:7 in Handle"]
