"""The reference executor answers what the handlers say, and names the one that fails."""

from __future__ import annotations

import os
import sys

import pytest

from chiron.templates import TEMPLATES
from chiron.workflow.data import bytes_of

ECHO = "def handle(req): return req"


def test_every_task_gets_what_its_source_says(run):
    done = run(
        {
            "a": "def handle(req): return req + '1'",
            "b": "def handle(req): return 'no JSON'",
            "c": ECHO,
        },
        b"4",
        edges=("ac", "bc"),
    )
    assert done.inputs == {"a": "4", "b": "4", "c": '[41,"no JSON"]'}
    assert done.outputs == {"a": "41", "b": "no JSON", "c": '[41,"no JSON"]'}
    assert done.output == done.outputs["c"]


def test_bytes_pass_through_a_chain_unchanged(run):
    text = '  {"b": 1.0, "a": 1e5}\r\n größe \u2028 ' * 200_000
    done = run({"a": ECHO, "b": ECHO}, text.encode(), edges=("ab",))
    assert done.output == text


EMITS = """
from chiron_io import emit
def handle(req):
    emit("left", req[:1])
    emit("other", "which nothing takes")
    emit("right", bytes([255]))
    return {"rest": req[1:]}
"""


def test_what_is_emitted_is_an_output(run):
    handlers = {"a": EMITS, "b": ECHO, "c": ECHO}
    done = run(handlers, b"4x", edges=(["a#left", "b"], ["a#right", "c"], ["a", "b"]))
    assert bytes_of(done.inputs["c"]) == bytes([255])
    assert done.inputs["b"] == '[4,{"rest":"x"}]'


@pytest.mark.parametrize("module", [".chiron_io", "function.chiron_io"])
def test_a_copy_of_chiron_io_beside_the_handler_emits_too(run, module):
    copy = (TEMPLATES / "python3-wrap" / "chiron_io.py").read_text()
    code = {"handler.py": EMITS.replace("chiron_io", module), "chiron_io.py": copy}
    done = run({"a": code, "b": ECHO}, b"4x", edges=(["a#left", "b"],))
    assert done.inputs["b"] == "4"


def test_a_handler_that_does_not_emit_what_is_awaited_fails(failure):
    edges = (["a#left", "b"], ["a#middle", "b"])
    error = failure({"a": EMITS, "b": ECHO}, b"4x", edges=edges)
    assert error.functions == ("a",)
    assert "without emitting a#middle" in error.message


@pytest.mark.parametrize(
    ("style", "code", "said"),
    [
        ("flask", "def handle(req): return None", "bad"),
        ("http", "def handle(event, context): return 7", "bad"),
        ("http", "def handle(event, context): return {'statusCode': 404, 'body': 'x'}", "bad"),
        ("flask", "def handle(req): raise ValueError('no\\nluck')", "ValueError: no"),
        ("flask", "import sys\ndef handle(req): sys.exit(0)", "bad"),
        ("flask", "def handle(req) return req", "bad"),
    ],
)
def test_the_function_that_fails_is_named(failure, style, code, said):
    good = {"flask": ECHO, "http": "def handle(event, context): return event.body"}
    error = failure({"good": good[style], "bad": code}, style=style)
    assert (error.code, error.functions) == ("function-failed", ("bad",))
    assert "bad" in error.message and said in error.message


def test_a_handler_that_ends_the_process_is_an_error_not_an_answer(failure):
    error = failure({"a": "import os\ndef handle(req): os._exit(7)"})
    assert error.code == "reference-died" and "7" in error.message


def test_a_run_that_takes_too_long_is_ended(failure):
    error = failure({"a": "import time\ntime.sleep(60)"}, timeout_s=1.5)
    assert (error.code, error.status) == ("timeout", 504)


def test_what_is_no_text_is_passed_on_but_cannot_be_joined(run, failure):
    binary = "def handle(req): return bytes([255]) + req.encode()"
    assert bytes_of(run({"a": binary}, b"\xfe").output) == b"\xff\xef\xbf\xbd"
    assert failure({"a": binary, "b": ECHO}, b"\xfe").code == "not-text"


def test_each_function_has_the_environment_of_its_stack(run):
    code = "import os\ndef handle(req): return os.environ.get('MINE', '-') + os.environ['ALL']"
    done = run({"a": code, "b": code}, environment={"ALL": "!"}, of_function={"a": {"MINE": "yes"}})
    assert done.outputs == {"a": "yes!", "b": "-!"}


def test_a_run_changes_neither_this_process_nor_the_folders_and_imports_nothing_from_here(
    run, tmp_path, monkeypatch
):
    for name in ("json.py", "flask.py", "workflow.py"):
        (tmp_path / name).write_text("raise RuntimeError('imported from the current folder')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    before, modules = dict(os.environ), set(sys.modules)
    code = {"handler.py": "import util\n" + ECHO, "util.py": "import os\nos.environ['X'] = '1'"}
    assert run({"a": code}, b"hi").output == "hi"
    assert dict(os.environ) == before
    assert not {"util", "function", "function.handler"} & (set(sys.modules) - modules)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == ["handler.py", "util.py"]
