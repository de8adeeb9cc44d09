"""A wrap imports what its plan uses, before it takes requests, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

#: Answers what is imported while it runs, and what was when it was imported itself.
RUNNING = "import json, sys\ndef handle(req):\n    return json.dumps([*sys.modules])\n"
IMPORTED = (
    "import json, sys\nSEEN = [*sys.modules]\ndef handle(req):\n    return json.dumps(SEEN)\n"
)
#: What only some wraps use: those with functions that use Flask, with other wraps, buckets, a state
#: machine, a store, or a collector.
ONLY_SOME = {"flask", "werkzeug", "urllib3", "ssl", "jsonpath", "re2", "jlens", "minio", "redis"}
ONLY_SOME |= {"wrap.core.statemachine.machine", "wrap.net.object_store.s3", "wrap.observe.spans"}
ONLY_SOME |= {"wrap.dispatch.sessions", "wrap.core.buckets.flow", "wrap.functions.command"}
ONLY_SOME |= {"wrap.functions.java", "wrap.functions.node", "tempfile", "shutil", "pickle"}
#: Has a wrap be started as a program of its own: others are forked with all of that.
AFRESH = {"LANG": "C.UTF-8"}


def test_a_plain_wrap_imports_what_every_wrap_uses(start, wrap_image):
    """So do the processes that are forked of it."""
    handlers = {"one": RUNNING, "other": RUNNING}
    server = start(wrap_image(handlers, [[0], [1]], entry={"output": [0, 1]}), **AFRESH)
    for method, path in (("GET", "/_/health"), ("GET", "/metrics"), ("OPTIONS", "/")):
        server.request(method, path)
    for modules in map(set, server.request().json):
        assert {"msgspec", "waitress"} <= modules
        assert ONLY_SOME & modules == set()


@pytest.mark.parametrize(
    ("handler", "style", "module"),
    [
        ("import json, sys\nSEEN = [*sys.modules]\ndef handle(req):\n"
         "    import flask\n    return json.dumps(SEEN)\n", "flask", "flask"),
        (IMPORTED.replace("req", "event, context"), "http", "werkzeug.wrappers"),
        (IMPORTED.replace("return", "yield"), "flask", "wrap.functions.by_flask"),
    ],
    ids=["flask", "event", "iterator"],
)  # fmt: skip
def test_what_calls_of_a_function_use_is_there_before_processes_are_forked(
    handler: str, style: str, module: str, start: Any, wrap_image: Any
) -> None:
    styles = {"one": style}
    image = wrap_image({"one": handler}, [[], [0]], styles=styles, entry={"output": 0})
    assert module in start(image, **AFRESH).request().json


def test_what_an_answer_has_imported_is_there_in_processes_that_are_forked_later(
    start: Any, wrap_image: Any, wait_until: Any
) -> None:
    handler = (
        "import json, sys\ndef handle(req):\n"
        "    has = 'flask' in sys.modules\n    return (json.dumps(each) for each in [has])\n"
    )
    image = wrap_image({"one": handler}, [[], [0]], styles={"one": "flask"}, entry={"output": 0})
    server = start(image, **AFRESH)
    assert server.request().json is False
    wait_until(lambda: server.request().json)


def test_a_wrap_with_a_machine_has_what_that_needs_before_functions_can_hide_it(start, wrap_image):
    machine = {"StartAt": "one", "States": {"one": {"Type": "Task", "Resource": "one"}}}
    machine["States"]["one"]["End"] = True
    entry = {"output": None, "machine": machine, "states": {"one": 0}}
    image = wrap_image({"one": IMPORTED}, entry=entry, inputs={}, buckets=[], instances=1)
    modules = {*start(image).request(body="{}").json}
    assert {"jsonpath", "wrap.core.statemachine.machine"} <= modules
