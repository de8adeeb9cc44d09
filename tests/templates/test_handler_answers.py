"""Handlers answer as on the OpenFaaS templates, whatever they return: alone, and in wraps."""

from __future__ import annotations

import gc
import importlib.util
import json
from contextlib import nullcontext
from http import HTTPStatus
from pathlib import Path
from typing import Any
from weakref import ref

import pytest
from werkzeug.test import EnvironBuilder
from wrap.core.errors import TaskError
from wrap.core.wrap_spec import Seen
from wrap.functions import by_flask, styles
from wrap.values.value import Object

_FILE = Path(__file__).with_name("handler_answers.py")
_SPEC = importlib.util.spec_from_file_location("handler_answers", _FILE)
assert _SPEC is not None and _SPEC.loader is not None
handler_answers = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(handler_answers)

RECORDED = json.loads(handler_answers.ANSWERS.read_text())["answers"]
LAYOUTS: dict[str, dict[str, Any]] = {
    "thread": {},
    "fork": {"processes": [[], [0]]},
    "pool": {"processes": [[], [0]], "mechanism": "pool"},
}


def test_every_handler_has_a_recorded_answer() -> None:
    for style in handler_answers.STYLES:
        assert list(RECORDED[style]) == list(dict.fromkeys(handler_answers.returned(style)))


@pytest.mark.parametrize("style", RECORDED)
def test_a_handler_alone_answers_as_on_its_template(style, start, plain_image):
    server = start(plain_image(handler_answers.handler(style)), handler_style=style)
    answers = {each: handler_answers.told(server.port, each) for each in RECORDED[style]}
    assert answers == RECORDED[style]


@pytest.mark.each_once
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("style", RECORDED)
def test_a_handler_in_a_wrap_answers_as_alone(style, layout, start, wrap_image):
    """But where a handler fails, of which a wrap tells more than "Internal Server Error".

    Of `fork`, which takes a process for each, it is every tenth answer.
    """
    handlers = {"one": handler_answers.handler(style)}
    image = wrap_image(handlers, styles={"one": style}, entry={"output": 0}, **LAYOUTS[layout])
    server = start(image)
    differ = {}
    for expression in [*RECORDED[style]][:: 10 if layout == "fork" else 1]:
        found, recorded = handler_answers.told(server.port, expression), RECORDED[style][expression]
        if recorded[0] == 500 and "Internal Server Error" in recorded[2] and found[0] == 500:
            same = json.loads(found[2])["code"] in ("bad-output", "raised")
        else:
            same = found == recorded
        if not same:
            differ[expression] = (recorded, found)
    assert not differ, "\n".join(f"{k}: {v}" for k, v in differ.items())


@pytest.mark.parametrize("style", RECORDED)
def test_most_answers_are_those_of_flask_without_it(style: str, monkeypatch: Any) -> None:
    names: dict[str, Any] = {}
    exec(handler_answers.handler(style), names)  # noqa: S102
    left: list[Any] = []
    monkeypatch.setattr(styles, "_made", left.append)
    answered = 0
    for expression, (status, headers, text) in RECORDED[style].items():
        try:
            value, before = eval(expression, names), len(left)  # noqa: S307
        except Exception:  # noqa: S112 (an error of the handler, or a question of the request)
            continue
        try:
            found = styles.output(style, value, Seen.BY_CLIENT)
        except TaskError:
            assert len(left) > before or status == 500, expression
            continue
        line, pairs = found.head or ("200 OK", [])
        given = {(name, value) for name, value in headers if name != "Content-Length"}
        if status != 304:  # whose headers the server leaves out
            assert {*pairs, ("Content-Type", found.content_type)} == given, expression
        assert int(line[:3]) == status, expression
        assert "0x0" in text or found.data().decode("latin-1") == text, expression
        answered += 1
    assert answered > len(RECORDED[style]) / 4


def test_a_status_that_is_no_whole_number_and_a_header_that_no_server_sends_are_errors():
    """Flask takes 200, and not 200.0."""
    for status in (200, HTTPStatus.OK):
        assert styles.output("http", {"statusCode": status, "body": "x"}).text() == "x"
    with pytest.raises(TaskError, match="cannot be sent"):
        styles.output("http", {"statusCode": 200.0, "body": "x"})
    for pair in (("X-A", "a\r\nSet-Cookie: b=1"), ("X A", "a"), ("X-A\n", "a")):
        with pytest.raises(ValueError, match="header"):
            styles.sent([pair])


class Input:
    """What a request has in memory."""


@pytest.mark.parametrize("seen", Seen)
def test_what_answers_keep_of_a_request_goes_without_a_collection_of_garbage(seen: Seen) -> None:
    left = []

    def answered(value: Any) -> None:
        kept = Input()
        left.append(ref(kept))
        request = by_flask.flask_request(by_flask.application("."), Object("x"), {})
        with request if value is None else nullcontext():
            styles.output("http", value or "x", seen)

    def unrouted() -> None:
        kept = Input()
        left.append(ref(kept))
        environ = EnvironBuilder("/", method="TRACE").get_environ()
        with by_flask.application(".").request_context(environ):
            pass

    gc.disable()
    try:
        for value in ({"statusCode": 201, "body": "x"}, {"body": {"a": 1}}, ("x", 202), None):
            answered(value)
        unrouted()
        assert [each() for each in left] == [None] * len(left)
    finally:
        gc.enable()
