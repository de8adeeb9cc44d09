"""In the reference run every handler is called as its template would, in a world of its own."""

from __future__ import annotations

import json
from itertools import pairwise

from chiron.evaluation.reference.executor import Handler, run_reference
from chiron.workflow.data import bytes_of
from chiron.workflow.folder import parse_workflow
from tests.serving import Answering, served


def commanded(tmp_path, *commands, request=b"plait", environment=None):
    """What the reference run of a chain of commands answers."""
    words = {f"c{number}": each for number, each in enumerate(commands)}
    handlers = {c: Handler(tmp_path, "command", environment or {}, words[c]) for c in words}
    chain = {"tasks": {name: name for name in words}, "edges": [*map(list, pairwise(words))]}
    return run_reference(parse_workflow(chain), handlers, request)


def test_a_command_reads_stdin_or_a_file_and_writes_stdout_or_another(tmp_path):
    (tmp_path / "mine.sh").write_text('cat; printf "$MINE"')
    shell = commanded(tmp_path, ("sh", "mine.sh"), environment={"MINE": "$HOME"})
    assert shell.output == "plait$HOME"
    copies = [("cat",), ("cat", "{in}"), ("cp", "{in}", "{out}"), ("dd", "of={out}")]
    done = commanded(tmp_path, *copies, request=b"\xff\0")
    assert [*map(bytes_of, done.outputs.values())] == [b"\xff\0"] * 4


def test_a_command_that_fails_is_told_with_what_it_said(tmp_path, refused):
    error = refused(commanded, tmp_path, ("sh", "-c", "echo no luck >&2; exit 3"))
    assert (error.code, error.functions) == ("function-failed", ("c0",))
    assert "ExitedError: sh ended with 3: no luck" in error.message


def test_a_function_that_is_deployed_by_itself_is_called(tmp_path, refused):
    class Deployed(Answering):
        def do_POST(self):
            body = self.body()
            self.answer(503 if body == b"fail" else 200, self.path.encode() + b" " + body)

    def called(request):
        handler = Handler(tmp_path, "remote", {}, url=f"{url}/function/a")
        return run_reference(parse_workflow({"tasks": {"a": "a"}}), {"a": handler}, request)

    with served(Deployed) as url:
        assert bytes_of(called(b"\xff").output) == b"/function/a \xff"
        error = refused(called, b"fail")
    assert "StatusError: the function answered 503: /function/a fail" in error.message


def returned(run, head, expressions, style="flask"):
    """What handlers that return so answer, by expression."""
    named = {f"f{number}": each for number, each in enumerate(expressions)}
    done = run({name: f"{head}: return {each}" for name, each in named.items()}, style=style)
    return {each: done.outputs[name] for name, each in named.items()}


def test_a_flask_handler_answers_what_flask_accepts(run):
    texts = {
        "'text'": "text",
        "'größe'": "größe",
        "b'bytes'": "bytes",
        "''": "",
        "('body', 201)": "body",
        "('body', {'X-A': 'b'})": "body",
        "('body', 200, {'X-A': 'b'})": "body",
    }
    values = {"{'a': [1, None]}": {"a": [1, None]}, "[1, 'x']": [1, "x"], "{}": {}}
    found = returned(run, "def handle(req)", [*texts, *values])
    assert {each: found[each] for each in texts} == texts
    assert {each: json.loads(found[each]) for each in values} == values


def test_an_http_handler_answers_its_body(run):
    texts = {
        "{'statusCode': 200, 'body': 'text'}": "text",
        "{'body': b'bytes', 'headers': {'X-A': 'b'}}": "b'bytes'",
        "{'body': [1, 'x']}": "[1, 'x']",
        "b'bytes'": "bytes",
        "('text', 201)": "text",
        "{'statusCode': 204}": "",
        "{'body': 42}": "42",
        "{'other': 1}": "",
        "None": "",
    }
    bodies = {"{'body': {'a': [1, None]}}": {"a": [1, None]}, "[1, 'x']": [1, "x"]}
    found = returned(run, "def handle(event, context)", [*texts, *bodies], style="http")
    assert {each: found[each] for each in texts} == texts
    assert {each: json.loads(found[each]) for each in bodies} == bodies


