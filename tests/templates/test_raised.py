"""What a handler raises reaches Catch as its class and all that it says, from wherever it ran."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest

from chiron.deployment.local_launcher import LocalLauncher

HANDLER = """
import json, os, sys

class OrderError(Exception):
    pass

def local():
    class OrderError(Exception):
        pass
    return OrderError

class Pretty(Exception):
    def __str__(self):
        return json.dumps({"code": 7}, indent=1)

class Broken(Exception):
    def __str__(self):
        raise ValueError("unprintable")

class Leaving(Exception):
    def __str__(self):
        sys.exit(1)

class Unpicklable(Exception):
    def __reduce__(self):
        raise TypeError

class Other(Exception):
    def __str__(self):
        return 5

def chained():
    try:
        raise KeyError("inner")
    except KeyError as error:
        raise OrderError("outer") from error

def noted():
    error = OrderError("noted")
    error.add_note("see the manual")
    raise error

def throw(error):
    raise error

def handle(req):
    eval(json.loads(req))
"""
#: What a handler does, and the Error and Cause of it.
RAISED: dict[str, tuple[str, str]] = {
    "throw(OrderError('no stock'))": ("OrderError", "no stock"),
    "throw(OrderError)": ("OrderError", ""),
    "throw(local()('no stock'))": ("OrderError", "no stock"),
    "throw(type('Nested', (OrderError,), {})('x'))": ("Nested", "x"),
    "throw(OrderError('first\\nsecond: {1}'))": ("OrderError", "first\nsecond: {1}"),
    "throw(OrderError('\\n\\nthird'))": ("OrderError", "\n\nthird"),
    "throw(OrderError('see (order.py:12)'))": ("OrderError", "see (order.py:12)"),
    "throw(OrderError('a: b: c'))": ("OrderError", "a: b: c"),
    "throw(OrderError(1, 'two'))": ("OrderError", "(1, 'two')"),
    "throw(OrderError('x' * 5000))": ("OrderError", "x" * 5000),
    "throw(OrderError('x' * 50_000))": ("OrderError", "x" * 32_703),
    "throw(OrderError('grüße \\ud800'))": ("OrderError", "grüße \\ud800"),
    "throw(OrderError(os.fsdecode(b'\\xff')))": ("OrderError", "\\udcff"),
    "throw(Pretty())": ("Pretty", '{\n "code": 7\n}'),
    "throw(Broken())": ("Broken", "str() of it raised ValueError"),
    "throw(Leaving())": ("Leaving", "str() of it raised SystemExit"),
    "throw(Other())": ("Other", "str() of it raised TypeError"),
    "throw(Unpicklable('x'))": ("Unpicklable", "x"),
    "chained()": ("OrderError", "outer"),
    "noted()": ("OrderError", "noted"),
    "throw(ExceptionGroup('several', [OrderError('a'), ValueError('b')]))": (
        "ExceptionGroup",
        "several (2 sub-exceptions)",
    ),
    "throw(KeyboardInterrupt('x'))": ("KeyboardInterrupt", "x"),
    "throw(GeneratorExit('x'))": ("GeneratorExit", "x"),
    "throw(BaseException('x'))": ("BaseException", "x"),
    "{}['key']": ("KeyError", "'key'"),
    "1 / 0": ("ZeroDivisionError", "division by zero"),
    "json.loads('x')": ("JSONDecodeError", "Expecting value: line 1 column 1 (char 0)"),
    "compile('1 +', 'made.py', 'exec')": ("SyntaxError", "invalid syntax (made.py, line 1)"),
    "sys.exit('text\\nof two lines')": ("exited", "sys.exit('text\\nof two lines')"),
    "sys.exit(3)": ("exited", "sys.exit(3)"),
    "sys.exit()": ("exited", "sys.exit(None)"),
}
LAYOUTS: dict[str, dict[str, Any]] = {
    "thread": {},
    "pool": {"processes": [[], [0]], "mechanism": "pool"},
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_class_and_whole_message_are_in_the_answer(layout, start, wrap_image):
    server = start(wrap_image({"one": HANDLER}, entry={"output": 0}, **LAYOUTS[layout]))
    found = {}
    for does in RAISED:
        answer = server.request(body=json.dumps(does))
        error = answer.json
        assert "\n" not in error["message"]
        told = json.loads(error["cause"])
        assert told["errorType"] == error["error"]
        assert len(error["cause"]) <= 32_768
        found[does] = (error["error"], told["errorMessage"])
    assert {does: each for does, each in found.items() if each != RAISED[does]} == {}


def test_an_error_status_is_caught_with_all_of_its_body(start: Any, wrap_image: Any) -> None:
    handler = "def handle(req):\n    return 'no ' * 1000, 404\n"
    second = "def handle(req):\n    return req\n"
    inputs = {0: None, 1: 0}
    image = wrap_image({"one": handler, "two": second}, inputs=inputs, entry={"output": 1})
    error = start(image).request().json
    assert error["error"] == "status"
    told = json.loads(error["cause"])
    assert told["errorMessage"] == "the handler answered 404: " + "no " * 1000


#: Fails as it is told, or tells how many executions this process has.
KEEPS = """
import gc
from werkzeug.exceptions import Conflict
gc.disable()

def handle(req):
    if req == "raise":
        raise ValueError("x")
    if req == "abort":
        raise Conflict
    return str(sum(type(each).__name__ == "Execution" for each in gc.get_objects()))
"""


def test_what_a_failed_execution_holds_goes_without_a_collection_of_garbage(
    write_folder: Any, plan_of: Any, tmp_path: Any, eventually: Any
) -> None:
    folder = write_folder(tmp_path, {"tasks": {"a": "keeps"}}, {"keeps": KEEPS}, {})
    kinds = (b"raise", b"abort", b"raise", b"abort")
    plan = plan_of(folder.workflow, "faastlane-t")
    launched = LocalLauncher(str).launch(folder.workflow, folder, plan)
    with launched as running:
        call = partial(running.gateway.invoke, running.names[0])
        assert [call(kind).status_code for kind in kinds] == [500, 409, 500, 409]
        # The thread that has answered may not have let go of its execution yet.
        assert eventually(lambda: call(b"tell").text == "1")
