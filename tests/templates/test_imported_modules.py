"""A wrap imports what its plan uses, before it takes requests, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

#: Answers what is imported while it runs, and what was when it was imported itself.
RUNNING = "import json, sys\ndef handle(req):\n    return json.dumps([*sys.modules])\n"
IMPORTED = (
    "import json, sys\nSEEN = [*sys.modules]\ndef handle(req):\n    return json.dumps(SEEN)\n"
)
#: What only some wraps use: those with a state machine, a store, or a collector.
ONLY_SOME = {"jsonpath", "re2", "jlens", "minio", "redis", "wrap.observe.spans"}
ONLY_SOME |= {"wrap.core.statemachine.machine", "wrap.net.object_store.s3"}


@pytest.mark.parametrize("processes", [[[0]], [[], [0]]], ids=["main", "further"])
def test_a_plain_wrap_imports_what_every_wrap_uses(
    processes: list[list[int]], start: Any, wrap_image: Any
) -> None:
    image = wrap_image({"one": RUNNING}, processes, entry={"output": 0})
    modules = {*start(image).request().json}
    assert {"flask", "msgspec", "waitress"} <= modules
    assert ONLY_SOME & modules == set()


def test_a_wrap_with_a_machine_has_what_that_needs_before_functions_can_hide_it(
    start: Any, wrap_image: Any
) -> None:
    machine = {"StartAt": "one", "States": {"one": {"Type": "Task", "Resource": "one"}}}
    machine["States"]["one"]["End"] = True
    entry = {"output": None, "machine": machine, "states": {"one": 0}}
    image = wrap_image({"one": IMPORTED}, entry=entry, inputs={}, buckets=[], instances=1)
    modules = {*start(image).request(body="{}").json}
    assert {"jsonpath", "wrap.core.statemachine.machine"} <= modules
