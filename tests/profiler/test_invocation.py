"""What is told of a function that fails while it is profiled."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from chiron.profiler.invocation import Solo
from chiron.workflow.errors import ChironError

SAID = "function far cannot be reached at http://gateway/function/far: Connection refused"


@pytest.mark.parametrize(("printed", "told"), [([], ""), (["hello"], "; its log ends: hello")])
def test_a_log_that_repeats_the_error_is_not_told_again(printed, told):
    lines = [*printed, f"[far] failed with remote: {SAID}"]
    content = json.dumps({"code": "remote", "message": SAID, "function": "far"}).encode()
    gateway = SimpleNamespace(
        url="http://gateway",
        invoke=lambda *_, **__: SimpleNamespace(ok=False, status_code=500, content=content),
        logs=lambda *_: [SimpleNamespace(text=line) for line in lines],
    )
    with pytest.raises(ChironError) as failed:
        Solo(gateway, "key", "w", "far", [b""]).invoke()
    assert failed.value.message == f"function far failed while it was profiled: {SAID}{told}"
