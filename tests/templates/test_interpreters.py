"""Sub-interpreters as workers, where Python has them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.templates.conftest import Start

pytestmark = pytest.mark.skipif(
    sys.version_info < (3, 13), reason="sub-interpreters that run threads need Python 3.13"
)
#: Answers with the interpreter that runs it, and its input.
_WHERE = """
    import _interpreters

    def handle(req):
        return f"{_interpreters.get_current()[0]} {req}"
"""
_STYLE = dict.fromkeys("abc", "flask")


def image(wrap_image: Callable[..., Path], handlers: dict[str, Any], **fields: Any) -> Path:
    tasks = list(range(len(handlers)))
    return wrap_image(
        handlers,
        [[task] for task in tasks],
        mechanism="interpreters",
        entry={"output": tasks},
        **fields,
    )


def test_each_process_of_the_plan_is_an_interpreter_that_is_kept(
    wrap_image: Callable[..., Path], start: Start
) -> None:
    server = start(image(wrap_image, dict.fromkeys("abc", _WHERE)))
    first, second = (server.request(body=text).json for text in ("x", "y"))
    assert len({each.split()[0] for each in first}) == 3
    assert first[0] == "0 x"
    assert second == [each.replace("x", "y") for each in first]
    assert len(server.family()) == 1  # the fork server alone
    assert server.terminate() == 0


def test_a_module_that_refuses_sub_interpreters_is_named_when_the_wrap_starts(
    wrap_image: Callable[..., Path], run_to_end: Callable[..., tuple[int, str]]
) -> None:
    refused = "import faulthandler\n\ndef handle(req):\n    return req\n"
    status, log = run_to_end(image(wrap_image, {"a": _WHERE, "b": refused}))
    reason = "module faulthandler does not support loading in subinterpreters"
    assert status == 1
    assert log.splitlines()[-1] == f"ImportError: function b: {reason}"


@pytest.mark.parametrize("req", ["loop", "exit", "raise", "fork"])
def test_a_task_that_fails_there_fails_as_in_the_main_process(
    req: str, wrap_image: Callable[..., Path], start: Start
) -> None:
    handler = """
        import os, sys

        def handle(req):
            if req == "fork":
                os.fork()
            if req == "exit":
                os._exit(3)
            while req == "loop":
                pass
            return {"ok": "fine"}[req]
    """
    made = wrap_image({"a": handler}, [[], [0]], mechanism="interpreters", entry={"output": 0})
    server = start(made)
    limit = {"X_Chiron_Timeout": "0.2"} if req == "loop" else {}
    failed = server.request(body=req, **limit)
    codes = {"loop": "timeout", "exit": "exited", "raise": "raised", "fork": "raised"}
    assert failed.json["code"] == codes[req]
    assert server.request(body="ok").text == "fine"
    assert server.terminate() == 0
