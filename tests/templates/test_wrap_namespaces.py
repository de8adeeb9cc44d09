"""Functions that share a process do not see each other's modules."""

from __future__ import annotations

from py_compile import compile as compile_source
from typing import Any

import pytest

ENTRY: dict[str, Any] = {"output": [0, 1]}

TOP = "import util\ndef handle(req): return util.NAME\n"
FUNCTION = "from function import util\ndef handle(req): return util.NAME\n"
FUNCTION_DOTTED = "import function.util\ndef handle(req): return function.util.NAME\n"
FUNCTION_AS = "import function.util as u\ndef handle(req): return u.NAME\n"
NAME_OF_MODULE = "from util import NAME\ndef handle(req): return NAME\n"
RELATIVE = "from .util import NAME\ndef handle(req): return NAME\n"
LAZY = "def handle(req):\n    from util import NAME\n    return NAME\n"
IN_A_THREAD = """
    import threading
    def handle(req):
        found = []
        def look():
            import util
            found.append(util.NAME)
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
        return found[0]
"""
IMPORT_MODULE = """
    import importlib
    def handle(req): return importlib.import_module("util").NAME
"""
IMPORT_MODULE_ALONE = """
    from importlib import import_module
    def handle(req): return import_module("function.util").NAME
"""
WAYS = {
    "top": TOP,
    "function": FUNCTION,
    "function dotted": FUNCTION_DOTTED,
    "function as": FUNCTION_AS,
    "name of module": NAME_OF_MODULE,
    "relative": RELATIVE,
    "lazy": LAZY,
    "in a thread": IN_A_THREAD,
    "import_module": IMPORT_MODULE,
    "import_module alone": IMPORT_MODULE_ALONE,
}


def _named(handler: str, name: str) -> dict[str, str]:
    return {"handler.py": handler, "util.py": f"NAME = {name!r}\n"}


@pytest.mark.parametrize("place", ["main", "further"])
def test_each_function_finds_its_own_util(place: str, start: Any, wrap_image: Any) -> None:
    names = [f"{way} {who}" for way in WAYS for who in ("first", "second")]
    handlers = {
        f"f{task}": _named(WAYS[name.rpartition(" ")[0]], name) for task, name in enumerate(names)
    }
    tasks = [*range(len(names))]
    processes = [tasks] if place == "main" else [[], tasks]
    server = start(wrap_image(handlers, processes, entry={"output": tasks}))
    for _ in range(2):
        assert server.request().json == names


def test_a_module_of_a_function_hides_no_other_and_a_folder_of_data_no_package(
    start: Any, wrap_image: Any
) -> None:
    standard = {
        "handler.py": "import json\ndef handle(req): return json.dumps([req])\n",
        "json.py": "raise ImportError('not this one')\n",
    }
    installed = {
        "handler.py": """
            import flask
            from function import flask as own

            def handle(req):
                return flask.Flask.__name__ + own.NAME
        """,
        "flask.py": "NAME = 'own'\n",
    }
    data = {
        "handler.py": "import flask\ndef handle(req): return flask.Flask.__name__\n",
        "flask/data.txt": "",
    }
    handlers = {"one": standard, "two": installed, "three": data}
    server = start(wrap_image(handlers, entry={"output": [0, 1, 2]}))
    assert server.request(body="x").json == [["x"], "Flaskown", "Flask"]


def test_each_function_finds_its_own_module_of_which_only_compiled_code_is_there(
    start: Any, wrap_image: Any
) -> None:
    ways = {"one": TOP, "two": RELATIVE}
    files = {name: _named(handler, name) for name, handler in ways.items()}
    image = wrap_image(files, [[], [0, 1]], entry=ENTRY)
    for source in image.glob("function/functions/*/function/util.py"):
        compile_source(str(source), str(source.with_suffix(".pyc")), doraise=True)
        source.unlink()
    assert start(image).request().json == ["one", "two"]


def test_globals_stay_apart_whatever_a_function_does_to_the_environment(
    start: Any, wrap_image: Any
) -> None:
    handler = """
        import json, os
        import util
        os.environ["PYTHONPATH"] = os.path.dirname(__file__)
        mine = [util.NAME]
        def handle(req):
            os.environ["LAST"] = util.NAME
            os.environ.pop("PYTHONPATH", None)
            import util as again
            mine.append(again.NAME)
            return json.dumps(mine)
    """
    handlers = {name: _named(handler, name) for name in ("one", "two")}
    image = wrap_image(handlers, [[], [0, 1]], mechanism="pool", entry=ENTRY)
    server = start(image, pool_concurrency="1")
    for calls in (2, 3):
        assert server.request().json == [["one"] * calls, ["two"] * calls]


def test_a_function_used_by_two_tasks_is_one_module(start: Any, wrap_image: Any) -> None:
    counts = """
        seen = []
        def handle(req):
            seen.append(req)
            return str(len(seen))
    """
    image = wrap_image(
        {"one": counts},
        [[0, 1]],
        tasks={0: "one", 1: "one"},
        inputs={0: None, 1: 0},
        entry=ENTRY,
    )
    assert start(image).request().json == [1, 2]


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        ("x = 1\n", "function one: "),
        ("import no_such_thing\n", "no_such_thing"),
    ],
)
def test_a_function_that_cannot_be_loaded_is_named(
    handler: str, said: str, run_to_end: Any, wrap_image: Any
) -> None:
    status, log = run_to_end(wrap_image({"one": handler}))
    assert status == 1
    assert said in log and len(log.splitlines()) == 1