def test_an_http_handler_sees_an_event_and_a_context(run):
    code = """
def handle(event, context):
    assert type(event.body) is bytes and context.hostname
    assert not event.headers and not event.query
    return {"body": f"{event.method} {event.path} {event.body.decode()}"}
"""
    assert run({"a": code}, b"hi", style="http").output == "POST / hi"


def test_a_function_has_its_modules_data_and_package_to_itself(run):
    def files(word: str) -> dict[str, str]:
        return {
            "handler.py": (
                "import util\nfrom . import near\nfrom function import deep\n"
                "from function.package.inner import INNER\nfrom pathlib import Path\n"
                "def handle(req):\n"
                "    import late\n"
                "    data = Path(__file__).with_name('data.txt').read_text()\n"
                "    return ' '.join([util.W, near.W, deep.W, INNER, late.W, data])\n"
            ),
            "util.py": f"W = '{word}'",
            "near.py": f"W = '{word}'",
            "deep.py": f"from .util import W\nassert W == '{word}'",
            "late.py": f"import util\nW = util.W\nassert W == '{word}'",
            "package/__init__.py": "",
            "package/inner.py": f"INNER = '{word}'",
            "data.txt": word,
        }

    done = run({"a": files("one"), "b": files("two")})
    assert done.outputs == {"a": " ".join(["one"] * 6), "b": " ".join(["two"] * 6)}


PRINTS = """
import os, subprocess, sys
print('{"output": "wrong"}')
def handle(req):
    print("noise", flush=True)
    print("noise", file=sys.stderr)
    sys.stdout.buffer.write(b"\\xff\\n")
    sys.stdout.flush()
    subprocess.run([sys.executable, "-c", "print(1)"], check=True)
    os.write(1, b"\\xfe and no end of line")
    return "right"
"""
THREAD = "import threading\ndef handle(req): return threading.current_thread().name"
SETS = "import os\nos.environ['MINE'] = 'x'\ndef handle(req): return os.environ['MINE']"
ASKS = "import os\ndef handle(req): return os.environ.get('MINE', '-')"
LEAVES = """
import threading, time
def handle(req):
    threading.Thread(target=time.sleep, args=(600,)).start()
    return "left"
"""
TYPE = "def handle(req): return type(req).__name__"
LOOKS = "from flask import request\ndef handle(req): return request.method + request.path"
#: Functions of one run, and what each of them answers.
OWN_WORLDS = {
    "prints-elsewhere": (PRINTS, "right"),
    "hides-no-installed-module": (
        {
            "handler.py": "import networkx\ndef handle(req): return networkx.Graph.__name__\n",
            "networkx.py": "raise ImportError('not this one')\n",
        },
        "Graph",
    ),
    "runs-its-init": (
        {
            "__init__.py": "W = 'x'",
            "handler.py": "import function\ndef handle(req): return function.W",
        },
        "x",
    ),
    "leaves-a-thread-behind": (LEAVES, "left"),
    "sets-a-variable": (SETS, "x"),
    "sees-none-of-another": (ASKS, "-"),
    "has-a-raw-body": (TYPE, "bytes"),
    "has-text": (TYPE, "str"),
    "looks-at-the-request": (LOOKS, "POST/"),
}


def test_each_function_has_a_world_of_its_own(run):
    codes = {name: code for name, (code, _) in OWN_WORLDS.items()}
    done = run(
        codes | {"names-its-thread": THREAD}, of_function={"has-a-raw-body": {"RAW_BODY": "True"}}
    )
    assert done.outputs.pop("names-its-thread") != "MainThread"
    assert done.outputs == {name: answer for name, (_, answer) in OWN_WORLDS.items()}


def test_a_function_keeps_its_state_from_task_to_task(tmp_path):
    (tmp_path / "handler.py").write_text(
        "calls = 0\ndef handle(req):\n    global calls\n    calls += 1\n    return str(calls)"
    )
    workflow = parse_workflow({"tasks": {"a": "f", "b": "f"}})
    done = run_reference(workflow, {"f": Handler(tmp_path, "flask", {})}, b"")
    assert done.output == "[1,2]"
